// The tile rule: constants packed in the order in which the tile reads them.
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/tile_rule.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

// GEMM panel packing as a layout of the constant: [j / width][reduction axes ...][j % width], plus
// [terms] innermost for dot products, so that the micro-kernel reads B as one stream.
void TileRule::pack_operands() {
  const auto is_unpacked = [&](const BlockAccess& a) {
    return !a.write && s_.is_constant(a.buffer) && a.buffer->layout.empty();
  };
  const auto accesses = block_accesses(block_);
  if (std::none_of(accesses.begin(), accesses.end(), is_unpacked)) return;
  // Dot products read groups of terms that lie side by side.
  if (!dot_ && !s_.decide_whether(loop("pack"), true, Bits::kKept)) return;
  for (const BlockAccess& a : accesses) {
    if (!is_unpacked(a)) continue;
    size_t j_dim = a.indices.size();
    std::vector<int64_t> numbers, inner;
    bool plain = true;
    int64_t groups = 0;
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (const auto group = columns_from(a.indices[d]))
        j_dim = j_dim == a.indices.size() ? (groups = *group, d) : j_dim;
      else
        plain &= !uses_var(a.indices[d], block_.axes[parallel_[j_]].var);
    if (!plain || j_dim == a.indices.size()) continue;
    const auto dim = static_cast<int64_t>(j_dim);
    int64_t width = tile_.vectors * lanes_;
    if (groups % width != 0) width = groups;  // panels as wide as a group, that none crosses
    std::vector<bool> used(a.indices.size());
    used[j_dim] = true;
    const size_t last = reduce_.empty() ? 0 : reduce_in_order().back();
    int64_t last_dim = -1;
    for (size_t r : reduce_in_order()) {
      for (size_t d = 0; d < a.indices.size(); ++d)
        if (!used[d] && runs_along(a.indices[d], block_.axes[r].var)) {
          inner.insert(inner.end(), {static_cast<int64_t>(d), dot_ && r == last ? dot_ : 1, 0});
          if (r == last) last_dim = static_cast<int64_t>(d);
          used[d] = true;
        }
    }
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (!used[d]) numbers.insert(numbers.end(), {static_cast<int64_t>(d), 1, 0});
    const bool panels = starts_at_panels(a.buffer, j_dim, width);
    if (panels) numbers.insert(numbers.end(), {dim, width, 0});
    numbers.insert(numbers.end(), inner.begin(), inner.end());
    numbers.insert(numbers.end(), {dim, 1, panels ? width : 0});
    // Rows of a panel begin where vectors do.
    if (panels && !dot_ && width % lanes_ != 0)
      numbers.push_back((width + lanes_ - 1) / lanes_ * lanes_);
    if (dot_ && last_dim >= 0) numbers.insert(numbers.end(), {last_dim, 1, dot_});
    s_.attempt("transform_layout", {a.buffer->name}, numbers);
    s_.note(name_ + ": the constant '" + a.buffer->name + "' is packed in the order of the tile");
  }
}

// Do all blocks begin to read the buffer along a dimension where a panel of columns begins? The gates
// of a recurrent step, of which several blocks read one matrix, need not.
bool TileRule::starts_at_panels(const Buffer& buffer, size_t dim, int64_t width) const {
  for (const BlockPlace& p : all_blocks(s_.kernel().body))
    for (const BlockAccess& a : block_accesses(*p.block))
      if (a.buffer == buffer && to_linear(a.indices[dim]).constant % width != 0) return false;
  return true;
}

// Columns from the start on: 0. From the start of a group of them: how many it has.
std::optional<int64_t> TileRule::columns_from(const Expr& index) const {
  const BlockAxis& columns = block_.axes[parallel_[j_]];
  const Linear l = to_linear(index);
  const auto step = l.coefficient_of(columns.var);
  if (!step || !step->is_constant() || step->constant != 1) return std::nullopt;
  const Expr start = to_expr(l.without(columns.var));
  if (is_zero(start)) return 0;
  const auto group = as_int(columns.extent);
  return group && !uses_var(start, columns.var) && is_multiple(start, *group) ? group
                                                                              : std::nullopt;
}

bool TileRule::runs_along(const Expr& index, const Var& axis) const {
  const Linear l = to_linear(index);
  const auto step = l.coefficient_of(axis);
  if (!step || !step->is_constant() || step->constant != 1) return false;
  const Expr start = to_expr(l.without(axis));
  return std::none_of(reduce_.begin(), reduce_.end(),
                      [&](size_t r) { return uses_var(start, block_.axes[r].var); });
}

}  // namespace tilewright::passes
