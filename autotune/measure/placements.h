// Two forms of a model, each compiled anew several times. Where code, constants and values lie in memory
// is chance, stays as it is while a process runs, and is worth a percent or more of a kernel's time: what
// holds up at one placement of both need not at another.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "autotune/measure/paired_runs.h"

namespace tilewright::autotune {

// At each placement. Comparisons are of the ratios there, one each: their median, and bounds that few
// placements do not have (Comparison).
struct Placements {
  std::vector<PairedTimes> each;
  Comparison runs() const;
  Comparison kernel(const std::string& name) const { return kernels({name}); }
  Comparison kernels(const std::set<std::string>& names) const;
  Comparison nodes(const std::set<std::string>& of_a, const std::set<std::string>& of_b) const;
};
// As many as a sign test needs to forgive one that says otherwise.
inline constexpr size_t kPlacements = 9;
using MakeSession = std::function<Result<std::unique_ptr<Session>>()>;

// At kPlacements. `options`: of the pairs at each. Errors: of run_in_turn, and of making sessions.
Result<Placements> run_at_placements(const MakeSession& a, const MakeSession& b, InputSets inputs,
                                     const PairedOptions& options, std::mt19937& random);

}  // namespace tilewright::autotune
