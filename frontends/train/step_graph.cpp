// In the order of the graph: the model, reading its parameters as slices of one flat input and running
// statistics of another, drawing numbers by (seed, step, sample, node); the loss of
// its first output; the gradients by these slices, joined into one flat value as the parameters lie;
// the optimiser's formulas over the flat values. Differentiation sees the graph as imported: parameters
// are inputs, so that no pass for constants touches them, neither folding nor packing nor 8 bits.
#include "frontends/train/step_graph.h"

#include "frontends/onnx/import_graph.h"
#include "frontends/train/losses.h"
#include "frontends/train/parameter_orders.h"
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
    samples_ = ir::kNone;
    flat_parameters_ = n.input(kParameters, flat_type(parameters_));
    pieces_ = add_pieces(n, flat_parameters_, parameters_, bound);
    if (has_statistics()) {
      flat_statistics_ = n.input(kStatistics, flat_type(statistics_));
      running_ = add_pieces(n, flat_statistics_, statistics_, bound);
    }
    step_number_ = n.input("step", {DType::kInt64, {}});
    if (!draws) return bound;
    const std::vector<uint32_t> seed{static_cast<uint32_t>(job_.seed),
                                     static_cast<uint32_t>(job_.seed >> 32)};
    bound.key = n.op("random_key",
                     {n.constant(ir::make_constant_of(DType::kUInt32, {2}, seed)), step_number_});
    samples_ = n.input("sample_ids", {DType::kInt64, {ir::Expr(job_.part())}});
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
    if (samples_ != ir::kNone) inputs.push_back(samples_);
    inputs.push_back(step_number_);
    g.outputs = {loss};
    g.output_names = {"loss"};
    TW_RETURN_IF_ERROR(job_.is_cut() ? add_part(std::move(inputs)) : add_whole(std::move(inputs)));
    if (has_statistics())
      step_.states.insert(step_.states.begin() + 1, {kStatistics, &statistics_});
    g.name = "training of " + g.name;
    return std::move(step_);
  }
  Result<V> add_gradient(StepNodes& n) {
    const ValueId loss = step_.graph.outputs[0];
    TW_ASSIGN(const std::vector<ValueId> pieces, passes::differentiate(step_.graph, loss, pieces_));
    return V{n, join(n, parameters_, pieces)};
  }
  Status add_whole(std::vector<ValueId> inputs) {
    Graph& g = step_.graph;
    StepNodes n(g, "update");
    const V lr{n, n.input("lr", {DType::kFloat32, {}})};
    inputs.push_back(lr.id);
    TW_ASSIGN(const V gradient, add_gradient(n));
    if (keeps_gradients(job_)) {
      g.outputs.push_back(gradient.id);
      g.output_names.push_back(kGradients);
    }
    TW_ASSIGN(std::vector<Updated> updated,
              add_update(n, job_, parameters_, lr, {n, step_number_}, flat_parameters_, gradient));
    for (const Updated& u : updated) step_.states.push_back(u.state);
    if (has_statistics()) updated.insert(updated.begin() + 1, updated_statistics(n));
    set_updates(g, std::move(inputs), updated);
    return {};
  }
  // Averages, not sums, so that numbers are as large as those of a whole step. Where sums must be exact, the program
  // gives the part's share, and its caller adds up; else it adds its share to the average so far, in place.
  Status add_part(std::vector<ValueId> inputs) {
    StepNodes n(step_.graph, "accumulation");
    const ValueId part = job_.distributed.exact ? ir::kNone : n.input("part", {DType::kInt64, {}});
    std::vector<Updated> averages;
    const auto average = [&](const char* name, const Parameters& members, V value) {
      const V share = value * (1.0 / static_cast<double>(job_.parts()));
      if (part == ir::kNone) {
        step_.graph.outputs.push_back(watched(n, share.id));
        step_.graph.output_names.push_back(name);
        return;
      }
      const V before{n, n.input(name, flat_type(members))}, number{n, part},
          is_first = ir::apply("equal", number, number.number(0)),
          sum = ir::where(is_first, share, before + share);
      averages.push_back({{name, &members}, before.id, watched(n, sum.id)});
    };
    if (part != ir::kNone) inputs.push_back(part);
    inputs.push_back(flat_parameters_);
    TW_ASSIGN(const V gradient, add_gradient(n));
    average(kGradients, parameters_, gradient);
    if (has_statistics() && job_.averages_statistics()) {
      inputs.push_back(flat_statistics_);
      average(kNewStatistics, statistics_, {n, updated_statistics(n).value});
    } else if (has_statistics()) {
      averages.push_back(updated_statistics(n));
    }
    set_updates(step_.graph, std::move(inputs), averages);
    return build_update();
  }
  // What follows the last part.
  Status build_update() {
    Graph g;
    g.name = "update of " + step_.graph.name;
    StepNodes n(g, "update");
    const V step{n, n.input("step", {DType::kInt64, {}})},
        lr{n, n.input("lr", {DType::kFloat32, {}})},
        gradients{n, n.input(kGradients, flat_type(parameters_))},
        parameters{n, n.input(kParameters, flat_type(parameters_))};
    std::vector<ValueId> inputs{step.id, lr.id, gradients.id};
    TW_ASSIGN(std::vector<Updated> updated,
              add_update(n, job_, parameters_, lr, step, parameters.id, gradients));
    for (const Updated& u : updated) step_.states.push_back(u.state);
    if (has_statistics() && job_.averages_statistics()) {
      const ValueId statistics = n.input(kStatistics, flat_type(statistics_));
      inputs.push_back(n.input(kNewStatistics, flat_type(statistics_)));
      updated.push_back({{kStatistics, &statistics_}, statistics, watched(n, inputs.back())});
    }
    set_updates(g, std::move(inputs), updated);
    step_.update = std::move(g);
    return {};
  }
  Updated updated_statistics(StepNodes& n) {
    for (ValueId& v : running_) v = watched(n, training_.updated.at(v));
    return {{kStatistics, &statistics_}, flat_statistics_, join(n, statistics_, running_)};
  }
  // Do steps change statistics? Else they are constants.
  bool has_statistics() const { return training_.batch_statistics && !statistics_.members.empty(); }
  // Is the input one that the model does not have?
  bool is_own(ValueId v) const {
    return v == step_number_ || v == samples_ || v == flat_parameters_ || v == flat_statistics_;
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
      const ValueId stored =
          p.order.empty() ? values[k]
                          : n.op("transpose", {values[k]},
                                 {{"perm", std::vector<int64_t>(p.order.begin(), p.order.end())}});
      parts.push_back(n.reshape(stored, std::vector<int64_t>{p.elements}));
      end = p.offset + p.elements;
    }
    fill_to(members.elements);
    return n.op("concat", std::move(parts), {{"axis", int64_t{0}}});
  }

  const OnnxModel& model_;
  const Parameters &parameters_, &statistics_;
  const Job& job_;
  TrainingImport training_;
  StepGraph step_;
  ValueId flat_parameters_ = ir::kNone, flat_statistics_ = ir::kNone, step_number_ = ir::kNone,
          samples_ = ir::kNone;
  std::vector<ValueId> pieces_, running_;  // by parameter, by statistic
};

}  // namespace

Result<StepGraph> build_step(const OnnxModel& model, Trained& trained, const Job& job) {
  TW_ASSIGN(StepGraph step, StepBuilder(model, trained, job).run());
  if (!choose_orders(step.graph, trained.parameters)) return step;
  return StepBuilder(model, trained, job).run();
}

}  // namespace tilewright::train
