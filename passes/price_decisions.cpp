#include "passes/price_decisions.h"

#include <limits>
#include <unordered_map>

#include "ir/loops/compare.h"
#include "passes/decisions/decisions.h"
#include "passes/plan_program.h"
#include "passes/schedule/rules/choose_trace.h"
#include "passes/schedule/trace.h"

namespace tilewright::passes {

using namespace ir;

Result<LoopCost> cost_of(const Kernel& kernel, const std::set<std::string>& constants,
                         const LowerOptions& options, const Answers& answers) {
  TW_ASSIGN(Choice choice, choose_trace(kernel, {.machine = &options.machine,
                                                 .constants = constants,
                                                 .answers = answers,
                                                 .rules = options.schedule}));
  TW_ASSIGN(Kernel scheduled, apply_trace(kernel, choice.trace));
  TW_ASSIGN(Kernel flat, lower_to_flat(std::move(scheduled), options));
  return loop_cost(options.machine, flat);
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Costs of kernels, each computed once however many graphs have it.
using Known = std::unordered_map<uint64_t, double>;

Result<double> cost_of_run(const Graph& graph, LowerOptions options, const Answers& answers,
                           Known& known) {
  Decisions decisions(answers, options.numerics != Numerics::kExact);
  options.decisions = &decisions;
  TW_ASSIGN(Graph lowered, lower_graph(graph, options));
  TW_RETURN_IF_ERROR(decisions.check_answers("graph"));
  std::vector<double> costs;  // by kernel
  TW_ASSIGN(
      Program program,
      plan_program(lowered, options,
                   [&](Kernel k, const std::set<std::string>& constants) -> Result<LoweredKernel> {
                     uint64_t key = structural_hash(k);
                     for (const Buffer& b : k.params) key = key * 2 + constants.count(b->name);
                     auto [it, fresh] = known.try_emplace(key, 0);
                     if (fresh) {
                       TW_ASSIGN(const LoopCost cost, cost_of(k, constants, options));
                       it->second = cost.total();
                     }
                     costs.push_back(it->second);
                     return LoweredKernel{std::move(k), ""};
                   }));
  double all = 0;
  for (const auto& block : program.blocks)
    for (const ProgramInstruction& i : block)
      if (const auto* call = std::get_if<CallInstruction>(&i))
        all += costs[static_cast<size_t>(call->kernel)];
  return all;
}

// cost_of(answers) gives microseconds.
template <typename CostOf>
void price(std::vector<Decision>& decisions, CostOf&& cost) {
  for (Decision& d : decisions) {
    if (!d.microseconds.empty()) continue;
    for (const int64_t value : d.values) {
      const Result<double> us = cost(Answers{{d.name, value}});
      d.microseconds.push_back(us.ok() ? *us : kNone);
    }
  }
}

}  // namespace

void price_decisions(std::vector<Decision>& decisions, const Kernel& kernel,
                     const std::set<std::string>& constants, const LowerOptions& options) {
  price(decisions, [&](const Answers& answers) -> Result<double> {
    TW_ASSIGN(const LoopCost cost, cost_of(kernel, constants, options, answers));
    return cost.total();
  });
}

void price_decisions(std::vector<Decision>& decisions, const Graph& graph,
                     const LowerOptions& options) {
  Known known;
  price(decisions,
        [&](const Answers& answers) { return cost_of_run(graph, options, answers, known); });
}

}  // namespace tilewright::passes
