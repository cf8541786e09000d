// Divisions by constants are multiplications by their reciprocals: a vector of quotients takes as long as a dozen of
// products, and the next one waits for it. Rounded twice instead of once, a result may be off by an ulp more; what
// makes steps of results keeps its division, which a quotient on the edge of a step would else fall off.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "ir/ops/known_ops.h"
#include "passes/graph/graph_passes.h"
#include "passes/graph/readers.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// None where one is no normal number.
template <typename T>
ConstantRef reciprocals_of(const Constant& c) {
  std::vector<T> values;
  for (size_t i = 0; i < c.bytes / sizeof(T); ++i) {
    const T by = static_cast<T>(number_at(c, static_cast<int64_t>(i)));
    values.push_back(T{1} / by);
    if (!std::isnormal(by) || !std::isnormal(values.back())) return nullptr;
  }
  return make_constant_of<T>(c.dtype, c.shape, values);
}
ConstantRef reciprocals(const Constant& c) {
  if (c.dtype == DType::kFloat32) return reciprocals_of<float>(c);
  return c.dtype == DType::kFloat64 ? reciprocals_of<double>(c) : nullptr;
}

// Of the value, or of it moved and limited, as quantisations do.
class Steps {
 public:
  explicit Steps(const Graph& graph) : graph_(graph), readers_(graph.nodes, graph) {}
  bool are_made_of(ValueId v, int depth = 3) const {
    static const std::set<const OpDef*> kMoves{ops::add(), ops::sub(), ops::clip(), ops::min(),
                                               ops::max()};
    const auto& reading = readers_.of(v);
    return std::any_of(reading.begin(), reading.end(), [&](const Node* r) {
      return makes_steps(*r) ||
             (depth > 0 && kMoves.count(r->op) && are_made_of(r->outputs[0], depth - 1));
    });
  }

 private:
  bool makes_steps(const Node& n) const {
    static const std::set<const OpDef*> kSteps{ops::round(), ops::floor(), ops::ceil(),
                                               ops::trunc(), ops::mod(),   ops::fmod()};
    for (ValueId v : n.outputs)
      if (v != kNone && !is_float(graph_.value(v).type.dtype)) return true;
    return kSteps.count(n.op) != 0;
  }

  const Graph& graph_;
  const Readers readers_;
};

}  // namespace

Graph multiply_instead(Graph graph) {
  const Steps steps(graph);
  std::vector<std::pair<Node*, ConstantRef>> found;
  for (Node& n : graph.nodes) {
    if (n.op != ops::div() || !graph.value(n.inputs[1]).constant || steps.are_made_of(n.outputs[0]))
      continue;
    if (ConstantRef factors = reciprocals(*graph.value(n.inputs[1]).constant))
      found.emplace_back(&n, std::move(factors));
  }
  for (auto& [n, factors] : found) {
    n->op = ops::mul();
    n->inputs[1] = graph.add_constant("", std::move(factors));
  }
  return graph;
}

}  // namespace tilewright::passes
