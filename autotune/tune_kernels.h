// Tuning of a model's kernels. Each round compiles the model with a new candidate for every kernel that
// has one left, and runs it in turn with the best form so far, so that one run times a candidate of
// every kernel, with its real operands and caches. Before that each is called alone (check/).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "autotune/check/captured_calls.h"
#include "autotune/comparison.h"
#include "autotune/model_compiler.h"
#include "autotune/search.h"
#include "runtime/tensor.h"

namespace tilewright::autotune {

// One measurement of a candidate, in microseconds of all calls of a run.
struct Trial {
  passes::Answers answers;
  double expected_us = 0;  // of one call
  Comparison measured;     // the candidate (b) against the best form of that time (a)
  double seconds = 0;      // since the start
  bool confirmed = false;  // it became the best form
  std::string refused;     // why it was not compared; empty: it was
};

// A kernel of the model, all of its calls together.
struct TunedKernel {
  std::string name, task, family;  // "k4_conv_add", task_key and family_key
  // In a run with the usual schedules: time, calls, and what these do (ProfileRow).
  double us = 0;
  int64_t calls = 0, flops = 0, bytes = 0;
  double expected_us = 0;  // of one call with the usual schedule
  std::vector<Trial> trials;
  // Its best form, and how that compares with the usual one (a) in the last, confirming runs.
  Candidate best;
  bool improved = false;
  Comparison gain;
  double gap = 1;                         // Search::gap at the end
  std::vector<passes::Decision> changes;  // Search::changes, where it improved
};
using KnownAnswers =
    std::function<passes::Answers(const std::string& task, const std::string& family)>;

struct KernelTuneOptions {
  bool same_bits = false;
  double gap = 0;  // kernels whose TunedKernel::gap is at most this are left as they are
  uint32_t seed = 1;
  std::shared_ptr<CostModel> model;
  KnownAnswers known;               // to start from; null: none
  std::function<bool()> stop;       // null: never
  std::function<double()> seconds;  // since tuning began
};

class KernelTuner {
 public:
  // `fused`: what lower_graph leaves. All are borrowed.
  KernelTuner(const ModelCompiler& compiler, const ir::Graph& fused, std::span<const Tensor> inputs,
              const KernelTuneOptions& options, std::mt19937& random)
      : compiler_(compiler), fused_(fused), inputs_(inputs), options_(options), random_(random) {}

  // Finds and times the kernels.
  Status start();
  // One candidate of each kernel against the best forms. False: there is none left.
  Result<bool> round();
  // The best forms together (b) against the usual ones (a): whole runs. Kernels that do not hold up
  // are given up; where whole runs are not faster, all are.
  Result<Comparison> finish();

  Session& best() { return *best_; }
  size_t trials() const { return trials_; }
  size_t kernels() const { return entries_.size(); }
  size_t improved() const;
  double saved_us() const;  // of a run, by the rounds
  double run_us() const { return run_us_; }
  double gap();  // of the kernels' time together
  // Candidates and rounds that were refused, and why the first one was.
  size_t refused() const { return refused_; }
  const std::string& refusal() const { return refusal_; }
  std::vector<TunedKernel> take_kernels();  // the slowest first

 private:
  // A kernel while it is tuned.
  struct Entry {
    TunedKernel kernel;
    Search search;
    std::optional<Candidate> trial;  // of the round
    bool confirms = false;           // the trial was faster in the round before
    bool checked = false;            // the trial was called alone
    double ratio = 1;                // of the best form's time to the usual one's, by the rounds
  };
  Status find_kernels();
  Status compile_usual();
  Status time_kernels();
  Status drop_wrong_known();
  Status time_known();
  Result<std::unique_ptr<Session>> compile(const Schedules& schedules) const {
    return compiler_.compile(fused_, schedules);
  }
  Schedules best_schedules() const;
  void weigh();
  Result<bool> drop_wrong(const ir::Program& program);
  // check_alone, of what this tunes.
  Result<std::map<std::string, std::string>> check(const ir::Program& program,
                                                   const std::set<std::string>& kernels) const;
  void refuse(Entry& e, const Candidate& c, const std::string& why);
  bool is_close(Entry& e) const { return options_.gap > 0 && e.search.gap() <= options_.gap; }
  static bool judge(Entry& e, const Comparison& c);

  const ModelCompiler& compiler_;
  const ir::Graph& fused_;
  const std::span<const Tensor> inputs_;
  const KernelTuneOptions& options_;
  std::mt19937& random_;
  std::vector<Entry> entries_;
  std::unique_ptr<Session> usual_, best_;
  CapturedCalls calls_;
  size_t trials_ = 0, refused_ = 0;
  double run_us_ = 0;  // with the usual schedules
  std::string refusal_;
};

}  // namespace tilewright::autotune
