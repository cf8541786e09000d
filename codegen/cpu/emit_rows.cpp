// Rows of memory whose columns are vectors, and vectors stored lane by lane in turn: whole rows are
// moved, and shuffles put the lanes in order.
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <bit>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_values.h"
#include "codegen/cpu/transpose_steps.h"
#include "ir/loops/linear.h"

namespace tilewright::cpu {

using namespace ir;
using llvm::Value;

namespace {

// The mask that all parts have; null where they differ.
Expr mask_of_part(const Expr& mask, int parts) {
  const auto* all = mask.as<Interleave>();
  if (!all || static_cast<int>(all->parts.size()) != parts) return nullptr;
  const auto same = [&](const Expr& e) { return same_expr(e, all->parts[0]); };
  return std::all_of(all->parts.begin(), all->parts.end(), same) ? all->parts[0] : Expr();
}

}  // namespace

bool ValueEmitter::bind_columns(const Let& l) {
  const auto* from = l.value.as<Load>();
  const auto* rows = from ? from->indices[0].as<Ramp>() : nullptr;
  const auto* row = rows ? rows->base.as<Ramp>() : nullptr;
  if (!row || !is_one(row->stride)) return false;
  columns_[l.var.get()] = columns_of(*from, *rows, row->type.lanes);
  return true;
}

// `rows`: the index, rows of n elements each.
// Three ways, the cheapest first: transpose a square in registers, de-interleave one contiguous
// vector, or gather each column.
std::vector<Value*> ValueEmitter::columns_of(const Load& l, const Ramp& rows, int n) {
  const int count = l.type.lanes / n;
  if (!l.mask && count == n && n >= 4 && std::has_single_bit(static_cast<unsigned>(n)))
    return turned(l, rows, n);
  if (as_int(rows.stride) == n && (!l.mask || mask_of_part(l.mask, n)))
    return deinterleaved(l, rows, n);
  std::vector<Value*> columns;
  for (int k = 0; k < n; ++k) {
    const Expr index = ramp(rows.base.as<Ramp>()->base + Expr(k), rows.stride, count);
    const Expr mask = l.mask ? ir::every_lane(l.mask, k, n) : Expr();
    columns.push_back(value(keep(load_vector(l.buffer, index, mask))));
  }
  return columns;
}

// Of a square: its rows are read and transposed in registers.
std::vector<Value*> ValueEmitter::turned(const Load& l, const Ramp& rows, int n) {
  const ScalarType t{l.type.dtype, n};
  Value *top = address(l.buffer, rows.base.as<Ramp>()->base), *stride = value(rows.stride);
  std::vector<Value*> vectors;
  for (int i = 0; i < n; ++i) {
    Value* row = b_.CreateInBoundsGEP(type_of({l.buffer->dtype, 1}, true), top,
                                      b_.CreateMul(stride, b_.getInt64(static_cast<uint64_t>(i))));
    vectors.push_back(b_.CreateAlignedLoad(type_of(t, true), row, alignment(l.buffer)));
    prefetch(l, n, row);
  }
  for (const auto& step : transpose_steps(n, std::min(n, 16 / byte_size(t.dtype)))) {
    std::vector<Value*> next;
    for (const Shuffle& s : step)
      next.push_back(b_.CreateShuffleVector(vectors[static_cast<size_t>(s.x)],
                                            vectors[static_cast<size_t>(s.y)], s.lanes));
    vectors = std::move(next);
  }
  for (Value*& v : vectors) v = from_memory(v, t);
  return vectors;
}

// Of rows without gaps: all of them are one vector.
std::vector<Value*> ValueEmitter::deinterleaved(const Load& l, const Ramp& rows, int n) {
  Value *p = address(l.buffer, rows.base.as<Ramp>()->base),
        *mask = l.mask ? value(mask_of_part(l.mask, n)) : nullptr;
  llvm::Type* type = type_of(l.type, true);
  Value* all = mask ? static_cast<Value*>(b_.CreateMaskedLoad(type, p, alignment(l.buffer),
                                                              each_repeated(b_, mask, n),
                                                              llvm::Constant::getNullValue(type)))
                    : b_.CreateAlignedLoad(type, p, alignment(l.buffer));
  std::vector<Value*> columns;
  for (int k = 0; k < n; ++k)
    columns.push_back(from_memory(emit_every(b_, all, k, n), {l.type.dtype, l.type.lanes / n}));
  return columns;
}

Value* ValueEmitter::every_lane(const EveryLane& e) {
  auto it = columns_.find(e.value.get());
  if (it != columns_.end() && static_cast<int64_t>(it->second.size()) == e.step)
    return it->second[static_cast<size_t>(e.first)];
  return emit_every(b_, value(e.value), static_cast<int>(e.first), static_cast<int>(e.step));
}

Value* ValueEmitter::interleaved(const Interleave& e) {
  std::vector<Value*> parts;
  for (const Expr& p : e.parts) parts.push_back(value(p));
  return emit_interleaved(b_, parts);
}

// False where the store is of another form.
bool ValueEmitter::store_interleaved(const Store& s) {
  const auto* all = s.value.as<Interleave>();
  const auto* index = s.indices[0].as<Ramp>();
  if (!all || !index || !is_one(index->stride) || index->base.lanes() != 1 ||
      s.buffer->dtype == DType::kBool)
    return false;
  const int n = static_cast<int>(all->parts.size());
  const Expr mask = s.mask ? mask_of_part(s.mask, n) : Expr();
  if (s.mask && !mask) return false;
  std::vector<Value*> parts;
  for (const Expr& p : all->parts) parts.push_back(value(p));
  // As wide numbers where there are such, which takes no shuffles.
  const bool joins =
      n * byte_size(s.buffer->dtype) <= 8 && std::has_single_bit(static_cast<unsigned>(n));
  Value *together = joins ? emit_joined(b_, parts) : emit_interleaved(b_, parts),
        *p = address(s.buffer, index->base);
  if (mask) {
    Value* of_part = value(mask);
    b_.CreateMaskedStore(together, p, alignment(s.buffer),
                         joins ? of_part : each_repeated(b_, of_part, n));
  } else if (const ScalarType t{s.buffer->dtype, index->type.lanes}; can_stream(s, t)) {
    mark_streamed(
        b_.CreateAlignedStore(together, p, llvm::Align(static_cast<uint64_t>(register_bytes(t)))));
  } else {
    b_.CreateAlignedStore(together, p, alignment(s.buffer));
  }
  return true;
}

}  // namespace tilewright::cpu
