#include "autotune/tune_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

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

// A kernel while it is tuned.
struct Entry {
  TunedKernel kernel;
  Search search;
  std::optional<Candidate> trial;  // of the round
  bool confirms = false;           // the trial was faster in the round before
  bool checked = false;            // the trial was called alone
  double ratio = 1;                // of the best form's time to the usual one's, by the rounds
};

class ModelTuner {
 public:
  ModelTuner(const passes::LowerOptions& lower, const codegen::AssembleOptions& assemble,
             std::span<const Tensor> inputs, const TuneOptions& options)
      : compiler_(lower, assemble, options.threads),
        inputs_(inputs),
        options_(options),
        random_(options.seed),
        start_(now_nanoseconds()) {
    const auto boosting = open_boosting();
    if (!boosting.ok()) unlearned_ = boosting.error().to_string();
    model_ =
        std::make_shared<CostModel>(boosting.ok() ? *boosting : nullptr, nullptr, options.seed);
  }

  Result<TuneResult> run(const ir::Graph& graph) {
    TW_RETURN_IF_ERROR(decide_graph(graph));
    TW_RETURN_IF_ERROR(find_kernels());
    TW_RETURN_IF_ERROR(compile_usual());
    TW_RETURN_IF_ERROR(time_kernels());
    TW_ASSIGN(best_, compile(best_schedules()));
    TW_RETURN_IF_ERROR(time_known());
    while (!is_over()) {
      TW_ASSIGN(const bool more, round());
      if (!more) break;
    }
    return finish();
  }

 private:
  // In a third of the time at most.
  Status decide_graph(const ir::Graph& graph) {
    graph_task_ = graph_key(graph);
    GraphTuneOptions how{.same_bits = options_.same_bits};
    if (options_.known) how.from = options_.known(graph_task_);
    how.stop = [this] { return seconds() > options_.seconds / 3 || is_over(); };
    how.progress = [this](size_t trials) {
      trials_ = trials;
      if (options_.progress) options_.progress(progress());
    };
    TW_ASSIGN(tuned_graph_, tune_graph(graph, compiler_, inputs_, how, random_));
    if (!tuned_graph_.improved()) return {};
    TW_ASSIGN(const GraphForm usual, graph_form(graph, compiler_.lower(), {}));
    TW_ASSIGN(before_, compiler_.compile(usual.graph, {}));
    return {};
  }

  // All kernels of the model, with their usual schedules.
  Status find_kernels() {
    passes::LowerOptions lower = compiler_.lower();
    Status failed;
    lower.find_schedule = [&](const ir::Kernel& k,
                              const std::set<std::string>& constants) -> std::optional<Trace> {
      TunedKernel kernel{.name = k.name, .task = task_key(k, constants)};
      SearchOptions how{.same_bits = options_.same_bits,
                        .seed = options_.seed + static_cast<uint32_t>(entries_.size()),
                        .model = model_};
      if (options_.known) how.from = options_.known(kernel.task);
      auto search = Search::start(k, constants, compiler_.lower(), std::move(how));
      if (!search.ok()) {
        if (failed.ok()) failed = search.error();
        return std::nullopt;
      }
      kernel.expected_us = search->usual().expected_us;
      entries_.push_back({std::move(kernel), std::move(*search), std::nullopt});
      return entries_.back().search.usual().schedule;
    };
    TW_ASSIGN(const ir::Program program, passes::lower_fused(tuned_graph_.form.graph, lower));
    (void)program;
    return failed;
  }

  Result<std::unique_ptr<Session>> compile(const Schedules& schedules) const {
    return compiler_.compile(tuned_graph_.form.graph, schedules);
  }

  // Also keeps a call of each kernel, for candidates to be checked on.
  Status compile_usual() {
    TW_ASSIGN(const ir::Program program, compiler_.program(tuned_graph_.form.graph, {}));
    TW_ASSIGN(const std::shared_ptr<Executable> executable, compiler_.assemble(program));
    TW_ASSIGN(calls_, capture_calls(program, executable, inputs_, compiler_.pool()));
    TW_ASSIGN(usual_, compiler_.session(executable));
    return {};
  }

  Status time_kernels() {
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

  // Best forms that were known before.
  Status time_known() {
    if (best_schedules().empty()) return {};
    const PairedOptions pairs{.seconds = 0.2, .least = 8, .most = 32, .stop = options_.stop};
    TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *best_, inputs_, pairs, random_));
    for (Entry& e : entries_)
      if (e.search.improved()) e.search.report_best(times.kernel(e.kernel.name).ratio);
    return {};
  }

  double seconds() const { return static_cast<double>(now_nanoseconds() - start_) * 1e-9; }
  bool is_over() const {
    return (options_.stop && options_.stop()) || seconds() > options_.seconds ||
           (options_.trials > 0 && trials_ >= options_.trials);
  }

  Schedules best_schedules() const {
    Schedules s;
    for (const Entry& e : entries_)
      if (e.search.improved()) s[e.kernel.task] = e.search.best().schedule;
    return s;
  }

  // One candidate of each kernel against the best forms. False: there is none left.
  Result<bool> round() {
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
    TW_ASSIGN(ir::Program program, compiler_.program(tuned_graph_.form.graph, schedules));
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
      e.kernel.trials.push_back(
          {.answers = e.trial->answers, .expected_us = e.trial->expected_us, .seconds = seconds()});
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
    ++rounds_;
    history_.push_back(progress());
    if (options_.progress) options_.progress(history_.back());
    return true;
  }
  // Candidates that are new in this round are called alone first. Whether any was refused.
  Result<bool> drop_wrong(const ir::Program& program) {
    std::set<std::string> unchecked;
    for (const Entry& e : entries_)
      if (e.trial && !e.checked) unchecked.insert(e.kernel.name);
    TW_ASSIGN(const auto refused,
              check_alone(program, unchecked, calls_, compiler_.assemble_options(),
                          {.same_bits = options_.same_bits}));
    for (Entry& e : entries_) {
      e.checked = e.trial.has_value();
      const auto it = refused.find(e.kernel.name);
      if (!e.trial || it == refused.end()) continue;
      ++trials_;
      e.kernel.trials.push_back({.answers = e.trial->answers,
                                 .expected_us = e.trial->expected_us,
                                 .seconds = seconds(),
                                 .refused = it->second});
      if (refused_++ == 0) refusal_ = e.kernel.name + ": " + it->second;
      e.trial.reset();
      e.checked = false;
    }
    return !refused.empty();
  }
  bool is_close(Entry& e) const { return options_.gap > 0 && e.search.gap() <= options_.gap; }
  // Is the trial the best form? One that is faster must be so twice.
  static bool judge(Entry& e, const Comparison& c) {
    const bool faster = c.b_is_faster() && c.ratio < kWorthwhile;
    if (faster && e.confirms) return true;
    if (!faster) e.trial.reset();
    e.confirms = faster;
    return false;
  }

  TuneProgress progress() {
    TuneProgress p{.rounds = rounds_, .trials = trials_, .kernels = entries_.size()};
    p.seconds = seconds();
    p.seconds_left = std::max(0.0, options_.seconds - p.seconds);
    if (tuned_graph_.improved() && run_us_ > 0)
      p.saved = (tuned_graph_.gain.a - tuned_graph_.gain.b) / run_us_;
    double us = 0, open_us = 0;
    for (Entry& e : entries_) {
      us += e.kernel.us, open_us += e.search.gap() * e.kernel.us;
      p.improved += e.search.improved();
      p.saved += (1 - e.ratio) * e.kernel.us / run_us_;
    }
    if (us > 0) p.gap = open_us / us;
    p.learning = model_->seconds();
    return p;
  }

  // All best forms together, against the usual ones.
  Result<TuneResult> finish() {
    TuneResult result;
    const PairedOptions pairs{.seconds = 2, .least = 10, .most = 200};
    TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *best_, inputs_, pairs, random_));
    result.runs = times.runs();
    const bool faster = result.runs.ratio < 1;
    if (before_) {
      TW_ASSIGN(const PairedTimes whole, run_in_turn(*before_, *best_, inputs_, pairs, random_));
      result.runs = whole.runs();
    }
    result.graph = std::move(tuned_graph_);
    result.graph_task = graph_task_;
    result.progress = progress();
    result.progress.saved = 0;
    result.rounds = std::move(history_);
    result.refused = refused_;
    result.refusal = refusal_;
    result.unlearned = unlearned_;
    for (Entry& e : entries_) {
      e.kernel.gain = times.kernel(e.kernel.name);
      e.kernel.best = e.search.best();
      e.kernel.gap = e.search.gap();
      e.kernel.improved = faster && e.search.improved() && e.kernel.gain.b_is_faster();
      if (e.kernel.improved) {
        result.progress.saved += (e.kernel.gain.a - e.kernel.gain.b) / result.runs.a;
        e.kernel.changes = e.search.changes();
      }
      result.kernels.push_back(std::move(e.kernel));
    }
    return result;
  }

  const ModelCompiler compiler_;
  const std::span<const Tensor> inputs_;
  const TuneOptions& options_;
  std::mt19937 random_;
  const int64_t start_;
  TunedGraph tuned_graph_;
  std::string graph_task_, unlearned_;
  std::shared_ptr<CostModel> model_;
  std::vector<Entry> entries_;
  // Usual schedules and the best ones, both of the tuned graph; the usual graph where that is another.
  std::unique_ptr<Session> usual_, best_, before_;
  std::map<std::string, CapturedCall> calls_;  // by kernel
  std::vector<TuneProgress> history_;
  size_t rounds_ = 0, trials_ = 0, refused_ = 0;
  double run_us_ = 0;  // with the usual schedules
  std::string refusal_;
};

}  // namespace

Result<TuneResult> tune_model(const ir::Graph& graph, const passes::LowerOptions& lower,
                              const codegen::AssembleOptions& assemble,
                              std::span<const Tensor> inputs, const TuneOptions& options) {
  return ModelTuner(lower, assemble, inputs, options).run(graph);
}

}  // namespace tilewright::autotune
