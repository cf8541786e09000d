// Copies that put groups of terms of a dot product side by side, for a vector of columns: whole
// lines are read, and the stores of one group fill a vector.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The packing routine of an int8 GEMM with VNNI: [k, n] bytes become [n / lanes, k / 4, lanes, 4].
// Done at run time for operands that are no constants.
class PackRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  bool applies() override {
    const auto accesses = block_accesses(block_);
    const BlockAccess& store = accesses.back();
    const Layout& layout = store.buffer->layout;
    if (!store.write || layout.size() < 2) return false;
    const LayoutAxis &term = layout.back(), &column = layout[layout.size() - 2];
    if (term.divisor != 1 || term.modulus < 2 || column.divisor != 1 || column.modulus < 2)
      return false;
    terms_ = term.modulus;
    lanes_ = column.modulus;
    down_ = axis_of(store.indices[static_cast<size_t>(term.dim)]);
    across_ = axis_of(store.indices[static_cast<size_t>(column.dim)]);
    if (down_ == block_.axes.size() || across_ == block_.axes.size() || down_ == across_)
      return false;
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (loop_of_axis(block_, i).empty()) return false;
    for (const BlockAccess& a : accesses) {
      if (a.write) continue;
      reads_down_ |= a.strides[down_] && is_one(a.strides[down_]) && a.strides[across_] &&
                     !is_zero(a.strides[across_]);
      widest_ = std::max(widest_, byte_size(a.buffer->dtype));
    }
    return true;
  }
  size_t axis_of(const Expr& index) const {
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (index.same_as(block_.axes[i].var) && block_.axes[i].kind == AxisKind::kParallel) return i;
    return block_.axes.size();
  }

  void decide() override {
    const int64_t line = kCacheLine / (lanes_ * widest_);
    const int64_t whole_lines =
        std::clamp<int64_t>(line, 1, (extent(across_) + lanes_ - 1) / lanes_);
    blocks_ = s_.decide(loop("blocks"), with({1, 2, 4}, whole_lines), reads_down_ ? 1 : whole_lines,
                        Bits::kKept);
    const bool square = reads_down_ && lanes_ % terms_ == 0 && extent(down_) >= lanes_;
    deep_ = square ? lanes_ : terms_;
    run_ = s_.decide(loop("run"), {4, 8, 16, 32}, kRun, Bits::kKept);
  }

  // Outer axes, blocks of columns, runs of groups; inside: a line of columns by a group of terms
  // or, where terms lie side by side in what is read, a square.
  bool write() override {
    std::vector<std::string> order;
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (i != down_ && i != across_) order.push_back(loop_of_axis(block_, i));
    std::vector<std::string> tasks = order;
    tasks.insert(tasks.end(), {loop("nb"), loop("kb")});
    order.insert(order.end(),
                 {loop("nb"), loop("kb"), loop("kr"), loop("ni"), loop("kt"), loop("nv")});
    if (!s_.apply("split", {loop_of_axis(block_, across_), loop("nb"), loop("nt")},
                  {blocks_ * lanes_}) ||
        !s_.apply("split", {loop("nt"), loop("ni"), loop("nv")}, {lanes_}) ||
        !s_.apply("split", {loop_of_axis(block_, down_), loop("kb"), loop("kc")}, {run_ * deep_}) ||
        !s_.apply("split", {loop("kc"), loop("kr"), loop("kt")}, {deep_}) ||
        !s_.apply("reorder", order) || !s_.apply("unroll", {loop("ni")}) ||
        !s_.apply("unroll", {loop("kt")}) || !s_.apply("vectorize", {loop("nv")}))
      return false;
    s_.note(name_ + ": packed for dot products, " + std::to_string(lanes_) + " columns by " +
            std::to_string(terms_) + " terms side by side");
    share_out(tasks);
    return true;
  }

  static constexpr int64_t kRun = 16;  // groups, or squares, of one run

  size_t down_ = 0, across_ = 0;  // axes: along the terms, along the columns
  int64_t terms_ = 1, lanes_ = 1;
  int64_t blocks_ = 1, deep_ = 1, run_ = kRun;  // vectors of columns, terms, groups of them
  bool reads_down_ = false;
  int widest_ = 1;  // bytes of an element that is read
};

}  // namespace

std::optional<Taken> take_pack(ScheduleState& s, const Work& work) {
  return take_block<PackRule>(s, work);
}

}  // namespace tilewright::passes
