#include "tests/ops/gradient_graphs.h"

#include <algorithm>

#include "ir/graph/infer.h"

namespace tilewright {

using ir::ValueId;

namespace {

// sum over the results of result * weight, with random weights: a loss to which each element of each
// result matters in its own way.
Result<ValueId> add_loss(ir::Graph& graph, const std::vector<ValueId>& results,
                         std::mt19937_64& random) {
  ValueId loss = ir::kNone;
  for (ValueId result : results) {
    const ir::TensorType type = graph.value(result).type;
    if (!is_float(type.dtype)) continue;
    // What masks put in the place of scores would drown the rest.
    std::vector<ValueId> v{result};
    for (double bound : {-1e3, 1e3})
      v.push_back(
          graph.add_constant("bound", ir::make_constant_of<double>(DType::kFloat64, {}, {bound})));
    TW_ASSIGN(v, ir::add_node(graph, "clip", v, {}, 1, "bounded", {}));
    // Of a result whose extents only the run knows, each element stands for its weight.
    ValueId weight = v[0];
    if (const auto shape = ir::constant_shape(type)) {
      const HostTensor w = random_tensor(type.dtype, *shape, random);
      weight = graph.add_constant(
          "weight", ir::make_constant(type.dtype, w.shape, {w.bytes.begin(), w.bytes.end()}));
    }
    TW_ASSIGN(auto product, ir::add_node(graph, "mul", {v[0], weight}, {}, 1, "product", {}));
    TW_ASSIGN(auto sum,
              ir::add_node(graph, "reduce_sum", product, {{"keepdims", int64_t{0}}}, 1, "sum", {}));
    if (loss != ir::kNone) {
      TW_ASSIGN(sum, ir::add_node(graph, "add", {loss, sum[0]}, {}, 1, "loss", {}));
    }
    loss = sum[0];
  }
  if (loss == ir::kNone) return invalid("no result is a float");
  return loss;
}

// Numbers from low to high in equal steps, in any order: no two so near to each other, and none so near
// to 0, that a difference would reach across a bend.
void spread(HostTensor& t, double low, double high, std::mt19937_64& random) {
  double* x = t.data<double>();
  const auto n = static_cast<double>(t.size());
  for (int64_t k = 0; k < t.size(); ++k)
    x[k] = low + (high - low) * (static_cast<double>(k) + 0.37) / n;
  std::shuffle(x, x + t.size(), random);
}

}  // namespace

Result<Differentiable> graph_of(const GradientCase& c) {
  Differentiable d;
  d.graph.name = c.name();
  std::mt19937_64 random(7);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    ir::TensorType type = c.inputs[i];
    const auto shape = ir::constant_shape(type);
    const bool given = i < c.values.size() && !c.values[i].empty();
    const bool constant =
        (given || shape == Shape{0}) && (is_float(type.dtype) ? c.const_floats : type.rank() <= 1);
    if (type.dtype == DType::kFloat32 && (!constant || type.rank() > 1))
      type.dtype = DType::kFloat64;
    HostTensor t = given ? repeated(type.dtype, *shape, c.values[i])
                         : random_tensor(type.dtype, *shape, random);
    if (!given && !constant && is_float(type.dtype)) spread(t, c.low, c.high, random);
    const std::string name = "operand" + std::to_string(i);
    if (constant) {
      operands.push_back(d.graph.add_constant(
          name, ir::make_constant(type.dtype, *shape, {t.bytes.begin(), t.bytes.end()})));
      continue;
    }
    operands.push_back(d.graph.add_value(name, type));
    d.graph.inputs.push_back(operands.back());
    d.inputs.push_back(std::move(t));
    if (is_float(type.dtype)) d.of.push_back(operands.back());
  }
  TW_ASSIGN(auto results,
            ir::add_node(d.graph, c.op, operands, c.attributes, c.outputs, "result", {"example"}));
  TW_ASSIGN(d.loss, add_loss(d.graph, results, random));
  return d;
}

}  // namespace tilewright
