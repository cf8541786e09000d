#include "autotune/tune_model.h"

#include <algorithm>
#include <optional>
#include <random>

#include "autotune/measure/placements.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

class ModelTuner {
 public:
  ModelTuner(const passes::LowerOptions& lower, const codegen::AssembleOptions& assemble,
             InputSets inputs, const TuneOptions& options)
      : compiler_(lower, assemble, options.threads),
        inputs_(inputs),
        options_(options),
        random_(options.seed),
        start_(now_nanoseconds()) {
    learn_costs();
  }

  Result<TuneResult> run(const ir::Graph& graph) {
    TW_RETURN_IF_ERROR(decide_graph(graph));
    return run(plan_of(graph_.form.graph));
  }
  Result<TuneResult> run(Plan plan) {
    KernelTuneOptions how{.same_bits = options_.same_bits,
                          .gap = options_.gap,
                          .seed = options_.seed,
                          .model = model_,
                          .known = options_.known,
                          .found = options_.found,
                          .stop = options_.stop};
    how.seconds = [this] { return seconds(); };
    kernels_.emplace(compiler_, std::move(plan), inputs_, how, random_);
    TW_RETURN_IF_ERROR(kernels_->start());
    while (!is_over() && seconds() + reserve() < options_.seconds) {
      TW_ASSIGN(const bool more, kernels_->round());
      if (!more) break;
      history_.push_back(progress());
      if (options_.progress) options_.progress(history_.back());
    }
    return finish();
  }

 private:
  // Where trees cannot be had, or the shipped ones are of other features, tuning goes on with less.
  void learn_costs() {
    const auto boosting = open_boosting();
    std::shared_ptr<const Ensemble> base;
    if (boosting.ok()) {
      auto shipped = load_base_model(**boosting, (*boosting)->base_model());
      if (shipped.ok()) base = std::make_shared<const Ensemble>(std::move(*shipped));
    } else {
      unlearned_ = boosting.error().to_string();
    }
    model_ = std::make_shared<CostModel>(boosting.ok() ? *boosting : nullptr, std::move(base),
                                         options_.seed);
  }

  // In a third of the time at most.
  Status decide_graph(const ir::Graph& graph) {
    graph_task_ = graph_key(graph);
    GraphTuneOptions how{.same_bits = options_.same_bits};
    if (options_.known) how.from = options_.known(graph_task_, "");
    how.stop = [this] { return seconds() > options_.seconds / 3 || is_over(); };
    how.progress = [this](size_t trials) {
      graph_trials_ = trials;
      if (options_.progress) options_.progress(progress());
    };
    TW_ASSIGN(graph_, tune_graph(graph, compiler_, inputs_, how, random_));
    if (!graph_.improved()) return {};
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
  size_t trials() const { return graph_trials_ + (kernels_ ? kernels_->trials() : 0); }

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
      const PairedOptions pairs{.seconds = 0.25, .least = 4, .most = 40};
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
  std::optional<KernelTuner> kernels_;
  std::optional<GraphForm> before_;  // the usual one, where the tuned one is another
  std::vector<TuneProgress> history_;
  size_t graph_trials_ = 0;
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
