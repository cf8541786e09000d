// Blocks with loops of their own, as adjoints that add to whatever an index says: no schedule reaches these loops, but
// those around them stand for results that have nothing to do with one another. Threads share them, and where all lies
// side by side along one of them, each lane of a vector works on a result of its own.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// How often the stores of a statement run at most.
double times(const Stmt& s) {
  if (const auto* f = s.as<For>())
    return static_cast<double>(extent_or(f->extent, kUnknownExtent)) * times(f->body);
  if (const auto* q = s.as<Seq>()) {
    double n = 0;
    for (const Stmt& part : q->stmts) n += times(part);
    return n;
  }
  return 1;
}

// Loops around stores, and nothing that would differ from lane to lane but what is stored.
bool runs_alike(const Stmt& s, const Var& lane) {
  if (const auto* q = s.as<Seq>())
    return std::all_of(q->stmts.begin(), q->stmts.end(),
                       [&](const Stmt& part) { return runs_alike(part, lane); });
  if (const auto* f = s.as<For>()) return !uses_var(f->extent, lane) && runs_alike(f->body, lane);
  return s.as<Store>() != nullptr;
}

class NestedRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  bool applies() override {
    if (s_.place(name_).loops.size() != block_.axes.size() || block_.init || block_.axes.empty())
      return false;
    bool has_loops = false;
    for_each_stmt(block_.body, [&](const Stmt& s) { has_loops |= s.as<For>() != nullptr; });
    if (!has_loops) return false;
    const auto accesses = block_accesses(block_);
    lane_ = block_.axes.size();
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      const std::string axis = loop_of_axis(block_, i);
      if (axis.empty() || block_.axes[i].kind != AxisKind::kParallel) return false;
      outer_.push_back(axis);
      const bool side_by_side =
          std::all_of(accesses.begin(), accesses.end(), [&](const BlockAccess& a) {
            return a.strides[i] && (is_one(a.strides[i]) || (!a.write && is_zero(a.strides[i])));
          });
      if (side_by_side && !is_one(block_.axes[i].extent) &&
          runs_alike(block_.body, block_.axes[i].var))
        lane_ = i;
    }
    return true;
  }

  void decide() override {
    if (lane_ == block_.axes.size()) return;
    const int64_t widest = s_.machine().lanes(4),
                  usual = fitting_lanes(widest, extent_or(block_.axes[lane_].extent, widest));
    lanes_ = s_.decide(loop("lanes"), powers_of_two(kFewestLanes, widest), usual, Bits::kKept);
  }

  bool write() override {
    if (lane_ < block_.axes.size()) {
      std::vector<std::string> order = outer_;
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(lane_));
      order.push_back(loop("jo"));
      if (!s_.apply("split", {outer_[lane_], loop("jo"), loop("jv")}, {lanes_})) return false;
      outer_ = order;
      order.push_back(loop("jv"));
      if (!s_.apply("reorder", order) || !s_.apply("vectorize", {loop("jv")})) return false;
      s_.note(name_ + ": a result in each lane of a vector, over all its loops");
    }
    if (!forks(s_, name_, work_of(s_, name_) * times(block_.body))) return true;
    s_.attempt(
        "parallelize",
        {collapse_loops(s_, outer_, [&](size_t i) { return loop("p") + std::to_string(i); })});
    return true;
  }

  size_t lane_ = 0;  // the axis whose results stand in lanes; the number of axes: none
  std::vector<std::string> outer_;
  int64_t lanes_ = 1;
};

}  // namespace

std::optional<Taken> take_nested(ScheduleState& s, const Work& work) {
  return take_block<NestedRule>(s, work);
}

}  // namespace tilewright::passes
