// Squares of elements: what lies side by side in the result lies far apart in what is read.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Blocked transposition: a square of side lanes is read by rows, transposed in registers
// (group_accesses, transpose_steps) and stored by rows. What is left to decide is the order of
// squares, which is about TLB reach and whole cache lines: rows of large matrices lie in pages of
// their own.
class TransposeRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  static bool is_unit(const Expr& stride) { return stride && is_one(stride); }

  // across_: along the result; down_: along what is read.
  bool applies() override {
    bool conditional = false;
    for_each_expr(block_.body, [&](const Expr& e) { conditional |= e.as<Select>() != nullptr; });
    accesses_ = block_accesses(block_);
    const BlockAccess& store = accesses_.back();
    across_ = down_ = block_.axes.size();
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      if (loop_of_axis(block_, i).empty()) return false;
      if (is_unit(store.strides[i]) && extent(i) >= kFewest) across_ = i;
    }
    if (conditional || across_ == block_.axes.size()) return false;
    for (const BlockAccess& a : accesses_) {
      const Expr& along = a.strides[across_];
      if (a.write || !along || is_zero(along) || is_one(along)) continue;
      for (size_t i = 0; i < block_.axes.size(); ++i)
        if (i != across_ && is_unit(a.strides[i]) && extent(i) >= kFewest) down_ = i;
    }
    return down_ != block_.axes.size();
  }

  void decide() override {
    std::vector<bool> used(block_.axes.size());
    used[across_] = used[down_] = true;
    down_axes_ = with_outer(down_, used, accesses_);
    across_axes_ = with_outer(across_, used, accesses_);
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (!used[i]) outer_.push_back(i);
    std::stable_sort(outer_.begin(), outer_.end(), [&](size_t a, size_t b) {
      return stride_or_far(accesses_.back(), a) > stride_or_far(accesses_.back(), b);
    });
    int bytes = 4;
    for (const BlockAccess& a : accesses_) bytes = std::max(bytes, byte_size(a.buffer->dtype));
    const int64_t tall = elements(down_axes_), wide = elements(across_axes_),
                  widest = s_.machine().lanes(bytes);
    int64_t side = widest;
    for (int64_t n = widest / 2; n >= kFewest; n /= 2)
      if (cost(n, tall, wide, widest) < cost(side, tall, wide, widest)) side = n;
    side_ = s_.decide(loop("side"), with(powers_of_two(kFewest, widest), side), side, Bits::kKept);
    const Together usual = squares_at_a_time(bytes, side_, wide, tall);
    const int64_t most = 2 * kTogether;
    together_.along_result =
        s_.decide(loop("along_result"), with({1, 2, 4, 8, 16, most}, usual.along_result),
                  usual.along_result, Bits::kKept);
    together_.along_rows =
        s_.decide(loop("along_rows"), {0, 1, 2, kColumns, 8}, usual.along_rows, Bits::kKept);
  }
  int64_t elements(const std::vector<size_t>& axes) const {
    Expr n = 1;
    for (size_t i : axes) n = simplify(n * block_.axes[i].extent);
    return extent_or(n, kUnknownExtent);
  }

  bool write() override {
    if (side_ < kFewest) return false;
    std::vector<std::string> order;
    for (size_t i : outer_) order.push_back(loop_of_axis(block_, i));
    for (size_t k = down_axes_.size(); k-- > 0;)
      order.push_back(loop_of_axis(block_, down_axes_[k]));
    for (size_t k = across_axes_.size(); k-- > 0;)
      order.push_back(loop_of_axis(block_, across_axes_[k]));
    if (!s_.apply("reorder", order)) return false;
    const std::string rows = fuse(down_axes_, "d"), columns = fuse(across_axes_, "a");
    if (rows.empty() || columns.empty()) return false;
    return tile(rows, columns);
  }

  bool tile(const std::string& rows, const std::string& columns) {
    const auto [together, columns_read] = together_;
    std::string down = rows;
    std::vector<std::string> order{loop("ab"), loop("do"), loop("ao"), loop("di"), loop("av")};
    if (columns_read > 0) {
      down = loop("dt");
      order = {loop("ab"), loop("db"), loop("ao"), loop("do"), loop("di"), loop("av")};
      if (!s_.apply("split", {rows, loop("db"), down}, {columns_read * side_})) return false;
    }
    if (!s_.apply("split", {columns, loop("ab"), loop("at")}, {together * side_}) ||
        !s_.apply("split", {loop("at"), loop("ao"), loop("av")}, {side_}) ||
        !s_.apply("split", {down, loop("do"), loop("di")}, {side_}) ||
        !s_.apply("reorder", order) || !s_.apply("unroll", {loop("di")}) ||
        !s_.apply("vectorize", {loop("av")}))
      return false;
    s_.note(name_ + ": squares of " + std::to_string(side_) + " x " + std::to_string(side_) +
            " elements, read along their rows and stored along their columns");
    std::vector<std::string> tasks;
    for (size_t i : outer_) tasks.push_back(loop_of_axis(block_, i));
    tasks.push_back(order[0]);
    if (s_.machine().threads > 1) tasks.push_back(order[1]);  // one task has no need of divisions
    share_out(tasks);
    store_copy_past_caches(s_, name_);
    prefetch(columns_read * side_);
    return true;
  }

  // Squares of a side, each in terms of one of the widest. Halves of a vector take more instructions, and
  // a square costs the more the more of it is masked off; measured (Zen 5): 20 columns are five squares
  // of 4, 26 and 105 are squares of 8, 178 of 16.
  static double cost(int64_t side, int64_t tall, int64_t wide, int64_t widest) {
    constexpr double kMasked = 4, kHalves = 1.15, kQuarters = 1.5;
    const auto length = static_cast<double>(side);
    const auto squares = [&](int64_t n) {
      const int64_t rest = n % side;
      return static_cast<double>(n / side) +
             (rest ? 1 + kMasked * static_cast<double>(rest) / length : 0);
    };
    const double part = length / static_cast<double>(widest);
    return squares(tall) * squares(wide) * part * part *
           (part == 1     ? 1
            : part == 0.5 ? kHalves
                          : kQuarters);
  }

  // How many squares along a row of results are made one after the other, and how many along the
  // rows that are read before the next such rows are read; 0: all.
  struct Together {
    int64_t along_result, along_rows;
  };
  static int64_t squares_of(int64_t n, int64_t side) { return (n + side - 1) / side; }
  // `wide`, `tall`: elements of a row of results, and of a row that is read.
  Together squares_at_a_time(int bytes, int64_t side, int64_t wide, int64_t tall) const {
    const BlockAccess& store = accesses_.back();
    const auto pitch = store.stride(down_);
    auto at_most = [&](int64_t n) {
      return std::min(n, std::max<int64_t>(squares_of(wide, side), 1));
    };
    // In the second cache, and where rows of results share pages: two lines of each row, or all of it,
    // as long as that leaves no rest.
    const bool near = bytes_of(*store.buffer) <= s_.machine().l2_bytes;
    if (!pitch || *pitch * bytes < kPageBytes || (near && rows_in_a_stretch() > 0)) {
      const int64_t lines = std::max<int64_t>(2 * kCacheLine / (side * bytes), 1),
                    all = squares_of(wide, side);
      return {all <= 2 * lines             ? std::max<int64_t>(all, 1)
              : wide % (lines * side) == 0 ? lines
                                           : 1,
              tall % (2 * side) == 0 ? 2 : 0};
    }
    if (const int64_t rows = rows_in_a_stretch(); rows > 0)
      return {at_most(std::clamp<int64_t>(rows / side, 2, kTogether)), 0};
    // Where each row of results has pages of its own, some lines of a row are stored together, so
    // that pages change less often. From memory, few columns are read at a time: the rows are then
    // read in order, and what is stored soon fills lines that lie side by side.
    if (!exceeds_caches(s_, *store.buffer) || *pitch * bytes % kCacheLine != 0 ||
        squares_of(tall, side) <= kColumns)
      return {at_most(kTogether), 0};
    return {at_most(2 * kTogether), kColumns};
  }

  // Of short rows that are read and lie one behind the other: those that fill the stretch of memory
  // which is read and brought near at a time. 0 for longer rows, and for those that lie apart.
  int64_t rows_in_a_stretch() const {
    constexpr int64_t kLongestRow = 1024;  // bytes
    for (const BlockAccess& a : accesses_) {
      if (a.write || !is_unit(a.strides[down_])) continue;
      const auto pitch = a.stride(across_);
      const int64_t row = pitch ? *pitch * byte_size(a.buffer->dtype) : 0;
      return pitch && *pitch == extent(down_) && row <= kLongestRow ? kRowsAhead / row : 0;
    }
    return 0;
  }

  // Lines of rows that lie in pages of their own are announced by no row before.
  void prefetch(int64_t columns_read) {
    if (!exceeds_caches(s_, *accesses_.back().buffer)) return;
    const bool stretches = rows_in_a_stretch() > 0;
    for (const BlockAccess& a : accesses_) {
      if (a.write || !is_unit(a.strides[down_])) continue;
      const int64_t ahead = stretches          ? kRowsAhead / byte_size(a.buffer->dtype)
                            : columns_read > 0 ? columns_read
                                               : kAhead;
      if (!s_.decide_whether(loop("prefetch_") + a.buffer->name, true, Bits::kKept)) continue;
      s_.attempt("prefetch", {name_, a.buffer->name}, {ahead});
      s_.note(name_ + ": prefetches what lies " + std::to_string(ahead) + " elements later" +
              (stretches ? "" : " in the rows that are read"));
    }
  }

  static constexpr int64_t kFewest = 4, kTogether = 16, kColumns = 3, kPageBytes = 4096,
                           kAhead = 32;

  std::vector<BlockAccess> accesses_;
  size_t across_ = 0, down_ = 0;
  std::vector<size_t> across_axes_, down_axes_;  // with those that they run on to, innermost first
  std::vector<size_t> outer_;                    // the others, by how far stores move
  int64_t side_ = 0;                             // of a square
  Together together_{};
};

}  // namespace

std::optional<Taken> take_transpose(ScheduleState& s, const Work& work) {
  return take_block<TransposeRule>(s, work);
}

}  // namespace tilewright::passes
