// Results in short rows, each element of which comes from a plane of its own: the windows of a convolution's
// weights, which are computed window by window.
#include <algorithm>
#include <numeric>

#include "passes/loops/strided_stores.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// [window, c, o] to [o, c, window]. A block of a line of the cache of what is read by as many short rows makes whole
// lines on both sides, while they are in the first cache:
//
//    for o / 16, c / 16:
//      for window: for o in 16: square[window, o, c] = plane[window, c, o]      transposed in registers
//      for o in 16: result[o, c, window] = square[window, o, c]                 one interleaved stretch
//
// Where no interleaved access stores a vector of such rows, each lane of what is read is stored by itself:
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
    const int64_t lanes = s_.machine().lanes(bytes_), line = std::max(kCacheLine / bytes_, lanes);
    const bool squares =
        is_a_stretch(lanes) && s_.all_or_nothing([&] { return write_squares(lanes, line); });
    if (!squares && !write_lanes(lanes, line)) return false;
    std::vector<std::string> tasks;
    const BlockPlace p = s_.place(name_);
    for (const For* f : p.loops) {
      tasks.push_back(f->var.name());
      if (tasks.back() == loop("rb")) break;
    }
    share_out(tasks);
    return true;
  }
  // The dimension of the result that an axis alone is the index of; -1: there is none.
  int64_t dim_of(size_t axis) const {
    const BlockAccess store = block_accesses(block_).back();
    for (size_t d = 0; d < store.indices.size(); ++d)
      if (store.indices[d].same_as(block_.axes[axis].var)) return static_cast<int64_t>(d);
    return -1;
  }
  bool is_a_stretch(int64_t lanes) const {
    const Buffer& result = block_.body.as<Store>()->buffer;
    int64_t row = 1;
    for (size_t i : window_) row *= extent(i);
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (dim_of(i) < 0) return false;
    return row <= lanes && row * bytes_ <= kWidestGroup && result->layout.empty() &&
           result->shape.size() == block_.axes.size();
  }
  bool write_squares(int64_t lanes, int64_t line) {
    const std::string square = loop("square"), rows = loop("rows");
    std::vector<int64_t> layout;
    const auto lay = [&](size_t i) { layout.insert(layout.end(), {dim_of(i), 1, 0}); };
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (i != down_ && i != rows_) lay(i);
    lay(down_);
    lay(rows_);
    std::vector<size_t> of_rows;
    for (size_t i = 0; i < block_.axes.size(); ++i)
      of_rows.push_back(static_cast<size_t>(dim_of(i)));
    if (!s_.apply("cache_write", {name_, square, rows}) ||
        !s_.apply("transform_layout", {square}, layout))
      return false;
    std::vector<size_t> own(block_.axes.size());
    std::iota(own.begin(), own.end(), size_t{0});
    if (!order_loops(name_, own, false, lanes, line) ||
        !order_loops(rows, of_rows, true, lanes, line) ||
        !s_.apply("fuse_loops", {rows, loop("rb")}))
      return false;
    store_copy_past_caches(s_, rows);
    s_.note(name_ + ": squares of " + std::to_string(lanes) + " x " + std::to_string(lanes) +
            ", whose rows in all planes are stored as one");
    return true;
  }
  // Of a block that goes through squares; axes: its own, by those of the rule's block.
  bool order_loops(const std::string& block, const std::vector<size_t>& axes, bool windows_inside,
                   int64_t lanes, int64_t line) {
    const Block b = *s_.place(block).block;
    const auto part = [&](const char* label) { return block + "." + label; };
    if (!s_.apply("split", {loop_of_axis(b, axes[down_]), part("db"), part("dt")}, {line}) ||
        !s_.apply("split", {part("dt"), part("do"), part("di")}, {lanes}) ||
        !s_.apply("split", {loop_of_axis(b, axes[rows_]), part("rb"), part("rv")}, {lanes}))
      return false;
    std::vector<std::string> loops, windows, tile{part("do"), part("di")};
    for (size_t i : outer_) loops.push_back(loop_of_axis(b, axes[i]));
    for (size_t k = window_.size(); k-- > 0;) windows.push_back(loop_of_axis(b, axes[window_[k]]));
    tile.insert(windows_inside ? tile.end() : tile.begin(), windows.begin(), windows.end());
    loops.insert(loops.end(), {part("db"), part("rb")});
    loops.insert(loops.end(), tile.begin(), tile.end());
    loops.push_back(part("rv"));
    if (!s_.apply("reorder", loops) || !s_.apply("vectorize", {part("rv")})) return false;
    if (!windows_inside) return s_.apply("unroll", {part("di")});
    return std::all_of(windows.begin(), windows.end(),
                       [&](const std::string& w) { return s_.apply("unroll", {w}); });
  }
  bool write_lanes(int64_t lanes, int64_t line) {
    if (!s_.apply("split", {loop_of_axis(block_, down_), loop("db"), loop("dt")}, {line}) ||
        !s_.apply("split", {loop("dt"), loop("dv"), loop("lane")}, {lanes}) ||
        !s_.apply("split", {loop_of_axis(block_, rows_), loop("rb"), loop("row")}, {line}))
      return false;
    std::vector<std::string> order;
    for (size_t i : outer_) order.push_back(loop_of_axis(block_, i));
    order.insert(order.end(), {loop("db"), loop("rb")});
    for (size_t k = window_.size(); k-- > 0;) order.push_back(loop_of_axis(block_, window_[k]));
    order.insert(order.end(), {loop("row"), loop("dv"), loop("lane")});
    if (!s_.apply("reorder", order) || !s_.apply("vectorize", {loop("lane")})) return false;
    s_.note(name_ + ": rows of a few elements, each stored by itself, of vectors that are read");
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
