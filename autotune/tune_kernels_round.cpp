// Rounds: are candidates faster?
#include "autotune/measure/placements.h"
#include "autotune/tune_kernels.h"

namespace tilewright::autotune {

namespace {

// A candidate goes when it is not worthwhile, but for an allowance that shrinks as pairs grow more (2 % at
// the least number of them), or when this many leave it open.
constexpr size_t kSome = 4, kAll = 40;
constexpr double kAllowance = 0.12;
// One that is faster must be so in so many pairs, at several placements in memory (placements.h).
constexpr size_t kEnough = 12, kRounds = 3;

}  // namespace

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
  const PairedOptions pairs{.seconds = 0.2,
                            .least = kSome,
                            .most = kEnough,
                            .stop = options_.stop,
                            .measure = options_.measure};
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
