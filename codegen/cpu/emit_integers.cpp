// Arithmetic on integers and bools: nothing of it traps, and overflow wraps.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <vector>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_values.h"
#include "ir/loops/rewrite.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

using llvm::Value;

// bool is an integer of one bit: its sum is "or", its extrema are unsigned.
class Integers {
 public:
  explicit Integers(llvm::IRBuilderBase& builder) : b_(builder) {}

  Value* binary(const Binary& e, Value* a, Value* y) {
    const bool is_bool = e.a.dtype() == DType::kBool, is_u = is_unsigned(e.a.dtype()) || is_bool;
    auto call = [&](llvm::Intrinsic::ID id) {
      return static_cast<Value*>(b_.CreateBinaryIntrinsic(id, a, y));
    };
    switch (e.op) {
      case BinaryOp::kAdd: return is_bool ? b_.CreateOr(a, y) : b_.CreateAdd(a, y);
      case BinaryOp::kSub: return b_.CreateSub(a, y);
      case BinaryOp::kMul: return b_.CreateMul(a, y);
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kTruncMod:
      case BinaryOp::kFloorMod: return int_division(e, a, y, is_u);
      case BinaryOp::kMin: return call(is_u ? llvm::Intrinsic::umin : llvm::Intrinsic::smin);
      case BinaryOp::kMax: return call(is_u ? llvm::Intrinsic::umax : llvm::Intrinsic::smax);
      case BinaryOp::kAnd: return b_.CreateAnd(a, y);
      case BinaryOp::kOr: return b_.CreateOr(a, y);
      case BinaryOp::kXor: return b_.CreateXor(a, y);
      case BinaryOp::kShl:
      case BinaryOp::kShr: return shift(e, a, y, is_u);
      case BinaryOp::kPow: return int_power(a, y, is_u);
      case BinaryOp::kEq: return b_.CreateICmpEQ(a, y);
      case BinaryOp::kNe: return b_.CreateICmpNE(a, y);
      case BinaryOp::kLt: return is_u ? b_.CreateICmpULT(a, y) : b_.CreateICmpSLT(a, y);
      case BinaryOp::kLe: return is_u ? b_.CreateICmpULE(a, y) : b_.CreateICmpSLE(a, y);
      case BinaryOp::kGt: return is_u ? b_.CreateICmpUGT(a, y) : b_.CreateICmpSGT(a, y);
      case BinaryOp::kGe: return is_u ? b_.CreateICmpUGE(a, y) : b_.CreateICmpSGE(a, y);
      case BinaryOp::kMaxNumber: break;
    }
    return nullptr;
  }

 private:
  // Never traps: a divisor of 0 counts as 1, and -1 is handled apart (the smallest number divided
  // by it overflows).
  Value* int_division(const Binary& e, Value* a, Value* y, bool is_u) {
    llvm::Type* type = a->getType();
    Value *one = llvm::ConstantInt::get(type, 1), *zero = llvm::Constant::getNullValue(type);
    Expr divisor = e.b;
    if (const auto* broadcast = divisor.as<Broadcast>()) divisor = broadcast->value;
    const auto known = as_int(divisor);
    const bool remainder = e.op == BinaryOp::kTruncMod || e.op == BinaryOp::kFloorMod;
    if (!known || *known == 0) y = b_.CreateSelect(b_.CreateICmpEQ(y, zero), one, y);
    if (is_u) return remainder ? b_.CreateURem(a, y) : b_.CreateUDiv(a, y);
    Value* minus = nullptr;
    Value* d = y;
    if (!known || *known <= 0) {
      minus = b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
      d = b_.CreateSelect(minus, one, y);
    }
    Value *q = b_.CreateSDiv(a, d), *r = b_.CreateSub(a, b_.CreateMul(q, d));
    if (e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kFloorMod) {
      Value* adjust =
          b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, d), zero));
      if (remainder)
        r = b_.CreateSelect(adjust, b_.CreateAdd(r, d), r);
      else
        q = b_.CreateSelect(adjust, b_.CreateSub(q, one), q);
    }
    if (remainder) return minus ? b_.CreateSelect(minus, zero, r) : r;
    return minus ? b_.CreateSelect(minus, b_.CreateNeg(a), q) : q;
  }
  // Shifts by the width or more shift everything out; the sign stays.
  Value* shift(const Binary& e, Value* a, Value* y, bool is_u) {
    llvm::Type* type = a->getType();
    const auto bits = static_cast<uint64_t>(8 * byte_size(e.a.dtype()));
    Value* within = b_.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
    Value *most = llvm::ConstantInt::get(type, bits - 1),
          *zero = llvm::Constant::getNullValue(type), *amount = b_.CreateSelect(within, y, most);
    if (e.op == BinaryOp::kShr && !is_u) return b_.CreateAShr(a, amount);
    Value* r = e.op == BinaryOp::kShl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
    return b_.CreateSelect(within, r, zero);
  }
  // Square and multiply over the bits of the exponent; a negative exponent gives 0 but for bases 1
  // and -1.
  Value* int_power(Value* a, Value* y, bool is_u) {
    llvm::Type* type = a->getType();
    Value *one = llvm::ConstantInt::get(type, 1), *zero = llvm::Constant::getNullValue(type),
          *result = one, *base = a, *rest = y;
    for (unsigned k = 0; k < type->getScalarSizeInBits(); ++k) {
      Value* odd = b_.CreateICmpNE(b_.CreateAnd(rest, one), zero);
      result = b_.CreateSelect(odd, b_.CreateMul(result, base), result);
      base = b_.CreateMul(base, base);
      rest = b_.CreateLShr(rest, one);
    }
    if (is_u) return result;
    Value* negative = b_.CreateICmpSLT(y, zero);
    Value* unit = b_.CreateOr(b_.CreateICmpEQ(a, one),
                              b_.CreateICmpEQ(a, llvm::Constant::getAllOnesValue(type)));
    return b_.CreateSelect(b_.CreateAnd(negative, b_.CreateNot(unit)), zero, result);
  }

  llvm::IRBuilderBase& b_;
};

}  // namespace

Value* emit_integers(llvm::IRBuilderBase& b, const Binary& e, Value* x, Value* y) {
  return Integers(b).binary(e, x, y);
}

// A sum of many symbols, as extents of joined values are, frozen: LLVM's analysis of addresses in loops
// then takes it for one value, where it would compare all terms of each sum with those of others.
// Null for other expressions, and for sums of what loops of this function vary.
Value* ValueEmitter::long_fixed_sum(const Expr& e) {
  constexpr size_t kLong = 16;
  std::vector<const Binary*> sums;
  for (const Binary* b = e.as<Binary>();
       b && b->type == ScalarType{} && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub);
       b = b->a.as<Binary>())
    sums.push_back(b);
  if (sums.size() < kLong) return nullptr;
  const auto is_fixed = [&](const Expr& part) {
    bool fixed = true;
    for_each_expr(part, [&](const Expr& x) {
      const auto v = x.kind() == NodeKind::kVar ? f_.vars.find(x.get()) : f_.vars.end();
      fixed &= x.kind() != NodeKind::kLoad &&
               (v == f_.vars.end() || !llvm::isa<llvm::PHINode>(v->second));
    });
    return fixed;
  };
  if (!is_fixed(sums.back()->a) ||
      !std::all_of(sums.begin(), sums.end(), [&](const Binary* b) { return is_fixed(b->b); }))
    return nullptr;
  Value* total = value(sums.back()->a);
  for (size_t k = sums.size(); k-- > 0;)
    total = emit_binary(b_, machine_, *sums[k], total, value(sums[k]->b));
  return b_.CreateFreeze(total);
}

}  // namespace tilewright::cpu
