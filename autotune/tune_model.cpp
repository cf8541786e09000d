#include "autotune/tune_model.h"

#include <algorithm>
#include <optional>
#include <random>

#include "autotune/graph_candidates.h"
#include "autotune/learn/shipped_model.h"
#include "autotune/measure/placements.h"
#include "autotune/second_chances.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

constexpr double kFirst = 0.7;  // of the time is over when other graphs get a second chance

class ModelTuner {
 public:
  ModelTuner(const passes::LowerOptions& lower, const codegen::AssembleOptions& assemble,
             InputSets inputs, const TuneOptions& options)
      : compiler_(lower, assemble, options.threads),
        inputs_(inputs),
        options_(options),
        random_(options.seed),
        start_(now_nanoseconds()) {
    model_ = shipped_model(options_.seed, unlearned_);
    how_ = {.same_bits = options_.same_bits,
            .gap = options_.gap,
            .seed = options_.seed,
            .model = model_,
            .known = options_.known,
            .found = options_.found,
            .stop = options_.stop,
            .seconds = [this] { return seconds(); },
            .measure = options_.measure};
  }

  Result<TuneResult> run(const ir::Graph& graph) {
    TW_RETURN_IF_ERROR(decide_graph(graph));
    TW_RETURN_IF_ERROR(start(plan_of(graph_.form.graph)));
    const auto chances = second_chances(graph_, kernels_->run_us());
    TW_RETURN_IF_ERROR(tune(*kernels_, options_.seconds * (chances.empty() ? 1 : kFirst)));
    for (size_t i = 0; i < chances.size() && !is_over(); ++i) {
      const double left = options_.seconds - reserve() - seconds();
      const double until = seconds() + left / static_cast<double>(chances.size() - i);
      if (left > 0) TW_RETURN_IF_ERROR(give_chance(graph, chances[i], until + reserve()));
    }
    TW_RETURN_IF_ERROR(tune(*kernels_, options_.seconds));
    return finish();
  }
  Result<TuneResult> run(Plan plan) {
    TW_RETURN_IF_ERROR(start(std::move(plan)));
    TW_RETURN_IF_ERROR(tune(*kernels_, options_.seconds));
    return finish();
  }

 private:
  // In a third of the time at most.
  Status decide_graph(const ir::Graph& graph) {
    graph_task_ = graph_key(graph);
    GraphTuneOptions how{.same_bits = options_.same_bits};
    how.measure = options_.measure;
    if (options_.known) how.from = options_.known(graph_task_, "");
    how.known = options_.known;
    how.stop = [this] { return seconds() > options_.seconds / 3 || is_over(); };
    how.progress = [this](size_t trials) {
      graph_trials_ = trials;
      if (options_.progress) options_.progress(progress());
    };
    TW_ASSIGN(graph_, tune_graph(graph, compiler_, inputs_, how, random_));
    return graph_.improved() ? keep_graph(graph) : Status();
  }

  Status start(Plan plan) {
    kernels_ = std::make_unique<KernelTuner>(compiler_, std::move(plan), inputs_, how_, random_);
    return kernels_->start();
  }
  Status tune(KernelTuner& kernels, double until) {
    while (!is_over() && seconds() + reserve() < until) {
      TW_ASSIGN(const bool more, kernels.round());
      if (!more) break;
      history_.push_back(progress());
      if (options_.progress) options_.progress(history_.back());
    }
    return {};
  }

  // Tunes the kernels that only this form has, and takes it where it is faster then.
  Status give_chance(const ir::Graph& graph, const GraphTrial& trial, double until) {
    auto form = graph_form(graph, compiler_.lower(), merged(graph_.form.answers, trial.answers));
    if (form.ok()) form = graph_form(graph, compiler_.lower(), unusual_answers(*form));
    if (!form.ok() || differing_nodes(graph_.form, *form).empty()) return {};
    auto kernels =
        std::make_unique<KernelTuner>(compiler_, plan_of(form->graph), inputs_, how_, random_);
    TW_RETURN_IF_ERROR(kernels->start(kernels_.get()));
    TW_RETURN_IF_ERROR(tune(*kernels, until));
    const auto again = try_again(trial, {graph_.form, *kernels_}, {*form, *kernels}, inputs_,
                                 random_, options_.measure);
    if (again.ok()) graph_.trials.push_back(*again);
    const bool taken = again.ok() && again->confirmed;
    if (taken) std::swap(kernels_, kernels);
    other_trials_ += kernels->trials();
    if (!taken) return {};
    kernels_->tune_all();
    const bool first = !graph_.improved();
    graph_.gain =
        first ? again->measured : against(again->measured, graph_.gain.a, graph_.gain.ratio);
    graph_.form = std::move(*form);
    return keep_graph(graph);
  }

  // Its form is not the usual one.
  Status keep_graph(const ir::Graph& graph) {
    if (options_.found)
      TW_RETURN_IF_ERROR(options_.found({graph_task_, "", graph_.form.answers, {}, graph_.gain}));
    TW_ASSIGN(before_, graph_form(graph, compiler_.lower(), {}));
    return {};
  }

  double seconds() const { return static_cast<double>(now_nanoseconds() - start_) * 1e-9; }
  bool is_over() const {
    return (options_.stop && options_.stop()) || seconds() > options_.seconds ||
           (options_.trials > 0 && trials() >= options_.trials);
  }

  // For the last runs: a third of the time at most.
  double reserve() const {
    const double needed = kernels_->seconds_to_finish() * (before_ ? 2 : 1);
    return std::min(needed, options_.seconds / 3);
  }
  size_t trials() const {
    return graph_trials_ + other_trials_ + (kernels_ ? kernels_->trials() : 0);
  }

  TuneProgress progress() {
    TuneProgress p{.rounds = history_.size() + 1, .trials = trials()};
    p.seconds = seconds();
    p.seconds_left = std::max(0.0, options_.seconds - p.seconds);
    p.learning = model_->seconds();
    if (!kernels_) return p;
    p.kernels = kernels_->kernels();
    p.improved = kernels_->improved();
    const double on_graph = graph_.improved() ? graph_.gain.a - graph_.gain.b : 0;
    p.saved = (on_graph + kernels_->saved_us()) / kernels_->run_us();
    p.gap = kernels_->gap();
    return p;
  }

  // All best forms together, against the usual ones.
  Result<TuneResult> finish() {
    TuneResult result;
    TW_ASSIGN(result.runs, kernels_->finish());
    if (before_) {
      const PairedOptions pairs{
          .seconds = 0.25, .least = 4, .most = 40, .measure = options_.measure};
      const auto usual = [&] { return compiler_.compile(plan_of(before_->graph), {}); };
      const auto best = [&] { return kernels_->compile(); };
      TW_ASSIGN(const Placements whole, run_at_placements(usual, best, inputs_, pairs, random_));
      result.runs = whole.runs();
    }
    const bool all_in_vain = before_ && result.runs.ratio >= 1;
    if (all_in_vain) graph_.form.answers.clear();
    result.progress = progress();
    result.progress.rounds = history_.size();
    result.rounds = std::move(history_);
    result.refused = kernels_->refused();
    result.refusal = kernels_->refusal();
    result.unlearned = unlearned_;
    result.kernels = kernels_->take_kernels();
    for (TunedKernel& k : result.kernels)
      if (all_in_vain) k.withdrawn = k.recorded, k.improved = false;
    result.progress.saved = 0;
    for (const TunedKernel& k : result.kernels)
      if (k.improved) result.progress.saved += (k.gain.a - k.gain.b) / result.runs.a;
    result.graph = std::move(graph_);
    result.graph_task = graph_task_;
    return result;
  }

  const ModelCompiler compiler_;
  const InputSets inputs_;
  const TuneOptions& options_;
  std::mt19937 random_;
  const int64_t start_;
  TunedGraph graph_;
  std::string graph_task_, unlearned_;
  std::shared_ptr<CostModel> model_;
  KernelTuneOptions how_;
  std::unique_ptr<KernelTuner> kernels_;
  std::optional<GraphForm> before_;  // the usual one, where the tuned one is another
  std::vector<TuneProgress> history_;
  size_t graph_trials_ = 0, other_trials_ = 0;  // of graphs, and of kernels of forms not taken
};

}  // namespace

Result<TuneResult> tune_model(const ir::Graph& graph, const passes::LowerOptions& lower,
                              const codegen::AssembleOptions& assemble, InputSets inputs,
                              const TuneOptions& options) {
  return ModelTuner(lower, assemble, inputs, options).run(graph);
}

Result<TuneResult> tune_kernel(ir::Kernel kernel, std::map<std::string, ir::ConstantRef> constants,
                               const passes::LowerOptions& lower,
                               const codegen::AssembleOptions& assemble, InputSets inputs,
                               const TuneOptions& options) {
  return ModelTuner(lower, assemble, inputs, options)
      .run(plan_of(std::move(kernel), std::move(constants)));
}

}  // namespace tilewright::autotune
