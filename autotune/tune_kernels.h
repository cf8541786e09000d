// Tuning of a model's kernels. Each round compiles the model with a candidate for every kernel that has
// one left, and runs it in turn with the best form so far, so that one run times a candidate of every
// kernel, with its real operands and caches. Before that each is called alone (check/). Most are slower,
// which a few pairs of runs show; others stay for further rounds until it is clear (a sequential test).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "autotune/check/captured_calls.h"
#include "autotune/kernel_entries.h"
#include "autotune/kernel_readers.h"
#include "autotune/measure/comparison.h"
#include "autotune/measure/paired_runs.h"
#include "autotune/model_compiler.h"

namespace tilewright::autotune {

struct KernelTuneOptions {
  bool same_bits = false;
  double gap = 0;  // kernels whose TunedKernel::gap is at most this are left as they are
  uint32_t seed = 1;
  std::shared_ptr<CostModel> model;
  FindKnown known;                  // to start from; null: none
  OnFinding found;                  // null: no callback
  std::function<bool()> stop;       // null: never
  std::function<double()> seconds;  // since tuning began
  RunInTurn measure;                // null: by the clock
};

class KernelTuner {
 public:
  // All but the plan are borrowed.
  KernelTuner(const ModelCompiler& compiler, Plan plan, InputSets inputs,
              const KernelTuneOptions& options, std::mt19937& random)
      : compiler_(compiler),
        plan_(std::move(plan)),
        inputs_(inputs),
        options_(options),
        random_(random) {}

  // Finds and times the kernels. Those that `other` has are left as they are there.
  Status start(const KernelTuner* other = nullptr);
  void tune_all() {  // from here on
    for (KernelEntry& e : entries_) e.rests = false;
  }
  // Candidates against the best forms, until the first of them are decided. False: there is none left.
  Result<bool> round();
  // confirm_kernels: the best forms that hold up together (b) against the usual ones (a), whole runs.
  Result<Comparison> finish();

  // A session of all best forms, at another place each time.
  Result<std::unique_ptr<Session>> compile() const {
    return compiler_.compile(plan_, best_schedules(entries_));
  }
  size_t trials() const { return trials_; }
  size_t kernels() const { return entries_.size(); }
  size_t improved() const;
  double saved_us() const;  // of a run, by the rounds
  double run_us() const { return run_us_; }
  double gap();                                                    // of the kernels' time together
  double seconds_to_finish() const { return seconds_to_finish_; }  // about
  // Candidates and rounds that were refused, and why the first one was.
  size_t refused() const { return refused_; }
  const std::string& refusal() const { return refusal_; }
  std::vector<TunedKernel> take_kernels();  // the slowest first

 private:
  Status compile_usual();
  Status drop_wrong_known();
  Status time_known();
  size_t choose_trials(Schedules& schedules);
  void begin(KernelEntry& e);
  bool drop_same_loops(const ir::Program& program);
  bool drop_same_code();
  static bool drop_same(KernelEntry& e, const std::string& code);
  Result<bool> drop_wrong(const ir::Program& program);
  // check_alone, of what this tunes.
  Result<std::map<std::string, std::string>> check(const ir::Program& program,
                                                   const std::set<std::string>& kernels) const;
  void refuse(KernelEntry& e, const Candidate& c, const std::string& why);
  Trial& add_trial(KernelEntry& e, const Candidate& c);
  bool is_done(KernelEntry& e) const {
    return e.rests || (options_.gap > 0 && e.search.gap() <= options_.gap);
  }
  Status judge(KernelEntry& e);
  Status accept(KernelEntry& e, const Comparison& measured);

  const ModelCompiler& compiler_;
  const Plan plan_;
  const InputSets inputs_;
  const KernelTuneOptions& options_;
  std::mt19937& random_;
  KernelEntries entries_;
  std::unique_ptr<Session> usual_;
  KernelReaders readers_;
  std::vector<CapturedCalls> calls_;  // at each size
  size_t trials_ = 0, refused_ = 0;
  double run_us_ = 0;  // with the usual schedules
  double seconds_to_finish_ = 0;
  std::string refusal_;
};

}  // namespace tilewright::autotune
