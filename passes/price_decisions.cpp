#include "passes/price_decisions.h"

#include <algorithm>
#include <limits>
#include <optional>
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

// Microseconds by kernel, known by its structure: of one call, or of all calls of a run.
using CostOfKernels = std::unordered_map<uint64_t, double>;

// `known`: what one call of each kernel costs, that earlier runs had, too.
Result<CostOfKernels> cost_of_run(const Graph& graph, LowerOptions options, const Answers& answers,
                                  CostOfKernels& known) {
  Decisions decisions(answers, options.numerics != Numerics::kExact);
  options.decisions = &decisions;
  TW_ASSIGN(Graph lowered, lower_graph(graph, options));
  TW_RETURN_IF_ERROR(decisions.check_answers("graph"));
  std::vector<uint64_t> keys;  // by number
  TW_ASSIGN(
      Program program,
      plan_program(lowered, options,
                   [&](Kernel k, const std::set<std::string>& constants) -> Result<LoweredKernel> {
                     uint64_t key = structural_hash(k);
                     for (const Buffer& b : k.params) key = key * 2 + constants.count(b->name);
                     keys.push_back(key);
                     if (!known.count(key)) {
                       TW_ASSIGN(const LoopCost cost, cost_of(k, constants, options));
                       known[key] = cost.total();
                       if (options.on_kernel) options.on_kernel(known.size());
                     }
                     return LoweredKernel{std::move(k), ""};
                   }));
  CostOfKernels all;
  for (const auto& block : program.blocks)
    for (const ProgramInstruction& i : block)
      if (const auto* call = std::get_if<CallInstruction>(&i)) {
        const uint64_t key = keys[static_cast<size_t>(call->kernel)];
        all[key] += known[key];
      }
  return all;
}

// Of several runs, what is not the same in all of them; NaN for those that failed.
std::vector<double> differences(const std::vector<Result<CostOfKernels>>& runs) {
  std::optional<CostOfKernels> common;
  for (const auto& run : runs) {
    if (!run.ok()) continue;
    if (!common) common = *run;
    for (auto& [key, us] : *common) {
      const auto it = run->find(key);
      us = it == run->end() ? 0 : std::min(us, it->second);
    }
  }
  std::vector<double> costs;
  for (const auto& run : runs) {
    double us = run.ok() ? 0 : kNone;
    if (run.ok())
      for (const auto& [key, all] : *run) us += all - (common->count(key) ? common->at(key) : 0);
    costs.push_back(us);
  }
  return costs;
}

}  // namespace

void price_decisions(std::vector<Decision>& decisions, const Kernel& kernel,
                     const std::set<std::string>& constants, const LowerOptions& options) {
  for (Decision& d : decisions) {
    if (!d.microseconds.empty()) continue;
    for (const int64_t value : d.values) {
      const auto cost = cost_of(kernel, constants, options, {{d.name, value}});
      d.microseconds.push_back(cost.ok() ? cost->total() : kNone);
    }
  }
}

void price_decisions(std::vector<Decision>& decisions, const Graph& graph,
                     const LowerOptions& options) {
  CostOfKernels known;
  for (Decision& d : decisions) {
    if (!d.microseconds.empty()) continue;
    std::vector<Result<CostOfKernels>> runs;
    for (const int64_t value : d.values)
      runs.push_back(cost_of_run(graph, options, {{d.name, value}}, known));
    d.microseconds = differences(runs);
  }
}

}  // namespace tilewright::passes
