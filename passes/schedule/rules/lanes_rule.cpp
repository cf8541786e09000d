// Reductions that carry several values, such as the largest element and its place: each lane of a
// vector works on a result of its own.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool stores_alone(const Stmt& s) {
  if (const auto* q = s.as<Seq>())
    return std::all_of(q->stmts.begin(), q->stmts.end(), stores_alone);
  return s.as<Store>() != nullptr;
}
// The parallel axis along which all results, and what is read for them, lie side by side; the
// number of axes where there is none.
size_t axis_of_lanes(const Block& b) {
  const auto accesses = block_accesses(b);
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kParallel || is_one(b.axes[i].extent)) continue;
    const bool along = std::all_of(accesses.begin(), accesses.end(), [&](const BlockAccess& a) {
      const Expr& stride = a.strides[i];
      return stride && (is_one(stride) || (!a.write && is_zero(stride)));
    });
    if (along) return i;
  }
  return b.axes.size();
}

// Outer-loop vectorisation: argmax over channels of a channels-first map, say.
class LanesRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  bool applies() override {
    if (s_.place(name_).loops.size() != block_.axes.size() || !block_.init ||
        !stores_alone(block_.body))
      return false;
    lane_ = axis_of_lanes(block_);
    if (lane_ == block_.axes.size()) return false;
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      const std::string axis = loop_of_axis(block_, i);
      if (axis.empty()) return false;
      if (i != lane_) (block_.axes[i].kind == AxisKind::kReduce ? terms_ : outer_).push_back(axis);
    }
    return true;
  }

  void decide() override {
    const int64_t widest = s_.machine().lanes(4),
                  lanes = fitting_lanes(widest, extent_or(block_.axes[lane_].extent, widest));
    lanes_ = s_.decide(loop("lanes"), powers_of_two(kFewestLanes, widest), lanes, Bits::kKept);
  }

  bool write() override {
    std::vector<std::string> tasks = outer_;
    tasks.push_back(loop("jo"));
    std::vector<std::string> order = tasks;
    order.insert(order.end(), terms_.begin(), terms_.end());
    order.push_back(loop("jv"));
    if (!s_.apply("split", {loop_of_axis(block_, lane_), loop("jo"), loop("jv")}, {lanes_}) ||
        !s_.apply("reorder", order) || !s_.apply("vectorize", {loop("jv")}))
      return false;
    s_.note(name_ + ": a result in each lane of a vector, over all terms");
    if (!forks(s_, name_)) return true;
    s_.attempt(
        "parallelize",
        {collapse_loops(s_, tasks, [&](size_t i) { return loop("p") + std::to_string(i); })});
    return true;
  }

  size_t lane_ = 0;                         // the axis whose results stand in lanes
  std::vector<std::string> terms_, outer_;  // loops of the others
  int64_t lanes_ = 1;
};

}  // namespace

std::optional<Taken> take_lanes(ScheduleState& s, const Work& work) {
  return take_block<LanesRule>(s, work);
}

}  // namespace tilewright::passes
