// Loads and stores choose among forms by the shape of the index:
//
//    ramp(base, 1, n)              one vector load or store, masked where there is a mask
//    lanes at known distances      one or two vector loads and a shuffle (lane_indices.h)
//    anything else                 gather or scatter
//
// A Select guards the loads below it: lanes that the condition leaves off read nothing, since they
// may lie outside the buffer. In scalar code such a load reads element 0 instead, which always
// exists.
#include "codegen/cpu/emit_values.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <cstddef>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_dot.h"
#include "codegen/cpu/lane_indices.h"
#include "codegen/cpu/vector_math.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "runtime/kernel_abi.h"

namespace tilewright::cpu {

using namespace ir;
using llvm::Value;

namespace {

bool reads_memory(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) { found |= x.kind() == NodeKind::kLoad; });
  return found;
}

}  // namespace

llvm::Align ValueEmitter::alignment(const Buffer& x) {
  return llvm::Align(static_cast<uint64_t>(byte_size(x->dtype)));
}

llvm::Type* ValueEmitter::type_of(ScalarType t, bool in_memory) {
  if (emulates_halves(machine_, t.dtype)) t.dtype = DType::kUInt16;
  return llvm_type(b_, t, in_memory);
}

Value* ValueEmitter::splat(Value* v, int lanes) {
  return lanes == 1 || v->getType()->isVectorTy()
             ? v
             : b_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
}

// A short vector over and over until there are `lanes`.
Value* ValueEmitter::repeat(Value* v, int lanes) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  if (!type) return splat(v, lanes);
  std::vector<int> from(static_cast<size_t>(lanes));
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i % type->getNumElements());
  return b_.CreateShuffleVector(v, from);
}

// A guard of another width: scalars guard whole vectors; for a scalar inside a vector's guard,
// any lane on suffices.
Value* ValueEmitter::fit(Value* guard, int lanes) {
  const bool vector = guard->getType()->isVectorTy();
  if (lanes == 1 && vector) return b_.CreateOrReduce(guard);
  return splat(guard, lanes);
}

Value* ValueEmitter::place(const Buffer& x, Value* index) {
  auto it = f_.buffers.find(x.get());
  TW_CHECK(it != f_.buffers.end());
  return b_.CreateInBoundsGEP(type_of({x->dtype, 1}, true), it->second, index);
}

Value* ValueEmitter::address(const Buffer& x, const Expr& index) { return place(x, value(index)); }

Value* ValueEmitter::to_memory(Value* v, ScalarType t) {
  return t.dtype == DType::kBool ? b_.CreateZExt(v, type_of(t, true)) : v;
}

Value* ValueEmitter::from_memory(Value* v, ScalarType t) {
  return t.dtype == DType::kBool ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()))
                                 : v;
}

// Term by term: LLVM's alias analysis takes a sum of several variables for one that it knows nothing of, and sums
// that wait in a buffer of the kernel would be loaded and stored in each step then, instead of staying in registers.
Value* ValueEmitter::place_of_sum(const Buffer& x, const Expr& index) {
  const auto* sum = index.as<Binary>();
  if (x->scope == ir::Scope::kParam || !sum || sum->op != BinaryOp::kAdd)
    return place(x, value(index));
  return b_.CreateGEP(type_of({x->dtype, 1}, true), place_of_sum(x, sum->a), value(sum->b));
}

// Where a vector of unit-stride index begins; null where the index is none.
Value* ValueEmitter::contiguous_place(const Buffer& x, const Expr& index) {
  const auto* r = index.as<Ramp>();
  return r && is_one(r->stride) && r->base.lanes() == 1 ? place_of_sum(x, r->base) : nullptr;
}

// The lanes that are read; null: all.
Value* ValueEmitter::load_mask(const Load& l) {
  const int lanes = l.type.lanes;
  const bool always = l.mask && is_one(l.mask);  // even where a guard around is off
  Value* mask = l.mask && !always ? value(l.mask) : nullptr;
  if (guard_ && !always)
    mask = mask ? b_.CreateAnd(splat(mask, lanes), fit(guard_, lanes)) : fit(guard_, lanes);
  return mask;
}

Value* ValueEmitter::load(const Load& l) {
  const ScalarType t = l.type;
  llvm::Type* type = type_of(t, true);
  Value* mask = load_mask(l);
  if (t.lanes == 1) {
    Value* index = value(l.indices[0]);
    // Element 0 always exists: what is not to be read is read there and dropped.
    if (mask) index = b_.CreateSelect(mask, index, b_.getInt64(0));
    Value* v = b_.CreateAlignedLoad(type, place(l.buffer, index), alignment(l.buffer));
    return from_memory(v, t);
  }
  if (mask) mask = splat(mask, t.lanes);
  Value* zero = llvm::Constant::getNullValue(type);
  if (Value* p = contiguous_place(l.buffer, l.indices[0])) {
    prefetch(l, t.lanes, p);
    Value* v =
        mask ? static_cast<Value*>(b_.CreateMaskedLoad(type, p, alignment(l.buffer), mask, zero))
             : b_.CreateAlignedLoad(type, p, alignment(l.buffer));
    return from_memory(v, t);
  }
  const bool always = l.mask && is_one(l.mask);  // even where a guard around is off
  if (Value* v = guard_ && !always ? nullptr : read_shuffled(l)) return from_memory(v, t);
  Value* pointers = addresses(l.buffer, l.indices[0]);
  return from_memory(b_.CreateMaskedGather(type, pointers, alignment(l.buffer), mask, zero), t);
}

// The address of each lane, from that which all have in common: processors add the rest to it where
// it is a vector of narrow numbers.
Value* ValueEmitter::addresses(const Buffer& x, const Expr& index) {
  const SplitIndex i = split_index(index);
  if (!i.uniform || !i.rest) return address(x, index);
  Value* base = address(x, keep(i.uniform));
  return b_.CreateInBoundsGEP(type_of({x->dtype, 1}, true), base, value(keep(i.rest)));
}
// Elements that lie close together, by known distances, are read side by side and put in order.
// Null where they do not.
Value* ValueEmitter::read_shuffled(const Load& l) {
  const auto index = known_lanes(l.indices[0]);
  const bool always = !l.mask || is_one(l.mask);
  const auto mask = always ? std::nullopt : known_lanes(l.mask);
  if (!index || (!always && (!mask || !is_zero(mask->base)))) return nullptr;
  std::vector<bool> on(index->offsets.size(), true);
  for (size_t i = 0; mask && i < on.size(); ++i) on[i] = mask->offsets[i] != 0;
  const auto read = shuffled_read(index->offsets, on);
  if (!read) return nullptr;
  Value* base = value(keep(index->base));
  llvm::Type* part = type_of({l.type.dtype, read->count}, true);
  auto read_at = [&](int64_t offset) {
    Value* at = b_.CreateAdd(base, b_.getInt64(static_cast<uint64_t>(offset)));
    Value* v = b_.CreateAlignedLoad(part, place(l.buffer, at), alignment(l.buffer));
    return read->count == 1 ? b_.CreateVectorSplat(1, v) : v;
  };
  Value* first = read_at(read->first);
  Value* second = read->second == read->first ? first : read_at(read->second);
  Value* v = b_.CreateShuffleVector(first, second, read->lanes);
  if (always) return v;
  std::vector<llvm::Constant*> bits;  // lanes that are off give 0
  for (const bool lane : on) bits.push_back(b_.getInt1(lane));
  return b_.CreateSelect(llvm::ConstantVector::get(bits), v,
                         llvm::Constant::getNullValue(v->getType()));
}
const Expr& ValueEmitter::keep(Expr e) {
  made_.push_back(std::move(e));
  return made_.back();
}

Value* ValueEmitter::value(const Expr& e) {
  if (e.kind() == NodeKind::kVar) {
    if (auto it = columns_.find(e.get()); it != columns_.end())
      return emit_interleaved(b_, it->second);
    auto it = f_.vars.find(e.get());
    TW_CHECK(it != f_.vars.end());
    return it->second;
  }
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
  Value* v = make(e);
  memo_[e.get()] = v;
  return v;
}

Value* ValueEmitter::make(const Expr& e) {
  switch (e.kind()) {
    case NodeKind::kIntImm:
      return llvm::ConstantInt::get(type_of(e.type()), static_cast<uint64_t>(e.as<IntImm>()->value),
                                    true);
    case NodeKind::kFloatImm:
      return b_.CreateBitCast(
          llvm::ConstantFP::get(llvm_type(b_, e.type()), e.as<FloatImm>()->value),
          type_of(e.type()));
    case NodeKind::kCast: return emit_cast(b_, machine_, *e.as<Cast>(), value(e.as<Cast>()->value));
    case NodeKind::kBitcast:
      return b_.CreateBitCast(value(e.as<Bitcast>()->value), type_of(e.type()));
    case NodeKind::kUnary:
      if (e.as<Unary>()->op == UnaryOp::kWatched) return watch(*e.as<Unary>());
      return emit_unary(b_, machine_, *e.as<Unary>(), value(e.as<Unary>()->value));
    case NodeKind::kBinary: {
      if (Value* sum = exact_sum(*e.as<Binary>())) return sum;
      if (Value* sum = long_fixed_sum(e)) return sum;
      Value *x = value(e.as<Binary>()->a), *y = value(e.as<Binary>()->b);
      return emit_binary(b_, machine_, *e.as<Binary>(), x, y);
    }
    case NodeKind::kSelect: return make_select(*e.as<Select>());
    case NodeKind::kLoad: return load(*e.as<Load>());
    case NodeKind::kRamp: return make_ramp(*e.as<Ramp>());
    case NodeKind::kBroadcast: return repeat(value(e.as<Broadcast>()->value), e.lanes());
    case NodeKind::kDot: {
      const Dot& d = *e.as<Dot>();
      return emit_dot(b_, machine_, value(d.sum), value(d.a), value(d.b));
    }
    case NodeKind::kEveryLane: return every_lane(*e.as<EveryLane>());
    case NodeKind::kInterleave: return interleaved(*e.as<Interleave>());
    case NodeKind::kReduceLanes:
      return emit_reduce_lanes(b_, machine_, *e.as<ReduceLanes>(),
                               value(e.as<ReduceLanes>()->value));
    case NodeKind::kVar: break;  // has its value already
#define TW_STMT(Kind) \
  case NodeKind::k##Kind: break;
#include "ir/loops/nodes.def"
  }
  TW_CHECK(!"no expression");
  return nullptr;
}

// c[i] + a * b that is stored to c, in an exact kernel: the product is not rounded.
Value* ValueEmitter::exact_sum(const Binary& e) {
  const auto* sum = e.a.as<Load>();
  const auto* product = e.b.as<Binary>();
  const bool rounds_once = machine_.has_fma && is_exact(b_) && e.op == BinaryOp::kAdd && sum &&
                           sum->buffer.get() == stored_ && product &&
                           product->op == BinaryOp::kMul && is_float(e.type.dtype) &&
                           byte_size(e.type.dtype) >= 4;
  if (!rounds_once) return nullptr;
  Value *c = value(e.a), *a = value(product->a), *b = value(product->b);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {c->getType()}, {a, b, c});
}

Value* ValueEmitter::make_ramp(const Ramp& r) {
  const int lanes = r.type.lanes, width = r.base.lanes();
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i)
    steps.push_back(
        llvm::ConstantInt::get(type_of({r.type.dtype, 1}), static_cast<uint64_t>(i / width)));
  Value* offsets = b_.CreateMul(llvm::ConstantVector::get(steps), splat(value(r.stride), lanes));
  return b_.CreateAdd(repeat(value(r.base), lanes), offsets);
}

// Loads inside become masked; what does not load is computed in all lanes and dropped.
Value* ValueEmitter::guarded(Value* condition, const Expr& e) {
  if (!reads_memory(e)) return value(e);
  auto saved_memo = memo_;  // what is computed under the guard does not hold outside
  Value* saved = guard_;
  guard_ = saved ? b_.CreateAnd(fit(saved, e.lanes()), fit(condition, e.lanes())) : condition;
  Value* v = value(e);
  guard_ = saved;
  memo_ = std::move(saved_memo);
  return v;
}

Value* ValueEmitter::make_select(const Select& s) {
  // A broadcast condition guards whole vectors as a scalar.
  Expr scalar = s.condition;
  if (const auto* broadcast = scalar.as<Broadcast>(); broadcast && broadcast->value.lanes() == 1)
    scalar = broadcast->value;
  Value* condition = value(scalar);
  Value* a = guarded(condition, s.a);
  Value* other = reads_memory(s.b) ? guarded(b_.CreateNot(condition), s.b) : value(s.b);
  return b_.CreateSelect(condition, a, other);
}

// Shifted left by one, the bits of an f32 order as its magnitude does, with infinities and NaNs last. Their
// maximum over a function, which SROA keeps in registers, tells whether the function met one.
Value* ValueEmitter::watch(const Unary& e) {
  Value* v = value(e.value);
  if (e.type.dtype != DType::kFloat32) return v;
  llvm::Type* bits = type_of({DType::kInt32, e.type.lanes});
  Value*& largest = f_.watched[e.type.lanes];
  if (!largest) {
    llvm::BasicBlock& entry = f_.function->getEntryBlock();
    llvm::IRBuilder<> at(&entry, entry.begin());
    largest = at.CreateAlloca(bits, nullptr, "largest");
    at.CreateStore(llvm::Constant::getNullValue(bits), largest);
  }
  Value* magnitude = b_.CreateShl(b_.CreateBitCast(v, bits), 1);
  b_.CreateStore(
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b_.CreateLoad(bits, largest), magnitude),
      largest);
  return v;
}

void ValueEmitter::note_watched() {
  constexpr uint32_t kInfinity = 0xff000000;  // shifted left by one
  if (f_.watched.empty()) return;
  Value* largest = b_.getInt32(0);
  for (const auto& [lanes, memory] : f_.watched) {
    Value* of_lanes = b_.CreateLoad(type_of({DType::kInt32, lanes}), memory);
    if (lanes > 1) of_lanes = b_.CreateIntMaxReduce(of_lanes, /*IsSigned=*/false);
    largest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, largest, of_lanes);
  }
  auto* note = llvm::BasicBlock::Create(b_.getContext(), "not.finite", f_.function);
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "finite", f_.function);
  b_.CreateCondBr(b_.CreateICmpUGE(largest, b_.getInt32(kInfinity)), note, exit);
  b_.SetInsertPoint(note);
  constexpr size_t kField = offsetof(TwKernelContext, not_finite);
  Value* field = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), f_.context, kField);
  auto* store = b_.CreateAlignedStore(b_.getInt32(1), field, llvm::Align(4));
  store->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateBr(exit);
  b_.SetInsertPoint(exit);
}

}  // namespace tilewright::cpu
