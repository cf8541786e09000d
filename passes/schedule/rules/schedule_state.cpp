#include "passes/schedule/rules/schedule_state.h"

#include "ir/loops/rewrite.h"

namespace tilewright::passes {

using namespace ir;

bool may_contract(const Kernel& kernel) {
  if (kernel.exact) return false;
  bool products = false, sums = false;
  for (const BlockPlace& p : all_blocks(kernel.body)) {
    const auto* st = p.block->body.as<Store>();
    const auto* update = p.block->init && st ? st->value.as<Binary>() : nullptr;
    for_each_expr(p.block->body, [&](const Expr& e) {
      const auto* b = e.as<Binary>();
      if (!b || !is_float(e.dtype())) return;
      products |= b->op == BinaryOp::kMul && !(update && update->b.same_as(e));
      sums |= b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub;
    });
  }
  return products && sums;
}

// Each step is applied at once, as apply_trace will: what is legal here is legal there.
bool ScheduleState::apply(std::string primitive, std::vector<std::string> names,
                          std::vector<int64_t> numbers) {
  Step step{std::move(primitive), std::move(names), std::move(numbers)};
  auto next = apply_trace(kernel_, {step});
  if (!next.ok()) {
    obstacle_ = to_string(Trace{step});
    obstacle_.back() = ':';  // the end of the line
    obstacle_ += " " + next.error().message;
    return false;
  }
  kernel_ = std::move(next).value();
  choice_.trace.push_back(std::move(step));
  return true;
}

void ScheduleState::attempt(std::string primitive, std::vector<std::string> names,
                            std::vector<int64_t> numbers) {
  if (!apply(std::move(primitive), std::move(names), std::move(numbers))) lose_step();
}

void ScheduleState::lose_step() {
  choice_.lost.push_back(obstacle_);
  note("done without " + obstacle_);
}

Result<Choice> ScheduleState::finish() {
  TW_RETURN_IF_ERROR(check_answers("kernel '" + kernel_.name + "'"));
  choice_.decisions = made();
  return std::move(choice_);
}

}  // namespace tilewright::passes
