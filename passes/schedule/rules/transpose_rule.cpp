// Squares of elements: what lies side by side in the result lies far apart in what is read.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class TransposeRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  static bool is_unit(const Expr& stride) { return stride && is_one(stride); }

  // across_: along the result; down_: along what is read.
  bool find_axes() override {
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

  bool build() override {
    std::vector<bool> used(block_.axes.size());
    used[across_] = used[down_] = true;
    const std::vector<size_t> down = with_outer(down_, used, accesses_),
                              across = with_outer(across_, used, accesses_);
    std::vector<size_t> outer;
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (!used[i]) outer.push_back(i);
    const BlockAccess& store = accesses_.back();
    auto stride = [&](size_t i) {
      return store.strides[i] ? as_int(store.strides[i]).value_or(int64_t{1} << 40)
                              : int64_t{1} << 50;
    };
    std::stable_sort(outer.begin(), outer.end(),
                     [&](size_t a, size_t b) { return stride(a) > stride(b); });
    std::vector<std::string> order;
    for (size_t i : outer) order.push_back(loop_of_axis(block_, i));
    for (size_t k = down.size(); k-- > 0;) order.push_back(loop_of_axis(block_, down[k]));
    for (size_t k = across.size(); k-- > 0;) order.push_back(loop_of_axis(block_, across[k]));
    if (!s_.apply("reorder", order)) return false;
    const std::string rows = fuse(down, "d"), columns = fuse(across, "a");
    if (rows.empty() || columns.empty()) return false;
    return tile(rows, columns, outer);
  }

  bool tile(const std::string& rows, const std::string& columns, const std::vector<size_t>& outer) {
    int bytes = 4;
    for (const BlockAccess& a : accesses_) bytes = std::max(bytes, byte_size(a.buffer->dtype));
    const BlockPlace p = s_.place(name_);
    int64_t side = s_.machine().lanes(bytes), wide = 0, tall = 0;
    for (const For* f : p.loops)
      if (f->var.name() == rows || f->var.name() == columns) {
        const int64_t n = extent_or(f->extent, kUnknownExtent);
        while (side > n) side /= 2;
        (f->var.name() == columns ? wide : tall) = n;
      }
    if (side < kFewest) return false;
    const auto [together, columns_read] = squares_at_a_time(bytes, side, wide / side, tall / side);
    std::string down = rows;
    std::vector<std::string> order{loop("ab"), loop("do"), loop("ao"), loop("di"), loop("av")};
    if (columns_read > 0) {
      down = loop("dt");
      order = {loop("ab"), loop("db"), loop("ao"), loop("do"), loop("di"), loop("av")};
      if (!s_.apply("split", {rows, loop("db"), down}, {columns_read * side})) return false;
    }
    if (!s_.apply("split", {columns, loop("ab"), loop("at")}, {together * side}) ||
        !s_.apply("split", {loop("at"), loop("ao"), loop("av")}, {side}) ||
        !s_.apply("split", {down, loop("do"), loop("di")}, {side}) || !s_.apply("reorder", order) ||
        !s_.apply("unroll", {loop("di")}) || !s_.apply("vectorize", {loop("av")}))
      return false;
    s_.note(name_ + ": squares of " + std::to_string(side) + " x " + std::to_string(side) +
            " elements, read along their rows and stored along their columns");
    std::vector<std::string> tasks;
    for (size_t i : outer) tasks.push_back(loop_of_axis(block_, i));
    tasks.push_back(loop("ab"));
    share_out(tasks);
    stream_rule(s_, name_);
    prefetch(columns_read * side);
    return true;
  }

  // How many squares along a row of results are made one after the other, and how many along the
  // rows that are read before the next such rows are read; 0: all.
  struct Together {
    int64_t along_result, along_rows;
  };
  // `wide`, `tall`: squares along a row of results, and along a row that is read.
  Together squares_at_a_time(int bytes, int64_t side, int64_t wide, int64_t tall) const {
    const BlockAccess& store = accesses_.back();
    const auto pitch = store.stride(down_);
    auto at_most = [&](int64_t n) { return std::min(n, std::max<int64_t>(wide, 1)); };
    // Where rows of results share pages, the fewer rows are read at a time, the better.
    if (!pitch || *pitch * bytes < kPageBytes) return {1, 0};
    if (const int64_t rows = rows_in_a_stretch(); rows > 0)
      return {at_most(std::clamp<int64_t>(rows / side, 2, kTogether)), 0};
    // Where each row of results has pages of its own, some lines of a row are stored together, so
    // that pages change less often. From memory, few columns are read at a time: the rows are then
    // read in order, and what is stored soon fills lines that lie side by side.
    if (!exceeds_caches(s_, *store.buffer) || *pitch * bytes % kLineBytes != 0 || tall <= kColumns)
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
      if (s_.apply("prefetch", {name_, a.buffer->name}, {ahead}))
        s_.note(name_ + ": brings near what lies " + std::to_string(ahead) + " elements later" +
                (stretches ? "" : " in the rows that are read"));
    }
  }

  static constexpr int64_t kFewest = 4, kTogether = 16, kColumns = 3, kPageBytes = 4096,
                           kLineBytes = 64, kAhead = 32;

  std::vector<BlockAccess> accesses_;
  size_t across_ = 0, down_ = 0;
};

}  // namespace

bool transpose_rule(ScheduleState& s, const std::string& block) {
  return TransposeRule(s, block).run();
}

}  // namespace tilewright::passes
