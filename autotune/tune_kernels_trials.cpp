// Rounds: which candidates are worth a measurement, and are they right?
#include <algorithm>

#include "autotune/check/check_alone.h"
#include "autotune/tune_kernels.h"
#include "codegen/compile_cached.h"

namespace tilewright::autotune {

namespace {

// Whether the trial answers otherwise than the best form what decides on streaming stores.
bool changes_stream(const KernelEntry& e) {
  const auto streams = [](const passes::Answers& answers) {
    passes::Answers found = answers;
    std::erase_if(found, [](const auto& a) { return !a.first.ends_with(".stream"); });
    return found;
  };
  return streams(e.trial->answers) != streams(e.search.best().answers);
}

}  // namespace

// Into the schedules, of each kernel that has one; how many. Where results are to go past the caches or
// not, readers pay: they stay as they are meanwhile, and are timed with their writer.
size_t KernelTuner::choose_trials(Schedules& schedules) {
  std::set<std::string> tried, kept;
  for (KernelEntry& e : entries_)
    if (!e.trial && !is_done(e)) begin(e);
  for (const bool for_readers : {true, false})
    for (KernelEntry& e : entries_) {
      const std::string& name = e.kernel.name;
      if (for_readers) e.timed.clear();
      if (!e.trial || changes_stream(e) != for_readers || kept.count(name)) continue;
      std::set<std::string> timed{name};
      if (for_readers) timed.insert(readers_[name].begin(), readers_[name].end());
      const auto is_tried = [&](const std::string& n) { return tried.count(n) != 0; };
      if (std::any_of(timed.begin(), timed.end(), is_tried)) continue;
      kept.insert(timed.begin(), timed.end());
      kept.erase(name);
      tried.insert(name);
      e.timed = std::move(timed);
      schedules[e.kernel.task] = e.trial->schedule;
    }
  return tried.size();
}

void KernelTuner::begin(KernelEntry& e) {
  e.trial = e.search.next();
  e.times.clear();
  e.rounds = 0;
  e.checked = false;
}

// Forms whose loops come out as those of another one are as fast: they are not measured.
bool KernelTuner::drop_same_loops(const ir::Program& program) {
  bool dropped = false;
  for (const ir::Kernel& k : program.kernels)
    for (KernelEntry& e : entries_) {
      if (e.kernel.name != k.name || e.timed.empty() || e.rounds > 0) continue;
      e.loops = codegen::content_symbol(k);
      dropped |= drop_same(e, e.loops);
    }
  return dropped;
}
// The same of machine code, once there is some. Whether others are left.
bool KernelTuner::drop_same_code() {
  bool left = false;
  for (KernelEntry& e : entries_) {
    if (e.timed.empty()) continue;
    e.code = compiler_.object_code(e.loops);
    left |= e.rounds > 0 || !drop_same(e, e.code);
  }
  return left;
}
bool KernelTuner::drop_same(KernelEntry& e, const std::string& code) {
  const auto known = e.codes.find(code);
  if (known == e.codes.end()) return false;
  e.search.report(*e.trial, known->second);
  e.trial.reset();
  e.timed.clear();
  return true;
}

Trial& KernelTuner::add_trial(KernelEntry& e, const Candidate& c) {
  ++trials_;
  e.kernel.trials.push_back(
      {.answers = c.answers, .expected_us = c.expected_us, .seconds = options_.seconds()});
  return e.kernel.trials.back();
}

// Candidates that are new in this round are called alone first. Whether any was refused.
Result<bool> KernelTuner::drop_wrong(const ir::Program& program) {
  std::set<std::string> unchecked;
  for (const KernelEntry& e : entries_)
    if (!e.timed.empty() && !e.checked) unchecked.insert(e.kernel.name);
  TW_ASSIGN(const auto refused, check(program, unchecked));
  for (KernelEntry& e : entries_) {
    e.checked |= !e.timed.empty();
    const auto it = refused.find(e.kernel.name);
    if (e.timed.empty() || it == refused.end()) continue;
    refuse(e, *e.trial, it->second);
    e.trial.reset();
    e.checked = false;
  }
  return !refused.empty();
}

Result<std::map<std::string, std::string>> KernelTuner::check(
    const ir::Program& program, const std::set<std::string>& kernels) const {
  return check_alone(program, kernels, calls_, compiler_.assemble_options(),
                     {.same_bits = options_.same_bits});
}

void KernelTuner::refuse(KernelEntry& e, const Candidate& c, const std::string& why) {
  add_trial(e, c).refused = why;
  if (refused_++ == 0) refusal_ = e.kernel.name + ": " + why;
}

}  // namespace tilewright::autotune
