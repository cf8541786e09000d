// A kernel under schedule: the steps that were taken, the decisions that led to them, and what
// rules have to say. Rules change it through `apply` and ask through `decide`.
#pragma once

#include <string>
#include <vector>

#include "passes/analysis/extents.h"
#include "passes/decisions/decisions.h"
#include "passes/schedule/rules/choose_trace.h"
#include "passes/schedule/rules/sum_order.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

// Are there sums of products that code generation may round at once or not, as unrolling and
// sharing of expressions have it? Not in exact kernels; nor are the products that a reduction
// itself adds up such ones, each of which one sum takes.
bool may_contract(const ir::Kernel& kernel);

// What rules see: the kernel as scheduled so far, which each step replaces. References into it do
// not outlive a step.
class ScheduleState : public Decisions {
 public:
  // `input` must outlive the state.
  ScheduleState(ir::Kernel kernel, const ScheduleInput& input)
      : Decisions(input.answers, may_contract(kernel)),
        kernel_(std::move(kernel)),
        input_(input),
        orders_(sum_orders(kernel_)) {}

  // Takes a step; false, and nothing changes, when it is not legal: obstacle() says why.
  [[nodiscard]] bool apply(std::string primitive, std::vector<std::string> names,
                           std::vector<int64_t> numbers = {});
  const std::string& obstacle() const { return obstacle_; }
  // A step that the schedule can do without: one that is not legal is noted as lost.
  void attempt(std::string primitive, std::vector<std::string> names,
               std::vector<int64_t> numbers = {});
  void lose_step();  // notes the step that apply refused as lost
  // Runs steps that belong together: where they return false, none of them is left, nor what was
  // decided and noted meanwhile.
  template <typename Steps>
  bool all_or_nothing(Steps&& steps) {
    const ir::Kernel before = kernel_;
    const size_t steps_taken = choice_.trace.size(), decided = made().size(),
                 noted = choice_.notes.size(), lost = choice_.lost.size();
    if (steps()) return true;
    kernel_ = before;
    choice_.trace.resize(steps_taken);
    forget_after(decided);
    choice_.notes.resize(noted);
    choice_.lost.resize(lost);
    return false;
  }
  // Would they go through? Nothing is left of them.
  template <typename Steps>
  bool would_go(Steps&& steps) {
    bool gone = false;
    all_or_nothing([&] {
      gone = steps();
      return false;
    });
    return gone;
  }

  // For `lower --explain`: notes are lines of text, in order.
  bool explains() const { return input_.explain; }
  void note(std::string text) { choice_.notes.push_back(std::move(text)); }
  // As it is now, and the machine that it is for.
  const ir::Kernel& kernel() const { return kernel_; }
  const ir::MachineDescription& machine() const { return *input_.machine; }
  // The order that the sums of a block must keep; null where any will do.
  const SumOrder* sum_order(const std::string& block) const {
    const auto it = orders_.find(block);
    return it == orders_.end() ? nullptr : &it->second;
  }
  bool is_constant(const ir::Buffer& b) const {
    return b->scope == ir::Scope::kParam && input_.constants.count(b->name) != 0;
  }
  bool has_block(const std::string& name) const { return find_block(kernel_.body, name).ok(); }
  bool has_loop(const std::string& name) const { return find_loop(kernel_.body, name).ok(); }
  BlockPlace place(const std::string& block) const {
    return find_block(kernel_.body, block).value();
  }
  // The choice, or the refusal of answers: those not followed, or given to decisions that never
  // came up.
  Result<Choice> finish();

 private:
  ir::Kernel kernel_;
  const ScheduleInput& input_;
  const std::map<std::string, SumOrder> orders_;
  Choice choice_;
  std::string obstacle_;
};

}  // namespace tilewright::passes
