// Stores, streamed past the caches or not, and prefetches. The form of a store follows from the shape of its index, as
// that of a load does (emit_values.cpp).
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_values.h"
#include "codegen/cpu/lane_indices.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "runtime/kernel_abi.h"

namespace tilewright::cpu {

using namespace ir;
using llvm::Value;

void ValueEmitter::store(const Store& s) {
  stored_ = s.buffer.get();
  if (store_interleaved(s)) return;
  const ScalarType t{s.buffer->dtype, std::max(s.indices[0].lanes(), s.value.lanes())};
  Value* stored = to_memory(splat(value(s.value), t.lanes), t);
  Value* mask = s.mask ? value(s.mask) : nullptr;
  if (t.lanes == 1) {
    if (mask) return store_if(mask, s, stored);
    b_.CreateAlignedStore(stored, place(s.buffer, value(s.indices[0])), alignment(s.buffer));
    return;
  }
  if (mask) mask = splat(mask, t.lanes);
  if (Value* p = contiguous_place(s.buffer, s.indices[0])) {
    if (mask)
      b_.CreateMaskedStore(stored, p, alignment(s.buffer), mask);
    else if (can_stream(s, t))
      mark_streamed(
          b_.CreateAlignedStore(stored, p, llvm::Align(static_cast<uint64_t>(register_bytes(t)))));
    else
      b_.CreateAlignedStore(stored, p, alignment(s.buffer));
    return;
  }
  Value* pointers = place(s.buffer, value(s.indices[0]));
  b_.CreateMaskedScatter(stored, pointers, alignment(s.buffer), mask);
}

int ValueEmitter::register_bytes(ScalarType t) const {
  return std::min(t.lanes * byte_size(t.dtype), machine_.vector_bytes);
}

// Whole registers at whole multiples of their size: results start aligned (kernel_abi.h).
bool ValueEmitter::can_stream(const Store& s, ScalarType t) const {
  const int bytes = register_bytes(t);
  return s.store_kind == StoreKind::kStreamed && bytes >= 16 &&
         std::has_single_bit(static_cast<unsigned>(bytes)) &&
         t.lanes * byte_size(t.dtype) % bytes == 0 &&
         is_multiple(s.indices[0].as<Ramp>()->base, bytes / byte_size(t.dtype));
}

// A non-temporal store: MOVNTPS writes whole lines past the caches, without reading them first.
void ValueEmitter::mark_streamed(llvm::Instruction* store) {
  auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b_.getContext(), one));
  f_.streams = true;
}

void ValueEmitter::store_if(Value* condition, const Store& s, Value* stored) {
  Value* p = address(s.buffer, s.indices[0]);
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "store", f_.function);
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "stored", f_.function);
  b_.CreateCondBr(condition, then, exit);
  b_.SetInsertPoint(then);
  b_.CreateAlignedStore(stored, p, alignment(s.buffer));
  b_.CreateBr(exit);
  b_.SetInsertPoint(exit);
}

// Brings the lines `ahead` of contiguous lanes of a load that start at p into the caches. Into all: what
// is to pass by the outer ones (prefetchnta) is in the first cache alone on processors whose outer
// ones hold nothing else's lines, in one of its ways, and gone before it is read: layer_norm of 3 MB
// took 3.2 times as long so (Sapphire Rapids), and what others gained was no more than noise (Zen 5).
void ValueEmitter::prefetch(const Load& l, int lanes, Value* p) {
  if (!l.ahead) return;
  const int64_t each = byte_size(l.type.dtype), from = l.ahead * each;
  for (int64_t at = from; at < from + lanes * each; at += kCacheLine)
    prefetch_line(b_.CreateGEP(b_.getInt8Ty(), p, b_.getInt64(static_cast<uint64_t>(at))),
                  ir::PrefetchKind::kNear);
}
void ValueEmitter::prefetch(const ir::Prefetch& p) {
  prefetch_line(b_.CreateGEP(type_of({p.buffer->dtype, 1}, true), place(p.buffer, b_.getInt64(0)),
                             value(p.offset)),  // may lie outside
                p.prefetch_kind);
}
void ValueEmitter::prefetch_line(Value* line, ir::PrefetchKind kind) {
  const bool writes = kind == ir::PrefetchKind::kWrite;
  const uint32_t locality = kind == ir::PrefetchKind::kOuter ? 2 : 3;  // prefetcht1, prefetcht0
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {line->getType()},
                     {line, b_.getInt32(writes ? 1 : 0), b_.getInt32(locality), b_.getInt32(1)});
}

}  // namespace tilewright::cpu
