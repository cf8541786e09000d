// The tile rule: sums of products that one instruction takes several terms of.
#include "passes/cost/tile_cost.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

// VPDPBUSD and its relatives need groups of terms contiguous in both operands: A as it lies, B
// constant (packed by us) or packed by pack_operands.
int64_t TileRule::terms_of_dot() {
  if (reduce_.empty()) return 0;
  const size_t inner = reduce_in_order().back();
  const auto extent = as_int(block_.axes[inner].extent);
  DType left = DType::kInt32, right = left;
  packed_lanes_ = 0;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    const int64_t packed = packed_lanes(a, inner);
    if (packed) packed_lanes_ = packed;
    if (packed || (s_.is_constant(a.buffer) && a.buffer->layout.empty()))
      right = a.buffer->dtype;
    else if (a.strides[inner] && is_one(a.strides[inner]) && a.strides[parallel_[j_]] &&
             is_zero(a.strides[parallel_[j_]]))
      left = a.buffer->dtype;
  }
  const int64_t terms = dot_terms(left);
  bool fits = right == dot_partner(left) || (right == DType::kInt8 && left == DType::kInt16);
  fits &= block_.body.as<Store>()->buffer->dtype == dot_sum(left);
  // Where there is no instruction, bf16 is widened and multiplied as f32.
  if (left == DType::kBFloat16) fits &= s_.machine().has("avx512bf16") && !s_.sum_order(name_);
  if (!terms || !fits || !extent || *extent % terms != 0) return 0;
  if (!s_.decide_whether(loop("dot"), true, bits_of_order(block_))) return 0;
  left_ = left;
  depth_ = *extent;
  return terms;
}

// The layout itself says so: [..., columns / lanes, terms / 4, lanes, 4].
int64_t TileRule::packed_lanes(const BlockAccess& a, size_t reduce) const {
  const Layout& layout = a.buffer->layout;
  if (layout.size() < 2) return 0;
  const LayoutAxis &term = layout.back(), &column = layout[layout.size() - 2];
  auto moves = [&](const LayoutAxis& l, size_t axis) {
    return a.indices[static_cast<size_t>(l.dim)].same_as(block_.axes[axis].var);
  };
  const int64_t most = s_.machine().lanes(byte_size(dot_sum(DType::kUInt8)));
  const bool fits = term.divisor == 1 && term.modulus == dot_terms(DType::kUInt8) &&
                    moves(term, reduce) && column.divisor == 1 && moves(column, parallel_[j_]) &&
                    column.modulus >= kFewestLanes && column.modulus <= most &&
                    most % column.modulus == 0;
  return fits ? column.modulus : 0;
}

}  // namespace tilewright::passes
