#include "autotune/tune_kernels.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "autotune/check/check_alone.h"
#include "autotune/paired_runs.h"
#include "autotune/task.h"
#include "passes/lower.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

using passes::Trace;

namespace {

constexpr double kShort = 0.002;      // of a run's time: kernels below are left alone
constexpr double kWorthwhile = 0.99;  // of the best form's time: what is less is no gain

}  // namespace

Status KernelTuner::start() {
  TW_RETURN_IF_ERROR(find_kernels());
  TW_RETURN_IF_ERROR(compile_usual());
  TW_RETURN_IF_ERROR(time_kernels());
  TW_RETURN_IF_ERROR(drop_wrong_known());
  TW_ASSIGN(best_, compile(best_schedules()));
  return time_known();
}

// All kernels of the model, with their usual schedules.
Status KernelTuner::find_kernels() {
  passes::LowerOptions lower = compiler_.lower();
  Status failed;
  lower.find_schedule = [&](const ir::Kernel& k,
                            const std::set<std::string>& constants) -> std::optional<Trace> {
    TunedKernel kernel{
        .name = k.name, .task = task_key(k, constants), .family = family_key(k, constants)};
    SearchOptions how{.same_bits = options_.same_bits,
                      .seed = options_.seed + static_cast<uint32_t>(entries_.size()),
                      .model = options_.model};
    if (options_.known) how.from = options_.known(kernel.task, kernel.family);
    auto search = Search::start(k, constants, compiler_.lower(), std::move(how));
    if (!search.ok()) {
      if (failed.ok()) failed = search.error();
      return std::nullopt;
    }
    kernel.expected_us = search->usual().expected_us;
    entries_.push_back({std::move(kernel), std::move(*search), std::nullopt});
    return entries_.back().search.usual().schedule;
  };
  TW_ASSIGN(const ir::Program program, passes::lower_fused(fused_, lower));
  (void)program;
  return failed;
}

// Also keeps a call of each kernel, for candidates to be checked on.
Status KernelTuner::compile_usual() {
  TW_ASSIGN(const ir::Program program, compiler_.program(fused_, {}));
  TW_ASSIGN(const std::shared_ptr<Executable> executable, compiler_.assemble(program));
  TW_ASSIGN(calls_, capture_calls(program, executable, inputs_, compiler_.pool()));
  TW_ASSIGN(usual_, compiler_.session(executable));
  return {};
}

Status KernelTuner::time_kernels() {
  const PairedOptions pairs{.seconds = 0.2, .least = 3, .most = 32, .stop = options_.stop};
  TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *usual_, inputs_, pairs, random_));
  run_us_ = times.runs().a;
  std::map<std::string, TunedKernel*> by_name;
  for (Entry& e : entries_) {
    e.kernel.us = times.kernel(e.kernel.name).a;
    by_name[e.kernel.name] = &e.kernel;
  }
  for (const Profiler::Row& r : usual_->profile().rows())  // of the last run
    if (const auto it = by_name.find(r.kernel); it != by_name.end()) {
      it->second->calls += r.calls;
      it->second->flops += r.flops;
      it->second->bytes += r.bytes;
    }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.kernel.us > b.kernel.us; });
  std::erase_if(entries_, [&](const Entry& e) { return e.kernel.us < kShort * run_us_; });
  return {};
}

// A database may be anybody's: what it knows is called alone, as any candidate.
Status KernelTuner::drop_wrong_known() {
  std::set<std::string> known;
  for (const Entry& e : entries_)
    if (e.search.improved()) known.insert(e.kernel.name);
  if (known.empty()) return {};
  TW_ASSIGN(const ir::Program program, compiler_.program(fused_, best_schedules()));
  TW_ASSIGN(const auto refused, check(program, known));
  for (Entry& e : entries_) {
    const auto it = refused.find(e.kernel.name);
    if (it == refused.end()) continue;
    refuse(e, e.search.best(), it->second);
    e.search.accept(Candidate(e.search.usual()));
  }
  return {};
}

// Best forms that were known before; those that are not faster here are given up.
Status KernelTuner::time_known() {
  if (best_schedules().empty()) return {};
  const PairedOptions pairs{.seconds = 0.2, .least = 8, .most = 32, .stop = options_.stop};
  TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *best_, inputs_, pairs, random_));
  bool changed = false;
  for (Entry& e : entries_) {
    if (!e.search.improved()) continue;
    const double ratio = times.kernel(e.kernel.name).ratio;
    e.search.report_best(ratio);
    e.ratio = ratio;
    if (ratio < 1) continue;
    e.search.accept(Candidate(e.search.usual()));
    e.ratio = 1;
    changed = true;
  }
  if (changed) { TW_ASSIGN(best_, compile(best_schedules())); }
  return {};
}

Schedules KernelTuner::best_schedules() const {
  Schedules s;
  for (const Entry& e : entries_)
    if (e.search.improved()) s[e.kernel.task] = e.search.best().schedule;
  return s;
}

Result<bool> KernelTuner::round() {
  weigh();
  Schedules schedules = best_schedules();
  size_t in_round = 0;
  for (Entry& e : entries_) {
    if (!e.trial && !is_close(e)) {
      e.trial = e.search.next();
      e.checked = false;
    }
    if (!e.trial) continue;
    ++in_round;
    schedules[e.kernel.task] = e.trial->schedule;
  }
  if (in_round == 0) return false;
  TW_ASSIGN(ir::Program program, compiler_.program(fused_, schedules));
  TW_ASSIGN(const bool dropped, drop_wrong(program));
  if (dropped) return true;  // the others wait for the next round
  TW_ASSIGN(const std::shared_ptr<Executable> executable, compiler_.assemble(std::move(program)));
  TW_ASSIGN(const std::unique_ptr<Session> candidates, compiler_.session(executable));
  const PairedOptions pairs{.seconds = 0.4, .least = 8, .most = 40, .stop = options_.stop};
  auto times = run_in_turn(*best_, *candidates, inputs_, pairs, random_);
  if (!times.ok() && refused_++ == 0) refusal_ = times.error().to_string();
  bool changed = false;
  for (Entry& e : entries_) {
    if (!e.trial) continue;
    ++trials_;
    e.kernel.trials.push_back({.answers = e.trial->answers,
                               .expected_us = e.trial->expected_us,
                               .seconds = options_.seconds()});
    Trial& trial = e.kernel.trials.back();
    if (times.ok()) {
      trial.measured = times->kernel(e.kernel.name);
      e.search.report(*e.trial, trial.measured.ratio * e.search.best().ratio);
    } else {
      trial.refused = times.error().to_string();
    }
    trial.confirmed = judge(e, trial.measured);
    if (!trial.confirmed) continue;
    e.ratio *= trial.measured.ratio;
    e.search.accept(std::move(*e.trial));
    e.trial.reset();
    e.confirms = false;
    changed = true;
  }
  if (changed) { TW_ASSIGN(best_, compile(best_schedules())); }
  return true;
}
// Some forms of each kernel that wants a candidate, on all CPUs: no session runs meanwhile.
void KernelTuner::weigh() {
  constexpr size_t kForms = 6;
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < entries_.size(); i = next++)
      if (!entries_[i].trial)
        (void)catch_failures([&] { return entries_[i].search.weigh(kForms), Status(); });
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < available_cpus(); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
}

// Candidates that are new in this round are called alone first. Whether any was refused.
Result<bool> KernelTuner::drop_wrong(const ir::Program& program) {
  std::set<std::string> unchecked;
  for (const Entry& e : entries_)
    if (e.trial && !e.checked) unchecked.insert(e.kernel.name);
  TW_ASSIGN(const auto refused, check(program, unchecked));
  for (Entry& e : entries_) {
    e.checked = e.trial.has_value();
    const auto it = refused.find(e.kernel.name);
    if (!e.trial || it == refused.end()) continue;
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
void KernelTuner::refuse(Entry& e, const Candidate& c, const std::string& why) {
  ++trials_;
  e.kernel.trials.push_back({.answers = c.answers,
                             .expected_us = c.expected_us,
                             .seconds = options_.seconds(),
                             .refused = why});
  if (refused_++ == 0) refusal_ = e.kernel.name + ": " + why;
}
// Is the trial the best form? One that is faster must be so twice.
bool KernelTuner::judge(Entry& e, const Comparison& c) {
  const bool faster = c.b_is_faster() && c.ratio < kWorthwhile;
  if (faster && e.confirms) return true;
  if (!faster) e.trial.reset();
  e.confirms = faster;
  return false;
}

size_t KernelTuner::improved() const {
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(),
                                           [](const Entry& e) { return e.search.improved(); }));
}
double KernelTuner::saved_us() const {
  double us = 0;
  for (const Entry& e : entries_) us += (1 - e.ratio) * e.kernel.us;
  return us;
}
double KernelTuner::gap() {
  double all = 0, open = 0;
  for (Entry& e : entries_) all += e.kernel.us, open += e.search.gap() * e.kernel.us;
  return all > 0 ? open / all : 1;
}

// What was found round by round is a choice of the luckiest of many measurements (the winner's curse):
// all of it is measured once more, together, and what does not hold up is given up.
Result<Comparison> KernelTuner::finish() {
  const PairedOptions pairs{.seconds = 2, .least = 10, .most = 200};
  TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *best_, inputs_, pairs, random_));
  const bool faster = times.runs().ratio < 1;
  for (Entry& e : entries_) {
    e.kernel.gain = times.kernel(e.kernel.name);
    e.kernel.best = e.search.best();
    e.kernel.gap = e.search.gap();
    e.kernel.improved = faster && e.search.improved() && e.kernel.gain.b_is_faster();
    if (e.kernel.improved) e.kernel.changes = e.search.changes();
  }
  return times.runs();
}

std::vector<TunedKernel> KernelTuner::take_kernels() {
  std::vector<TunedKernel> kernels;
  for (Entry& e : entries_) kernels.push_back(std::move(e.kernel));
  entries_.clear();
  return kernels;
}

}  // namespace tilewright::autotune
