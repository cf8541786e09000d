#include "passes/graph/pack_operands.h"

#include "ir/graph/op.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestRows = 6;  // that share what is packed

// matmul: b is [..., n, k]. Few rows run along k instead.
int of_matmul(const Graph& graph, const Node& n, size_t i) {
  const TensorType &a = graph.value(n.inputs[0]).type, &b = graph.value(n.inputs[1]).type;
  NodeView view(graph, n);
  if (i != 1 || !view.attr_int("trans_b") || a.rank() < 2 || b.rank() < 2) return -1;
  const size_t rank = a.dims.size();
  const auto rows = as_int(a.dims[rank - (view.attr_int("trans_a") ? 1 : 2)]);
  return !rows || *rows >= kFewestRows ? b.rank() - 2 : -1;
}
// "bid,bjd->bij": the letter of the last axis of the result.
int of_einsum(const Graph& graph, const Node& n, size_t i) {
  const std::string equation = NodeView(graph, n).attr_string("equation");
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos || arrow + 2 >= equation.size()) return -1;
  size_t begin = 0;
  for (size_t k = 0; k < i; ++k) begin = equation.find(',', begin) + 1;
  const std::string letters = equation.substr(begin, equation.find_first_of(",-", begin) - begin);
  const size_t at = letters.find(equation.back());
  if (letters.size() != static_cast<size_t>(graph.value(n.inputs[i]).type.rank()) ||
      at == std::string::npos || at + 1 == letters.size() || letters.find('.') != std::string::npos)
    return -1;
  return static_cast<int>(at);
}

}  // namespace

int dimension_to_pack(const Graph& graph, const Node& node, size_t i) {
  const ValueId v = node.inputs[i];
  if (v == kNone || graph.value(v).constant || !graph.value(v).layout.empty()) return -1;
  if (node.op->name == "matmul") return of_matmul(graph, node, i);
  if (node.op->name == "einsum") return of_einsum(graph, node, i);
  // Results have their channels innermost.
  return node.op->name == "conv" && i == 1 ? 0 : -1;
}

}  // namespace tilewright::passes
