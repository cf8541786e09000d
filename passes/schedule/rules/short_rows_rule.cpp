// Results in short rows, each element of which comes from a plane of its own: the windows of a convolution's
// weights, which are computed window by window.
#include <algorithm>

#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// [window, c, o] to [o, c, window]: vectors run along what is read, and each of their lanes is stored by
// itself. A block of a line of the cache of what is read by as many short rows makes whole lines on both
// sides, while they are in the first cache:
//
//    for o / 16, c / 16: for window: for c in 16: for o in 16: result[o, c, window] = plane[window, c, o]
class ShortRowsRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  // window_: the axes of a short row; rows_: the axis that steps over such rows; down_: along what is read.
  bool applies() override {
    constexpr int64_t kLongest = 16;  // elements of a row: longer ones are squares
    const auto accesses = block_accesses(block_);
    const BlockAccess& store = accesses.back();
    std::vector<size_t> axes;
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      if (loop_of_axis(block_, i).empty() || !store.stride(i)) return false;
      if (!is_one(block_.axes[i].extent)) axes.push_back(i);
    }
    std::stable_sort(axes.begin(), axes.end(),
                     [&](size_t a, size_t b) { return *store.stride(a) < *store.stride(b); });
    int64_t row = 1;
    for (size_t i : axes) {
      if (*store.stride(i) != row || row * extent(i) > kLongest) break;
      row *= extent(i);
      window_.push_back(i);
    }
    if (row < 2 || window_.size() == axes.size()) return false;
    rows_ = axes[window_.size()];
    if (*store.stride(rows_) != row) return false;
    down_ = block_.axes.size();
    for (const BlockAccess& a : accesses) {
      bytes_ = std::max(bytes_, byte_size(a.buffer->dtype));
      if (a.write) continue;
      for (size_t i : axes)
        if (i != rows_ && a.stride(i) == 1 && extent(i) >= s_.machine().lanes(bytes_) &&
            std::find(window_.begin(), window_.end(), i) == window_.end())
          down_ = i;
      for (size_t i : window_)  // side by side in what is read, too
        if (a.stride(i) == 1) return false;
    }
    for (size_t i : axes)
      if (i != rows_ && i != down_ && std::find(window_.begin(), window_.end(), i) == window_.end())
        outer_.push_back(i);
    return down_ != block_.axes.size();
  }

  bool write() override {
    constexpr int64_t kLine = 64;
    const int64_t lanes = s_.machine().lanes(bytes_), line = std::max(kLine / bytes_, lanes);
    if (!s_.apply("split", {loop_of_axis(block_, down_), loop("db"), loop("dt")}, {line}) ||
        !s_.apply("split", {loop("dt"), loop("dv"), loop("lane")}, {lanes}) ||
        !s_.apply("split", {loop_of_axis(block_, rows_), loop("rb"), loop("row")}, {line}))
      return false;
    std::vector<std::string> order, tasks;
    for (size_t i : outer_) order.push_back(loop_of_axis(block_, i));
    order.insert(order.end(), {loop("db"), loop("rb")});
    tasks = order;
    for (size_t k = window_.size(); k-- > 0;) order.push_back(loop_of_axis(block_, window_[k]));
    order.insert(order.end(), {loop("row"), loop("dv"), loop("lane")});
    if (!s_.apply("reorder", order) || !s_.apply("vectorize", {loop("lane")})) return false;
    s_.note(name_ + ": rows of a few elements, each stored by itself, of vectors that are read");
    share_out(tasks);
    return true;
  }

  std::vector<size_t> window_, outer_;
  size_t rows_ = 0, down_ = 0;
  int bytes_ = 1;  // of the widest element
};

}  // namespace

std::optional<Taken> take_short_rows(ScheduleState& s, const Work& work) {
  return take_block<ShortRowsRule>(s, work);
}

}  // namespace tilewright::passes
