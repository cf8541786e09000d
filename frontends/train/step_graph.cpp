// In the order of the graph: the model, reading its parameters as slices of one flat input and running
// statistics of another, drawing numbers by (seed, step, sample, node); the loss of
// its first output; the gradients by these slices, joined into one flat value as the parameters lie;
// the optimiser's formulas over the flat values. Differentiation sees the graph as imported: parameters
// are inputs, so that no pass for constants touches them, neither folding nor packing nor 8 bits.
#include "frontends/train/step_graph.h"

#include <algorithm>
#include <numeric>

#include "frontends/onnx/import_graph.h"
#include "frontends/train/losses.h"
#include "frontends/train/parameter_orders.h"
#include "frontends/train/step_nodes.h"
#include "passes/graph/differentiate.h"

namespace tilewright::train {

namespace {

using ir::Graph;
using ir::Node;
using ir::V;
using ir::ValueId;

// Which of the nodes from number `first` on serve one gradient alone: its product, but not that of the gradient of
// what the layer reads, on which the layers before depend.
std::vector<bool> find_leaves(const Graph& graph, size_t first,
                              const std::vector<ValueId>& gradients) {
  constexpr size_t none = SIZE_MAX, many = SIZE_MAX - 1;
  std::vector<size_t> serves(graph.values.size(), none);  // a gradient
  const auto add = [](size_t& to, size_t served) {
    if (served != none) to = to == none || to == served ? served : many;
  };
  for (size_t k = 0; k < gradients.size(); ++k) add(serves[static_cast<size_t>(gradients[k])], k);
  std::vector<bool> leaves(graph.nodes.size());
  for (size_t k = graph.nodes.size(); k-- > first;) {
    size_t served = none;
    for (const ValueId v : graph.nodes[k].outputs)
      if (v != ir::kNone) add(served, serves[static_cast<size_t>(v)]);
    for (const ValueId v : graph.nodes[k].inputs)
      if (v != ir::kNone) add(serves[static_cast<size_t>(v)], served);
    leaves[k] = served < many;
  }
  return leaves;
}

// Moves each chosen node directly behind the producer of its last operand. Kernels keep the order of their nodes.
void move_to_operands(Graph& graph, const std::vector<bool>& chosen) {
  std::vector<size_t> ready(graph.values.size()), place(graph.nodes.size()), order(place.size());
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    const Node& node = graph.nodes[k];
    place[k] = chosen[k] ? 0 : k;
    for (const ValueId v : node.inputs)
      if (chosen[k] && v != ir::kNone) place[k] = std::max(place[k], ready[static_cast<size_t>(v)]);
    for (const ValueId v : node.outputs)
      if (v != ir::kNone) ready[static_cast<size_t>(v)] = place[k];
  }
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t k) { return place[k]; });
  std::vector<Node> nodes;
  for (const size_t k : order) {
    for (const ValueId v : graph.nodes[k].outputs)
      if (v != ir::kNone) graph.value(v).producer = static_cast<int32_t>(nodes.size());
    nodes.push_back(std::move(graph.nodes[k]));
  }
  graph.nodes = std::move(nodes);
}

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
  // gives the part's share, and its caller adds up; else it adds its share to the average so far, in place. All of it
  // is said of each member, so that a gradient is complete with the kernel that makes it.
  Status add_part(std::vector<ValueId> inputs) {
    StepNodes n(step_.graph, "accumulation");
    std::vector<Updated> averages;
    const bool exact = job_.distributed.exact;
    if (!exact) inputs.push_back(n.input("part", {DType::kInt64, {}}));
    const ValueId kept = exact ? ir::kNone : is_kept(n, inputs.back());
    const auto give = [&](const char* name, const Parameters& members,
                          const std::vector<ValueId>& values) {
      const ValueId before = exact ? ir::kNone : n.input(name, flat_type(members));
      const ValueId all = join_shares(n, members, values, before, kept);
      if (!exact) return averages.push_back({{name, &members}, before, all});
      step_.graph.outputs.push_back(all);
      step_.graph.output_names.push_back(name);
    };
    inputs.push_back(flat_parameters_);
    // Gradients of the loss's share are shares of the gradients.
    const double share = 1.0 / static_cast<double>(job_.parts());
    const size_t forward = step_.graph.nodes.size();
    TW_ASSIGN(
        const std::vector<ValueId> gradients,
        passes::differentiate(step_.graph, (V{n, step_.graph.outputs[0]} * share).id, pieces_));
    std::vector<bool> early = find_leaves(step_.graph, forward, gradients);
    step_.made = gradients;
    give(kGradients, parameters_, gradients);
    if (has_statistics() && job_.averages_statistics()) {
      inputs.push_back(flat_statistics_);
      std::vector<ValueId> updated;
      for (const ValueId v : running_)
        updated.push_back((V{n, training_.updated.at(v)} * share).id);
      give(kNewStatistics, statistics_, updated);
    } else if (has_statistics()) {
      averages.push_back(updated_statistics(n));
    }
    early.resize(step_.graph.nodes.size(), true);
    move_to_operands(step_.graph, early);
    set_updates(step_.graph, std::move(inputs), averages);
    return build_update();
  }
  // 0 in the first part of a step, 1 in others; f32.
  static ValueId is_kept(StepNodes& n, ValueId part) {
    const auto number = [&](float value) {
      return V{n, n.constant(ir::make_constant_of(DType::kFloat32, {}, std::vector<float>{value}))};
    };
    const V which{n, part};
    return ir::where(ir::apply("equal", which, which.number(0)), number(0), number(1)).id;
  }
  // The values side by side, as members lie, with zeros between; with `before`, added to what that has, times `kept`.
  ValueId join_shares(StepNodes& n, const Parameters& members, const std::vector<ValueId>& values,
                      ValueId before, ValueId kept) {
    std::vector<ValueId> joined;
    for (size_t k = 0; k < values.size(); ++k) {
      const Parameter& p = members.members[k];
      const int64_t next = k + 1 < values.size() ? members.members[k + 1].offset : members.elements,
                    fill = next - p.offset - p.elements;
      V value{n, values[k]};
      if (before != ir::kNone && fill == 0)
        value = V{n, piece_of(n, before, p)} * V{n, kept} + value;
      value.id = as_stored(n, p, value.id);
      if (fill > 0) value.id = n.op("concat", {value.id, zeros(n, fill)}, {{"axis", int64_t{0}}});
      if (before != ir::kNone && fill > 0)
        value = V{n, n.slice(before, 0, p.offset, next)} * V{n, kept} + value;
      joined.push_back(value.id);
    }
    return joined.size() == 1 ? joined[0]
                              : n.op("concat", std::move(joined), {{"axis", int64_t{0}}});
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
  static ValueId zeros(StepNodes& n, int64_t count) {
    return n.constant(ir::make_constant_of(DType::kFloat32, {count},
                                           std::vector<float>(static_cast<size_t>(count))));
  }
  // A member's value, [elements], in the order in which it lies in its flat buffer.
  static ValueId as_stored(StepNodes& n, const Parameter& p, ValueId value) {
    if (!p.order.empty())
      value = n.op("transpose", {value},
                   {{"perm", std::vector<int64_t>(p.order.begin(), p.order.end())}});
    return n.reshape(value, std::vector<int64_t>{p.elements});
  }
  // All of them side by side, as members lie, with zeros where those have none.
  static ValueId join(StepNodes& n, const Parameters& members, const std::vector<ValueId>& values) {
    std::vector<ValueId> parts;
    int64_t end = 0;
    const auto fill_to = [&](int64_t offset) {
      if (offset != end) parts.push_back(zeros(n, offset - end));
    };
    for (size_t k = 0; k < values.size(); ++k) {
      const Parameter& p = members.members[k];
      fill_to(p.offset);
      parts.push_back(as_stored(n, p, values[k]));
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

// Members that are the first to be complete lie first, so that ranges of the buffer are complete early. `made`: the
// values of their gradients, whose numbers grow in the order of the nodes that make them.
static void sort_by_readiness(Parameters& members, const std::vector<ValueId>& made) {
  std::vector<size_t> order(made.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t k) { return made[k]; });
  std::vector<Parameter> sorted;
  for (const size_t k : order) sorted.push_back(members.members[k]);
  members.members = std::move(sorted);
  lay_out(members);
}

Result<StepGraph> build_step(const OnnxModel& model, Trained& trained, const Job& job) {
  TW_ASSIGN(StepGraph step, StepBuilder(model, trained, job).run());
  bool again = choose_orders(step.graph, trained.parameters);
  if (job.is_cut()) {
    sort_by_readiness(trained.parameters, step.made);
    again = true;
  }
  return again ? StepBuilder(model, trained, job).run() : std::move(step);
}

}  // namespace tilewright::train
