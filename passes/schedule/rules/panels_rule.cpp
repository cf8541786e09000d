// Copies into panels: as many columns side by side as a tile of a product has, row after row (BLIS's packing
// of B, done at run time for operands that are no constants).
#include <algorithm>

#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// [k, n] becomes [n / width, k, width]. What has its columns as rows, [n, k], is transposed by squares: a
// line of the cache of as many rows as a vector has lanes, since lines a power of two apart push one another
// out of the cache.
class PanelsRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  bool applies() override {
    const auto accesses = block_accesses(block_);
    const BlockAccess& store = accesses.back();
    const Layout& layout = store.buffer->layout;
    if (!store.write || layout.size() != 3 || block_.axes.size() != 2) return false;
    const LayoutAxis &panel = layout[0], &row = layout[1], &column = layout[2];
    bytes_ = byte_size(store.buffer->dtype);
    lanes_ = s_.machine().lanes(bytes_);
    if (column.divisor != 1 || column.modulus % lanes_ != 0 || column.modulus == 0 ||
        panel.dim != column.dim || panel.divisor != column.modulus || row.dim == column.dim)
      return false;
    width_ = column.modulus;
    const auto is_axis = [&](size_t axis, int dim) {
      const BlockAxis& a = block_.axes[axis];
      return a.kind == AxisKind::kParallel && !loop_of_axis(block_, axis).empty() &&
             store.indices[static_cast<size_t>(dim)].same_as(a.var);
    };
    across_ = is_axis(0, column.dim) ? 0 : 1;
    if (!is_axis(across_, column.dim) || !is_axis(1 - across_, row.dim)) return false;
    for (const BlockAccess& a : accesses)
      transposes_ |= !a.write && a.strides[1 - across_] && is_one(a.strides[1 - across_]) &&
                     a.strides[across_] && !is_zero(a.strides[across_]);
    return true;
  }

  bool write() override {
    constexpr int64_t kLineBytes = 64;
    const std::string across = loop_of_axis(block_, across_),
                      down = loop_of_axis(block_, 1 - across_);
    std::vector<std::string> order{loop("panel"), down, loop("vector"), loop("lane")};
    if (!s_.apply("split", {across, loop("panel"), loop("column")}, {width_}) ||
        !s_.apply("split", {loop("column"), loop("vector"), loop("lane")}, {lanes_}))
      return false;
    if (transposes_) {
      const int64_t line = std::max(kLineBytes / bytes_, lanes_);
      if (!s_.apply("split", {down, loop("line"), loop("of_line")}, {line}) ||
          !s_.apply("split", {loop("of_line"), loop("square"), loop("row")}, {lanes_}))
        return false;
      order = {loop("panel"),  loop("line"), loop("vector"),
               loop("square"), loop("row"),  loop("lane")};
    }
    if (!s_.apply("reorder", order) || !s_.apply("vectorize", {loop("lane")}) ||
        (transposes_ && !s_.apply("unroll", {loop("row")})))
      return false;
    s_.note(name_ + ": into panels of " + std::to_string(width_) + " columns" +
            (transposes_ ? ", transposed in registers" : ""));
    share_out({loop("panel"), order[1]});
    // Lines that are stored by halves would be read first.
    if (!transposes_ || lanes_ * bytes_ == kLineBytes) store_copy_past_caches(s_, name_);
    return true;
  }

  size_t across_ = 0;  // axis along the columns; the other one runs along the rows
  int64_t width_ = 1, lanes_ = 1;
  int bytes_ = 4;  // of an element
  bool transposes_ = false;
};

}  // namespace

std::optional<Taken> take_panels(ScheduleState& s, const Work& work) {
  return take_block<PanelsRule>(s, work);
}

}  // namespace tilewright::passes
