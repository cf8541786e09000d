// In the order of the graph: the model, reading its parameters as slices of one flat input; the loss of
// its first output; the gradients by these slices, joined into one flat value as the parameters lie;
// the optimiser's formulas over the flat values. Differentiation sees the graph as imported: parameters
// are inputs, so that no pass for constants touches them, neither folding nor packing nor 8 bits.
#include "frontends/train/step_graph.h"

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
  StepBuilder(const OnnxModel& model, const Parameters& parameters, const Job& job)
      : model_(model), parameters_(parameters), job_(job) {}

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
      TW_RETURN_IF_ERROR(bind_batch(input, job_.batch, options));
    }
    options.bind_initializers = [&](Graph& graph) {
      StepNodes n(graph, "parameters");
      std::map<std::string, ValueId> values;
      flat_ = n.input("parameters", flat_type(parameters_));
      pieces_.clear();
      for (const Parameter& p : parameters_.members) {
        ValueId piece = n.reshape(n.slice(flat_, 0, p.offset, p.offset + p.elements), p.shape);
        values[p.name] = piece;
        pieces_.push_back(piece);
      }
      return values;
    };
    TW_ASSIGN(step_.graph, import_graph(model_, options));
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
    for (ValueId v : g.inputs)
      if (v != flat_) step_.wanted.inputs.push_back(sample_of(g, v));
    const ValueId loss = add_loss(output);
    const std::string name = g.output_names[0];
    StepNodes n(g, "update");
    const RateValues rates{rate(n, "lr"), rate(n, "correction1"), rate(n, "correction2")};
    auto gradients = passes::differentiate(g, loss, pieces_);
    if (!gradients.ok()) return gradients.error();
    const V gradient{n, join(n, *gradients)};
    const Optimizer& optimizer = find_optimizer(job_.optimizer.name);
    std::vector<V> states;
    for (std::string_view s : optimizer.state(job_.optimizer)) {
      step_.states.emplace_back(s);
      states.emplace_back(n, n.input(step_.states.back(), flat_type(parameters_)));
    }
    const Update update =
        optimizer.update(job_.optimizer, rates, {n, flat_}, clipped(gradient), states);
    g.outputs = {loss, gradient.id, update.parameters.id};
    g.output_names = {"loss", "gradients", "parameters"};
    for (size_t k = 0; k < update.state.size(); ++k) {
      g.outputs.push_back(update.state[k].id);
      g.output_names.push_back(step_.states[k]);
    }
    move_input_back(flat_, states.size());
    // The last inputs, in the order of the last outputs.
    const auto kept = static_cast<int32_t>(1 + states.size()),
               inputs = static_cast<int32_t>(g.inputs.size()),
               outputs = static_cast<int32_t>(g.outputs.size());
    for (int32_t k = 0; k < kept; ++k) g.updates.push_back({inputs - kept + k, outputs - kept + k});
    g.name = "training of " + g.name;
    return std::move(step_);
  }
  // Parameters stand before the buffers, behind all else.
  void move_input_back(ValueId v, size_t before_end) {
    auto& inputs = step_.graph.inputs;
    std::erase(inputs, v);
    inputs.insert(inputs.end() - static_cast<long>(before_end), v);
  }
  ValueId add_loss(ValueId output) {
    StepNodes n(step_.graph, "loss");
    const Compared c = add_targets(n, output, job_, step_.wanted);
    return find_loss(job_.loss).loss(c.output, c.targets).id;
  }
  V rate(StepNodes& n, const char* name) const { return {n, n.input(name, {DType::kFloat32, {}})}; }
  // All gradients as the parameters lie, with zeros where those have none.
  ValueId join(StepNodes& n, const std::vector<ValueId>& gradients) const {
    std::vector<ValueId> parts;
    int64_t end = 0;
    const auto fill_to = [&](int64_t offset) {
      if (offset == end) return;
      parts.push_back(n.constant(ir::make_constant_of(
          DType::kFloat32, {offset - end}, std::vector<float>(static_cast<size_t>(offset - end)))));
    };
    for (size_t k = 0; k < gradients.size(); ++k) {
      const Parameter& p = parameters_.members[k];
      fill_to(p.offset);
      parts.push_back(n.reshape(gradients[k], std::vector<int64_t>{p.elements}));
      end = p.offset + p.elements;
    }
    fill_to(parameters_.elements);
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
  const Parameters& parameters_;
  const Job& job_;
  StepGraph step_;
  ValueId flat_ = ir::kNone;
  std::vector<ValueId> pieces_;  // by parameter
};

}  // namespace

Result<StepGraph> build_step(const OnnxModel& model, const Parameters& parameters, const Job& job) {
  return StepBuilder(model, parameters, job).run();
}

}  // namespace tilewright::train
