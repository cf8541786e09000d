// In the order of the graph: the model, reading its parameters as slices of one flat input and running
// statistics of another, drawing numbers by (seed, step, sample, node); the loss of
// its first output; the gradients by these slices, joined into one flat value as the parameters lie;
// the optimiser's formulas over the flat values. Differentiation sees the graph as imported: parameters
// are inputs, so that no pass for constants touches them, neither folding nor packing nor 8 bits.
#include "frontends/train/step_graph.h"

#include <algorithm>

#include "frontends/onnx/import_graph.h"
#include "frontends/train/losses.h"
#include "frontends/train/optimizers.h"
#include "frontends/train/step_nodes.h"
#include "passes/graph/differentiate.h"

namespace tilewright::train {

namespace {

using ir::Graph;
using ir::V;
using ir::ValueId;

// Builds one step; used once.
class StepBuilder {
 public:
  StepBuilder(const OnnxModel& model, const Trained& trained, const Job& job)
      : model_(model),
        parameters_(trained.parameters),
        statistics_(trained.statistics),
        job_(job) {}

  Result<StepGraph> run() {
    TW_RETURN_IF_ERROR(import());
    try {
      return build();
    } catch (StepFailure& f) { return std::move(f.error); }
  }

 private:
  // The model, whose parameters are pieces of the flat buffer.
  Status import() {
    ImportOptions options;
    TW_RETURN_IF_ERROR(bind_batches(model_, job_, options));
    training_.batch_statistics = job_.statistics == "batch";
    options.bind = [&](Graph& graph, bool draws) { return bind(graph, draws); };
    options.training = &training_;
    TW_ASSIGN(step_.graph, import_graph(model_, options));
    return {};
  }
  // What the model reads besides its data. An import may take several attempts, each from the start.
  BoundValues bind(Graph& graph, bool draws) {
    StepNodes n(graph, "parameters");
    BoundValues bound;
    state_inputs_.clear();
    const auto take_apart = [&](const char* name, const Parameters& from) {
      state_inputs_.push_back(n.input(name, flat_type(from)));
      return add_pieces(n, state_inputs_.back(), from, bound);
    };
    pieces_ = take_apart(kParameters, parameters_);
    if (has_statistics()) running_ = take_apart(kStatistics, statistics_);
    step_number_ = n.input("step", {DType::kInt64, {}});
    step_.draws = draws;
    if (!draws) return bound;
    const std::vector<uint32_t> seed{static_cast<uint32_t>(job_.seed),
                                     static_cast<uint32_t>(job_.seed >> 32)};
    bound.key = n.op("random_key",
                     {n.constant(ir::make_constant_of(DType::kUInt32, {2}, seed)), step_number_});
    samples_ = n.input("sample_ids", {DType::kInt64, {ir::Expr(job_.batch)}});
    bound.samples = samples_;
    return bound;
  }
  // Behind the model: all that it is trained with.
  Result<StepGraph> build() {
    Graph& g = step_.graph;
    if (g.outputs.empty()) return invalid("the model has no output");
    const ValueId output = g.outputs[0];
    if (!is_float(g.value(output).type.dtype))
      return invalid("is " + to_string(g.value(output).type) + ", expected floats",
                     "output '" + g.output_names[0] + "' of the model");
    std::vector<ValueId> inputs;
    for (ValueId v : g.inputs)
      if (!is_own(v)) step_.wanted.inputs.push_back(sample_of(g, v)), inputs.push_back(v);
    const ValueId loss = add_loss(output);
    if (step_.wanted.has_targets) inputs.push_back(g.inputs.back());
    if (step_.draws) inputs.push_back(samples_);
    StepNodes n(g, "update");
    const V lr{n, n.input("lr", {DType::kFloat32, {}})};
    inputs.insert(inputs.end(), {step_number_, lr.id});
    auto gradients = passes::differentiate(g, loss, pieces_);
    if (!gradients.ok()) return gradients.error();
    const V gradient{n, join(n, parameters_, *gradients)};
    std::vector<ValueId> updated{ir::kNone};  // parameters, by the optimiser
    step_.states = {{kParameters, &parameters_}};
    if (has_statistics()) {
      for (ValueId& v : running_) v = training_.updated.at(v);
      updated.push_back(join(n, statistics_, running_));
      step_.states.push_back({kStatistics, &statistics_});
    }
    const Optimizer& optimizer = find_optimizer(job_.optimizer.name);
    const auto decay = decay_of(n, job_.optimizer, parameters_);
    if (!decay.ok()) return decay.error();
    std::vector<V> buffers;
    for (std::string_view s : optimizer.state(job_.optimizer)) {
      buffers.emplace_back(n, n.input(std::string(s), flat_type(parameters_)));
      state_inputs_.push_back(buffers.back().id);
      step_.states.push_back({std::string(s), &parameters_});
    }
    const Update update =
        optimizer.update(job_.optimizer, {lr, {n, step_number_}, *decay, parameters_},
                         {n, state_inputs_[0]}, clipped(gradient), buffers);
    updated[0] = update.parameters.id;
    for (const V& v : update.state) updated.push_back(v.id);
    g.outputs = {loss, gradient.id};
    g.output_names = {"loss", "gradients"};
    g.inputs = std::move(inputs);
    for (size_t k = 0; k < updated.size(); ++k) {
      g.updates.push_back(
          {static_cast<int32_t>(g.inputs.size()), static_cast<int32_t>(g.outputs.size())});
      g.inputs.push_back(state_inputs_[k]);
      g.outputs.push_back(updated[k]);
      g.output_names.push_back(step_.states[k].name);
    }
    g.name = "training of " + g.name;
    return std::move(step_);
  }
  // Do steps change statistics? Else they are constants.
  bool has_statistics() const { return training_.batch_statistics && !statistics_.members.empty(); }
  // Is the input one that the model does not have?
  bool is_own(ValueId v) const {
    return v == step_number_ || v == samples_ ||
           std::find(state_inputs_.begin(), state_inputs_.end(), v) != state_inputs_.end();
  }
  ValueId add_loss(ValueId output) {
    StepNodes n(step_.graph, "loss");
    const Compared c = add_targets(n, output, job_, step_.wanted);
    return find_loss(job_.loss).loss(c.output, c.targets).id;
  }
  // All of them side by side, as members lie, with zeros where those have none.
  static ValueId join(StepNodes& n, const Parameters& members, const std::vector<ValueId>& values) {
    std::vector<ValueId> parts;
    int64_t end = 0;
    const auto fill_to = [&](int64_t offset) {
      if (offset == end) return;
      parts.push_back(n.constant(ir::make_constant_of(
          DType::kFloat32, {offset - end}, std::vector<float>(static_cast<size_t>(offset - end)))));
    };
    for (size_t k = 0; k < values.size(); ++k) {
      const Parameter& p = members.members[k];
      fill_to(p.offset);
      parts.push_back(n.reshape(values[k], std::vector<int64_t>{p.elements}));
      end = p.offset + p.elements;
    }
    fill_to(members.elements);
    return n.op("concat", std::move(parts), {{"axis", int64_t{0}}});
  }
  // As torch.nn.utils.clip_grad_value_ and clip_grad_norm_ do.
  V clipped(V g) const {
    const OptimizerJob& o = job_.optimizer;
    if (o.clip_value > 0) g = ir::limit(g, -o.clip_value, o.clip_value);
    if (o.clip_norm == 0) return g;
    const V norm = ir::apply("sqrt", ir::reduce("reduce_sum", g * g, {0}));
    return g * ir::apply("min", norm.number(1), o.clip_norm / (norm + 1e-6));
  }

  const OnnxModel& model_;
  const Parameters &parameters_, &statistics_;
  const Job& job_;
  TrainingImport training_;
  StepGraph step_;
  ValueId step_number_ = ir::kNone, samples_ = ir::kNone;
  std::vector<ValueId> state_inputs_;      // of StepGraph::states
  std::vector<ValueId> pieces_, running_;  // by parameter, by statistic
};

}  // namespace

Result<StepGraph> build_step(const OnnxModel& model, const Trained& trained, const Job& job) {
  return StepBuilder(model, trained, job).run();
}

}  // namespace tilewright::train
