// Copies into panels: as many columns side by side as a tile of a product has, row after row (BLIS's packing
// of B, done at run time for operands that are no constants).
#include <algorithm>

#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// [k, n] becomes [n / width, k, width]; where rows go along several dimensions, as a window and its channels do,
// [n / width, rows ..., width]. What has its columns as rows, [n, k], is transposed by squares: a
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
    const size_t rank = block_.axes.size();
    if (!store.write || rank < 2 || layout.size() != rank + 1) return false;
    const LayoutAxis &panel = layout.front(), &column = layout.back();
    bytes_ = byte_size(store.buffer->dtype);
    lanes_ = s_.machine().lanes(bytes_);
    if (column.divisor != 1 || column.modulus % lanes_ != 0 || column.modulus == 0 ||
        panel.dim != column.dim || panel.divisor != column.modulus)
      return false;
    width_ = column.modulus;
    for (size_t k = 1; k <= rank; ++k) {
      const auto axis = axis_of(store, layout[k].dim);
      if (!axis) return false;
      if (k == rank) {
        across_ = *axis;
      } else {
        if (layout[k].divisor != 1 || layout[k].modulus != 0) return false;
        down_.push_back(*axis);
      }
    }
    const size_t row = down_.back();
    for (const BlockAccess& a : accesses)
      transposes_ |=
          !a.write && a.stride(row) == 1 && a.strides[across_] && !is_zero(a.strides[across_]);
    return transposes_ || std::none_of(accesses.begin(), accesses.end(), [&](const BlockAccess& a) {
             return !a.write && a.stride(across_) != 1 && a.stride(across_) != 0;
           });
  }
  // The axis that alone indexes a dimension.
  std::optional<size_t> axis_of(const BlockAccess& store, int dim) const {
    for (size_t k = 0; k < block_.axes.size(); ++k)
      if (store.indices[static_cast<size_t>(dim)].same_as(block_.axes[k].var) &&
          block_.axes[k].kind == AxisKind::kParallel && !loop_of_axis(block_, k).empty())
        return k;
    return std::nullopt;
  }

  bool write() override {
    const std::string across = loop_of_axis(block_, across_),
                      down = loop_of_axis(block_, down_.back());
    std::vector<std::string> order{loop("panel")}, ones;
    for (size_t k = 0; k + 1 < down_.size(); ++k)
      (is_one(block_.axes[down_[k]].extent) ? ones : order)
          .push_back(loop_of_axis(block_, down_[k]));
    std::vector<std::string> inside{down, loop("vector"), loop("lane")};
    if (!s_.apply("split", {across, loop("panel"), loop("column")}, {width_}) ||
        !s_.apply("split", {loop("column"), loop("vector"), loop("lane")}, {lanes_}))
      return false;
    if (transposes_) {
      const int64_t line = std::max(kCacheLine / bytes_, lanes_);
      if (!s_.apply("split", {down, loop("line"), loop("of_line")}, {line}) ||
          !s_.apply("split", {loop("of_line"), loop("square"), loop("row")}, {lanes_}))
        return false;
      inside = {loop("line"), loop("vector"), loop("square"), loop("row"), loop("lane")};
    }
    inside.insert(inside.begin() + 1, ones.begin(), ones.end());  // threads share out none of these
    order.insert(order.end(), inside.begin(), inside.end());
    if (!s_.apply("reorder", order) || !s_.apply("vectorize", {loop("lane")}) ||
        (transposes_ && !s_.apply("unroll", {loop("row")})))
      return false;
    s_.note(name_ + ": into panels of " + std::to_string(width_) + " columns" +
            (transposes_ ? ", transposed in registers" : ""));
    share_out({order[0], order[1]});
    // Lines that are stored by halves would be read first.
    if (!transposes_ || lanes_ * bytes_ == kCacheLine) store_copy_past_caches(s_, name_);
    return true;
  }

  size_t across_ = 0;         // axis along the columns
  std::vector<size_t> down_;  // those along the rows, outermost first
  int64_t width_ = 1, lanes_ = 1;
  int bytes_ = 4;  // of an element
  bool transposes_ = false;
};

}  // namespace

std::optional<Taken> take_panels(ScheduleState& s, const Work& work) {
  return take_block<PanelsRule>(s, work);
}

}  // namespace tilewright::passes
