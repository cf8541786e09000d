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
#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "passes/graph/differentiate.h"

namespace tilewright::train {

namespace {

using ir::Expr;
using ir::Graph;
using ir::V;
using ir::ValueId;

// Thrown by formulas, and caught where they are called.
struct StepFailure {
  Error error;
};

// Nodes of the step that are none of the model's.
class StepNodes final : public ir::NodeBuilder {
 public:
  StepNodes(Graph& graph, std::string label) : graph_(graph), label_(std::move(label)) {}
  Graph& graph() override { return graph_; }
  const Graph& graph() const override { return graph_; }
  std::vector<ValueId> ops(std::string_view name, std::vector<ValueId> inputs,
                           ir::Attributes attributes, int outputs) override {
    auto r = ir::add_node(graph_, name, std::move(inputs), std::move(attributes), outputs, label_,
                          {label_});
    if (!r.ok()) throw StepFailure{std::move(r.error())};
    return std::move(r).value();
  }
  [[noreturn]] void fail(const std::string& message) const override {
    throw StepFailure{invalid(message, label_)};
  }
  ValueId input(const std::string& name, ir::TensorType type) {
    const ValueId v = graph_.add_value(name, std::move(type));
    graph_.inputs.push_back(v);
    return v;
  }

 private:
  Graph& graph_;
  const std::string label_;
};

ir::TensorType flat_type(const Parameters& p) { return {DType::kFloat32, {Expr(p.elements)}}; }

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
    for (const OnnxValueInfo& input : model_.graph.inputs) {
      if (model_.graph.initializers.count(input.name)) continue;
      TW_RETURN_IF_ERROR(bind_batch(input, options));
    }
    training_.batch_statistics = job_.statistics == "batch";
    training_.bind = [&](Graph& graph, bool draws) { return bind(graph, draws); };
    options.training = &training_;
    TW_ASSIGN(step_.graph, import_graph(model_, options));
    return {};
  }
  // What the model reads besides its data. An import may take several attempts, each from the start.
  TrainingImport::Values bind(Graph& graph, bool draws) {
    StepNodes n(graph, "parameters");
    TrainingImport::Values values;
    state_inputs_.clear();
    const auto take_apart = [&](const char* name, const Parameters& from) {
      state_inputs_.push_back(n.input(name, flat_type(from)));
      std::vector<ValueId> pieces;
      for (const Parameter& p : from.members) {
        pieces.push_back(
            n.reshape(n.slice(state_inputs_.back(), 0, p.offset, p.offset + p.elements), p.shape));
        values.initializers[p.name] = pieces.back();
      }
      return pieces;
    };
    pieces_ = take_apart(kParameters, parameters_);
    if (has_statistics()) running_ = take_apart(kStatistics, statistics_);
    step_number_ = n.input("step", {DType::kInt64, {}});
    step_.draws = draws;
    if (!draws) return values;
    const std::vector<uint32_t> seed{static_cast<uint32_t>(job_.seed),
                                     static_cast<uint32_t>(job_.seed >> 32)};
    values.key = n.op("random_key",
                      {n.constant(ir::make_constant_of(DType::kUInt32, {2}, seed)), step_number_});
    samples_ = n.input("sample_ids", {DType::kInt64, {Expr(job_.batch)}});
    values.samples = samples_;
    return values;
  }
  Status bind_batch(const OnnxValueInfo& input, ImportOptions& options) const {
    if (!input.type.shape || input.type.shape->empty())
      return invalid("has no dimension of samples", "input '" + input.name + "' of the model");
    Shape shape;
    for (const OnnxDimension& d : *input.type.shape) {
      const auto* extent = std::get_if<int64_t>(&d);
      const bool is_batch = shape.empty();
      if (!is_batch && !extent)
        return unsupported("an extent of a sample is not known: " + extent_name(d),
                           "input '" + input.name + "' of the model");
      if (is_batch && extent && *extent != job_.batch)
        return invalid("is made for batches of " + std::to_string(*extent) + ", batch is " +
                           std::to_string(job_.batch),
                       "input '" + input.name + "' of the model");
      shape.push_back(is_batch ? job_.batch : *extent);
    }
    options.input_shapes[input.name] = shape;
    return {};
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
      if (!is_own(v)) step_.wanted.inputs.push_back(sample_of(v)), inputs.push_back(v);
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
    std::vector<V> buffers;
    for (std::string_view s : optimizer.state(job_.optimizer)) {
      buffers.emplace_back(n, n.input(std::string(s), flat_type(parameters_)));
      state_inputs_.push_back(buffers.back().id);
      step_.states.push_back({std::string(s), &parameters_});
    }
    const Update update = optimizer.update(job_.optimizer, {lr, {n, step_number_}},
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
  SampleInfo sample_of(ValueId v) const {
    const ir::Value& value = step_.graph.value(v);
    Shape shape = constant_shape(value.type).value_or(Shape{});
    if (!shape.empty()) shape.erase(shape.begin());
    return {value.name, value.type.dtype, shape};
  }
  ValueId add_loss(ValueId output) {
    const Loss& loss = find_loss(job_.loss);
    StepNodes n(step_.graph, "loss");
    const V y = V{n, output}.to(DType::kFloat32);
    if (!loss.has_targets) return loss.loss(y, y).id;
    const ir::TensorType type = loss.targets(n.type(y.id));
    if (type.dims.empty() || ir::as_int(type.dims[0]) != job_.batch)
      n.fail("the output is " + to_string(n.type(output)) + ", expected " +
             std::to_string(job_.batch) + " samples in dimension 0");
    const V targets{n, n.input("targets", type)};
    step_.wanted.has_targets = true;
    step_.wanted.targets = sample_of(targets.id);
    if (type.dtype == DType::kInt64)
      step_.wanted.classes = ir::as_int(n.type(output).dims.back()).value_or(0);
    return loss.loss(y, targets).id;
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
