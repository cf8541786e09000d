// What combines the lanes of vectors, or puts them in another order.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <vector>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/vector_math.h"
#include "ir/loops/linear.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

using llvm::Value;

class Lanes {
 public:
  explicit Lanes(llvm::IRBuilderBase& builder) : b_(builder) {}

  // A tree over halves: log2(lanes) steps, each of one shuffle and one operation. The order of a
  // float sum follows from the number of lanes alone.
  Value* reduce(const ReduceLanes& r, Value* v) {
    const DType t = r.type.dtype;
    if (is_float(t) && r.value.lanes() > 1 && (r.op == BinaryOp::kMax || r.op == BinaryOp::kMin))
      return extremum(v, r.value.lanes(), r.op == BinaryOp::kMax);
    if (r.op == BinaryOp::kMaxNumber) {
      auto* lowest = llvm::ConstantFP::getInfinity(v->getType(), /*Negative=*/true);
      return extremum_of_numbers(b_.CreateSelect(b_.CreateFCmpOGT(v, lowest), v, lowest),
                                 r.value.lanes(), true);
    }
    for (int lanes = r.value.lanes(); lanes > 1;) {
      const int half = lanes / 2;
      Value* folded = combine(r.op, part(v, 0, half), part(v, half, half), t);
      if (lanes % 2 != 0) {  // an odd lane joins the first
        Value* last = b_.CreateExtractElement(v, static_cast<uint64_t>(lanes - 1));
        if (half == 1)
          folded = combine(r.op, folded, last, t);
        else
          folded = b_.CreateInsertElement(
              folded, combine(r.op, b_.CreateExtractElement(folded, uint64_t{0}), last, t),
              uint64_t{0});
      }
      v = folded;
      lanes = half;
    }
    return v;
  }

 private:
  // n lanes, or an element.
  Value* part(Value* v, int from, int n) {
    std::vector<int> at;
    for (int i = 0; i < n; ++i) at.push_back(from + i);
    return n == 1 ? b_.CreateExtractElement(v, static_cast<uint64_t>(from))
                  : b_.CreateShuffleVector(v, at);
  }
  // Asks once whether a lane is NaN, beside the extremum of the others rather than at each step.
  Value* extremum(Value* v, int lanes, bool largest) {
    const int half = (lanes + 1) / 2;  // of an odd number, both halves hold the lane in the middle
    Value* unordered = b_.CreateFCmpUNO(part(v, 0, half), part(v, lanes - half, half));
    Value* nan = half == 1 ? unordered : b_.CreateOrReduce(unordered);
    v = extremum_of_numbers(v, lanes, largest);
    return b_.CreateSelect(nan, llvm::ConstantFP::getNaN(v->getType()), v);
  }
  Value* extremum_of_numbers(Value* v, int lanes, bool largest) {
    while (lanes > 1) {
      const int n = (lanes + 1) / 2;
      Value *a = part(v, 0, n), *y = part(v, lanes - n, n);
      if (is_exact(b_))
        v = b_.CreateBinaryIntrinsic(
            largest ? llvm::Intrinsic::maximumnum : llvm::Intrinsic::minimumnum, a, y);
      else
        v = b_.CreateSelect(largest ? b_.CreateFCmpOGT(a, y) : b_.CreateFCmpOLT(a, y), a, y);
      lanes = n;
    }
    return v;
  }
  Value* combine(BinaryOp op, Value* a, Value* y, DType t) {
    const bool is_u = is_unsigned(t);
    switch (op) {
      case BinaryOp::kAdd: return is_float(t) ? b_.CreateFAdd(a, y) : b_.CreateAdd(a, y);
      case BinaryOp::kMul: return is_float(t) ? b_.CreateFMul(a, y) : b_.CreateMul(a, y);
      case BinaryOp::kMax:
        return b_.CreateBinaryIntrinsic(is_u ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a, y);
      case BinaryOp::kMin:
        return b_.CreateBinaryIntrinsic(is_u ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a, y);
      case BinaryOp::kAnd: return b_.CreateAnd(a, y);
      case BinaryOp::kOr: return b_.CreateOr(a, y);
      default: break;
    }
    TW_CHECK(!"no combiner");
    return nullptr;
  }

  llvm::IRBuilderBase& b_;
};

}  // namespace

Value* emit_reduce_lanes(llvm::IRBuilderBase& b, const MachineDescription& m, const ReduceLanes& e,
                         Value* v) {
  const DType t = e.type.dtype;
  if (!emulates_halves(m, t)) return Lanes(b).reduce(e, v);
  ReduceLanes wide = e;
  wide.type.dtype = DType::kFloat32;
  wide.value = Var("x", {DType::kFloat32, e.value.lanes()});
  return narrow_half(b, Lanes(b).reduce(wide, widen_half(b, v, t)), t);
}

Value* emit_joined(llvm::IRBuilderBase& b, const std::vector<Value*>& parts) {
  llvm::Type* type = parts[0]->getType();
  const unsigned bits = type->getScalarSizeInBits(), count = static_cast<unsigned>(parts.size());
  auto* narrow = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(type));
  llvm::Type* wide = narrow->getWithNewBitWidth(bits * count);
  Value* all = llvm::Constant::getNullValue(wide);
  for (unsigned k = 0; k < count; ++k) {
    Value* part = b.CreateZExt(b.CreateBitCast(parts[k], narrow), wide);
    all = b.CreateOr(all, b.CreateShl(part, uint64_t{bits} * k));
  }
  return all;
}

namespace {

int lanes_of(const Value* v) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
}
template <typename F>
Value* shuffled(llvm::IRBuilderBase& b, Value* x, Value* y, int lanes, F&& lane) {
  std::vector<int> from;
  for (int i = 0; i < lanes; ++i) from.push_back(lane(i));
  return b.CreateShuffleVector(x, y, from);
}
// Parts side by side; what is missing to `count`, a power of two, may hold anything.
Value* side_by_side(llvm::IRBuilderBase& b, std::vector<Value*> parts, size_t count) {
  while (parts.size() < count) parts.push_back(llvm::PoisonValue::get(parts[0]->getType()));
  while (parts.size() > 1) {
    std::vector<Value*> pairs;
    for (size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(shuffled(b, parts[i], parts[i + 1], 2 * lanes_of(parts[i]),
                               [](int lane) { return lane; }));
    parts = std::move(pairs);
  }
  return parts[0];
}

}  // namespace

// Powers of two by a tree of two-operand shuffles (unpack instructions), which x86 does inside
// registers; other counts (RGB: 3) join the parts to two registers and permute across them.
Value* emit_interleaved(llvm::IRBuilderBase& b, const std::vector<Value*>& parts) {
  const size_t n = parts.size(), most = std::bit_floor(n);
  const int lanes = lanes_of(parts[0]), count = static_cast<int>(n);
  if (n == 1) return parts[0];
  if (n == most) {
    std::vector<Value*> even, odd;
    for (size_t i = 0; i < n; ++i) (i % 2 == 0 ? even : odd).push_back(parts[i]);
    Value *x = emit_interleaved(b, even), *y = emit_interleaved(b, odd);
    const int half = lanes_of(x);
    return shuffled(b, x, y, 2 * half, [&](int i) { return i / 2 + i % 2 * half; });
  }
  const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(most);
  Value *x = side_by_side(b, {parts.begin(), middle}, most),
        *y = side_by_side(b, {middle, parts.end()}, most);
  return shuffled(b, x, y, count * lanes, [&](int i) { return i % count * lanes + i / count; });
}

Value* emit_every(llvm::IRBuilderBase& b, Value* v, int first, int n) {
  return shuffled(b, v, v, lanes_of(v) / n, [&](int i) { return first + i * n; });
}

Value* each_repeated(llvm::IRBuilderBase& b, Value* v, int n) {
  return shuffled(b, v, v, lanes_of(v) * n, [&](int i) { return i / n; });
}

}  // namespace tilewright::cpu
