#include "autotune/search/priced_form.h"

#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::autotune {

Result<passes::Trace> schedule_of(const ir::Kernel& kernel, const std::set<std::string>& constants,
                                  const passes::LowerOptions& options,
                                  const passes::Answers& answers) {
  TW_ASSIGN(passes::Choice choice, passes::choose_trace(kernel, {.machine = &options.machine,
                                                                 .constants = constants,
                                                                 .answers = answers,
                                                                 .rules = options.schedule}));
  return std::move(choice.trace);
}

Result<PricedForm> price(const ir::Kernel& kernel, passes::Trace schedule,
                         const passes::LowerOptions& options) {
  TW_ASSIGN(ir::Kernel scheduled, passes::apply_trace(kernel, schedule));
  TW_ASSIGN(const ir::Kernel flat, passes::lower_to_flat(std::move(scheduled), options));
  const passes::LoopCost cost = passes::loop_cost(options.machine, flat);
  return PricedForm{std::move(schedule), cost, features_of(options.machine, flat, cost)};
}

}  // namespace tilewright::autotune
