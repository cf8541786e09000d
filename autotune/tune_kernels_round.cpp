// Rounds: which candidates, are they right, are they faster.
#include <algorithm>

#include "autotune/check/check_alone.h"
#include "autotune/measure/placements.h"
#include "autotune/tune_kernels.h"
#include "codegen/compile_cached.h"

namespace tilewright::autotune {

namespace {

constexpr double kWorthwhile = 0.99;  // of the best form's time: what is less is no gain
// A candidate goes when it is not worthwhile, but for an allowance that shrinks as pairs grow more (2 % at
// the least number of them), or when this many leave it open.
constexpr size_t kSome = 4, kAll = 40;
constexpr double kAllowance = 0.12;
// One that is faster must be so in so many pairs, at several placements in memory (placements.h).
constexpr size_t kEnough = 12, kRounds = 3;

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

Result<bool> KernelTuner::round() {
  weigh(entries_);
  ir::Program program;
  do {
    Schedules schedules = best_schedules(entries_);
    if (choose_trials(schedules) == 0) return false;
    TW_ASSIGN(program, compiler_.program(plan_, schedules));
  } while (drop_same_loops(program));
  TW_ASSIGN(const bool dropped, drop_wrong(program));
  if (dropped || !drop_same_code()) return true;  // the others wait for the next round
  const double since = options_.seconds();
  std::unique_ptr<Session> candidates, best;
  const bool best_first = random_() % 2 == 0;  // of two, the places in memory differ
  for (const bool is_best : {best_first, !best_first}) {
    TW_ASSIGN((is_best ? best : candidates),
              is_best ? compile() : compiler_.session(std::move(program)));
  }
  const PairedOptions pairs{.seconds = 0.2, .least = kSome, .most = kEnough, .stop = options_.stop};
  auto times = run_in_turn(*best, *candidates, inputs_, pairs, random_);
  seconds_to_finish_ = kPlacements * (options_.seconds() - since);
  if (!times.ok() && refused_++ == 0) refusal_ = times.error().to_string();
  for (KernelEntry& e : entries_) {
    if (e.timed.empty()) continue;
    if (!times.ok()) {
      add_trial(e, *e.trial).refused = times.error().to_string();
      e.trial.reset();
      continue;
    }
    e.times.add(times->pairs(e.timed));
    ++e.rounds;
    TW_RETURN_IF_ERROR(judge(e));
  }
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

// Is the trial the best form from now on? Where it is neither that nor done with, it waits for more runs.
Status KernelTuner::judge(KernelEntry& e) {
  const Comparison c = e.times.compare();
  const bool accepted =
      c.b_is_faster() && c.ratio < kWorthwhile && c.pairs >= kEnough && e.rounds >= kRounds;
  const auto pairs = static_cast<double>(c.pairs);
  const bool given_up =
      c.pairs >= kAll || c.ratio > kWorthwhile + kAllowance / pairs || c.pairs == 0;
  if (!accepted && !given_up) return {};
  Trial& trial = add_trial(e, *e.trial);
  trial.measured = c;
  trial.confirmed = accepted;
  e.codes[e.loops] = e.codes[e.code] = c.ratio * e.search.best().ratio;
  e.search.report(*e.trial, e.codes[e.code]);
  if (accepted) TW_RETURN_IF_ERROR(accept(e, c));
  e.trial.reset();
  return {};
}

Status KernelTuner::accept(KernelEntry& e, const Comparison& measured) {
  const Comparison gain = against(measured, e.kernel.us, e.ratio);
  e.ratio = gain.ratio;
  e.search.accept(Candidate(*e.trial));
  const Candidate& best = e.search.best();
  if (!options_.found) return {};
  return options_.found({e.kernel.task, e.kernel.family, best.answers, best.schedule, gain});
}

}  // namespace tilewright::autotune
