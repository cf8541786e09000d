// Kernels that are equal up to names are lowered once; what steps up to the next control flow need is
// lowered on several threads before the first of them is written. Numbers, and so names, are those of
// the order of calls.
#include <algorithm>
#include <atomic>
#include <thread>

#include "ir/loops/compare.h"
#include "ir/program/kernel_name.h"
#include "passes/lower.h"
#include "passes/planner.h"
#include "runtime/core/check.h"

namespace tilewright::passes {

using namespace ir;

// A kernel is told from others by its loops and by which of its parameters are constants.
int32_t Planner::number_of(const Graph& graph, const GroupKernel& g) {
  std::vector<bool> is_constant;
  for (size_t p = 0; p < g.kernel.params.size(); ++p)
    is_constant.push_back(p < g.params.size() && g.params[p] != kNone &&
                          graph.value(g.params[p]).constant);
  const uint64_t hash = structural_hash(g.kernel);
  for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it) {
    const auto& [source, source_constant] = sources_[static_cast<size_t>(it->second)];
    if (source_constant == is_constant && structurally_equal(source, g.kernel)) return it->second;
  }
  const auto number = static_cast<int32_t>(sources_.size());
  by_hash_.emplace(hash, number);
  sources_.emplace_back(g.kernel, std::move(is_constant));
  return number;
}

Result<LoweredKernel> Planner::lower_source(int32_t number) const {
  const auto& [source, is_constant] = sources_[static_cast<size_t>(number)];
  std::set<std::string> constants;
  for (size_t p = 0; p < source.params.size(); ++p)
    if (is_constant[p]) constants.insert(source.params[p]->name);
  Kernel k = source;
  k.name = numbered_name(number, k.name);
  k.exact = options_.numerics == Numerics::kExact;
  return lower_(std::move(k), constants);
}

void Planner::lower_ahead(const GraphPlan& g, size_t first) {
  if (threads_ <= 1) return;
  std::vector<int32_t> wanted;
  for (size_t i = first; i < g.steps.size() && g.steps[i].kind != PlanStep::kControl; ++i) {
    const PlanStep& s = g.steps[i];
    if (s.kind != PlanStep::kKernel && s.kind != PlanStep::kSymbols) continue;
    const int32_t number = number_of(g.graph, s.group);
    const auto known = static_cast<int32_t>(program_.kernels.size() + wanted.size());
    if (number >= known) wanted.push_back(number);
  }
  std::vector<Result<LoweredKernel>> results(wanted.size(), internal_error("not lowered"));
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < wanted.size(); i = next++)
      results[i] = catch_failures([&] { return lower_source(wanted[i]); });
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(static_cast<size_t>(threads_), wanted.size()); ++t)
    others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  for (size_t i = 0; i < wanted.size(); ++i) ahead_.emplace(wanted[i], std::move(results[i]));
}

}  // namespace tilewright::passes
