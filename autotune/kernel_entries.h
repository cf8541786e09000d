// The kernels of a model while they are tuned, each with its search.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune/measure/paired_runs.h"
#include "autotune/model_compiler.h"
#include "autotune/search/search.h"
#include "autotune/tuned_kernel.h"

namespace tilewright::autotune {

struct KernelEntry {
  TunedKernel kernel;
  Search search;
  // The candidate that is being measured, and its times against the best form in `rounds` rounds.
  std::optional<Candidate> trial;
  PairedSums times;
  size_t rounds = 0;
  bool checked = false;  // it was called alone
  bool rests = false;    // no candidates of it are wanted
  std::set<std::string>
      timed;  // in this round: the kernel, and who may pay for it; empty: it waits
  // The trial's loops (content_symbol) and machine code (object_code), and times of all that were
  // measured, to those of the usual form.
  std::string loops, code;
  std::map<std::string, double> codes;
  double ratio = 1;  // of the best form's time to the usual one's, by the rounds
};
using KernelEntries = std::vector<KernelEntry>;

// All kernels of the plan, each beginning with the form that `known` has, or with its usual one; those
// that are tuned in `others` rest as they are there. `search`: but for its seed and what it starts from.
// Errors: of the rules, without any answers.
Result<KernelEntries> find_kernels(const Plan& plan, const ModelCompiler& compiler,
                                   const FindKnown& known, const SearchOptions& search,
                                   const KernelEntries& others);
// Their times with the usual schedules, by runs of these; the slowest first, and those that hardly take
// any time are left out.
void set_times(KernelEntries& entries, const PairedTimes& usual);
// Weighs some forms of each kernel that wants a candidate, on all CPUs: no session runs meanwhile.
void weigh(KernelEntries& entries);

Schedules best_schedules(const KernelEntries& entries);  // those that are not the usual ones

}  // namespace tilewright::autotune
