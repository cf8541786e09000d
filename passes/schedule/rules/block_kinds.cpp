// Classifying blocks by their strides. The questions are those of arithmetic intensity: is an
// operand shared by many results (stride 0 along an axis: worth a register tile), does the
// reduction run along memory (dot products, rows), or do results (columns)?
#include "passes/schedule/rules/block_kinds.h"

#include <algorithm>

namespace tilewright::passes {

using namespace ir;

bool is_reduction(const Block& b) {
  return std::any_of(b.axes.begin(), b.axes.end(),
                     [](const BlockAxis& a) { return a.kind == AxisKind::kReduce; });
}
bool is_simple(const Block& b) {
  return b.body.as<Store>() != nullptr && (!b.init || b.init.as<Store>());
}
Applies kind_of(const Block& b) {
  if (!is_simple(b)) return Applies::kSeveralValues;
  return is_reduction(b) ? Applies::kReduction : Applies::kPointwise;
}

bool reduces_along_rows(const Block& b) {
  size_t inner = b.axes.size();
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (b.axes[i].kind == AxisKind::kReduce && !is_one(b.axes[i].extent)) inner = i;
  if (inner == b.axes.size()) return false;
  bool along = false;
  for (const BlockAccess& a : block_accesses(b)) {
    if (a.write || !a.strides[inner] || is_zero(a.strides[inner])) continue;
    if (!is_one(a.strides[inner])) return false;
    along = true;
  }
  // A result's axis that also runs along memory in all that is read is as good, and needs no
  // combining of lanes.
  return along;
}

namespace {

// GEMV: one vector for all results, and rows that are each read for one result and lie as they are:
// nothing to keep in a tile.
bool is_rows_by_vector(const ScheduleState& s, const Block& b,
                       const std::vector<BlockAccess>& accesses) {
  int64_t along = 1;  // extent of the innermost reduction: what one vector can take
  for (const BlockAxis& a : b.axes)
    if (a.kind == AxisKind::kReduce && !is_one(a.extent))
      along = extent_or(a.extent, kUnknownExtent);
  if (along < s.machine().lanes(4)) return false;
  bool vector = false;
  for (const BlockAccess& a : accesses) {
    if (a.write || a.buffer == b.body.as<Store>()->buffer) continue;
    bool moves = false;
    for (size_t i = 0; i < b.axes.size(); ++i)
      moves |= b.axes[i].kind == AxisKind::kParallel && !is_one(b.axes[i].extent) &&
               !(a.strides[i] && is_zero(a.strides[i]));
    if (moves && s.is_constant(a.buffer)) return false;
    vector |= !moves;
  }
  return vector;
}

}  // namespace

bool worth_a_tile(const ScheduleState& s, const Block& b) {
  const auto accesses = block_accesses(b);
  if (is_rows_by_vector(s, b, accesses)) return false;
  bool reused = false;
  for (const BlockAccess& a : accesses) {
    if (a.write || a.buffer == b.body.as<Store>()->buffer) continue;
    for (size_t i = 0; i < b.axes.size(); ++i)
      reused |= b.axes[i].kind == AxisKind::kParallel && a.strides[i] && is_zero(a.strides[i]) &&
                extent_or(b.axes[i].extent, kUnknownExtent) > 1;
  }
  constexpr size_t kOfAProduct = 4;  // sums read and written, two operands
  return reused && accesses.size() >= kOfAProduct;
}

bool gathers_for_nothing(const ScheduleState& s, const Block& b) {
  const auto accesses = block_accesses(b);
  const BlockAccess& store = accesses.back();
  for (size_t j = 0; j < b.axes.size(); ++j) {
    if (b.axes[j].kind != AxisKind::kParallel || is_one(b.axes[j].extent)) continue;
    if (!store.strides[j] || !is_one(store.strides[j])) continue;
    for (const BlockAccess& a : accesses) {
      if (a.write || a.buffer == store.buffer || !a.strides[j]) continue;
      if (s.is_constant(a.buffer)) continue;  // can be laid out as it suits
      if (is_zero(a.strides[j]) || is_one(a.strides[j])) continue;
      bool shared = false;
      for (size_t i = 0; i < b.axes.size(); ++i)
        shared |= b.axes[i].kind == AxisKind::kParallel && !is_one(b.axes[i].extent) &&
                  a.strides[i] && is_zero(a.strides[i]);
      if (!shared) return true;
    }
  }
  return false;
}

Bits bits_of_order(const Block& b) {
  const auto* st = b.body.as<Store>();
  const auto* update = st ? st->value.as<Binary>() : nullptr;
  if (!update) return is_reduction(b) ? Bits::kChanged : Bits::kKept;
  const bool sums = update->op == BinaryOp::kAdd || update->op == BinaryOp::kMul;
  return is_reduction(b) && sums && is_float(st->buffer->dtype) ? Bits::kChanged : Bits::kKept;
}

std::string epilogue_of(const ScheduleState& s, const std::string& block,
                        const std::vector<std::string>& names) {
  const auto* st = s.place(block).block->body.as<Store>();
  if (!st || st->buffer->scope == Scope::kParam) return "";
  std::string found;
  for (const std::string& n : names) {
    if (n == block || !s.has_block(n)) continue;
    const BlockPlace q = s.place(n);
    if (!touched(q.stmt).reads.count(st->buffer.get())) continue;
    if (!found.empty() || is_reduction(*q.block) || !is_simple(*q.block)) return "";
    found = n;
  }
  return found;
}

std::vector<std::string> block_names(const ScheduleState& s) {
  std::vector<std::string> names;
  for (const BlockPlace& p : all_blocks(s.kernel().body)) names.push_back(p.block->name);
  return names;
}

}  // namespace tilewright::passes
