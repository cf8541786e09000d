// Whether an operand that is no constant is worth copying into another layout before a product: O(k
// n) copying against O(m k n) work, so it takes some rows (m), and a way to read the operand across
// its rows (a transposed B) or in groups of terms.
#include "passes/graph/pack_operands.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "passes/cost/cache_room.h"
#include "passes/cost/fork_cost.h"
#include "passes/cost/panel_width.h"
#include "passes/cost/tile_cost.h"
#include "passes/graph/operand_panels.h"
#include "passes/graph/readers.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestRows = 6;  // that share what is packed

// matmul: b is [..., n, k].
int of_matmul(const Graph& graph, const Node& n, size_t i) {
  const TensorType &a = graph.value(n.inputs[0]).type, &b = graph.value(n.inputs[1]).type;
  return i == 1 && NodeView(graph, n).attr_int("trans_b") && a.rank() >= 2 && b.rank() >= 2
             ? b.rank() - 2
             : -1;
}
// Few rows run along k instead.
bool has_few_rows(const Graph& graph, const Node& n) {
  if (n.op != ops::matmul()) return false;
  const TensorType& a = graph.value(n.inputs[0]).type;
  const auto rows =
      as_int(a.dims[a.dims.size() - (NodeView(graph, n).attr_int("trans_a") ? 1 : 2)]);
  return rows && *rows < kFewestRows;
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

// The dimension that is to lie innermost, or -1.
int dimension_to_pack(const Graph& graph, const Node& node, size_t i) {
  if (node.op == ops::matmul()) return of_matmul(graph, node, i);
  if (node.op == ops::einsum()) return of_einsum(graph, node, i);
  // Results have their channels innermost.
  return node.op == ops::conv() && i == 1 ? 0 : -1;
}
Layout with_innermost(int dim, int rank) {
  std::vector<int> order;
  for (int d = 0; d < rank; ++d)
    if (d != dim) order.push_back(d);
  // The window of a convolution goes around its channels.
  if (dim == 0 && order.size() > 1) std::rotate(order.begin(), order.begin() + 1, order.end());
  order.push_back(dim);
  return permuted_layout(order);
}

Layout in_groups(const Graph& graph, const Node& n, const MachineDescription& machine) {
  const TensorType &a = graph.value(n.inputs[0]).type, &b = graph.value(n.inputs[1]).type,
                   &y = graph.value(n.outputs[0]).type;
  NodeView view(graph, n);
  const bool trans_b = view.attr_int("trans_b") != 0;
  if (a.dtype != DType::kUInt8 || b.dtype != dot_partner(a.dtype) || y.dtype != dot_sum(a.dtype) ||
      view.attr_int("trans_a") || !pays_for_dots(a, b, trans_b))
    return {};
  const int rank = b.rank(), k = rank - (trans_b ? 1 : 2), column = rank - (trans_b ? 2 : 1);
  const int64_t terms = dot_terms(a.dtype);
  if (*as_int(b.dims[static_cast<size_t>(k)]) % terms != 0) return {};
  const auto columns = as_int(b.dims[static_cast<size_t>(column)]);
  const int64_t lanes = lanes_for(machine, byte_size(y.dtype), columns.value_or(INT64_MAX));
  Layout layout;
  for (int d = 0; d + 2 < rank; ++d) layout.push_back({d, 1, 0});
  layout.insert(layout.end(),
                {{column, lanes, 0}, {k, terms, 0}, {column, 1, lanes}, {k, 1, terms}});
  return layout;
}

// Each row in one piece, whatever the order of rows: a transpose of heads may lie where its operand does.
bool lies_in_rows(const Value& v) {
  const auto whole = [](const LayoutAxis& axis) { return axis.divisor == 1 && axis.modulus == 0; };
  return v.layout.empty() || (v.layout.back().dim + 1 == v.type.rank() &&
                              std::all_of(v.layout.begin(), v.layout.end(), whole));
}

// Many matrices side by side, each of a task, which copies it.
bool are_copied_by_tasks(const Graph& graph, const Node& node, const MachineDescription& machine) {
  if (node.op != ops::matmul()) return false;
  const TensorType &a = graph.value(node.inputs[0]).type, &b = graph.value(node.inputs[1]).type;
  if (a.rank() != b.rank() || b.rank() < 3 ||
      (b.dtype != DType::kFloat32 && b.dtype != DType::kFloat64))
    return false;
  const int rank = b.rank(), rows = rank - (NodeView(graph, node).attr_int("trans_a") ? 1 : 2);
  int64_t matrices = 1;
  for (int d = 0; d + 2 < rank; ++d)
    matrices =
        std::min(matrices * as_int(b.dims[static_cast<size_t>(d)]).value_or(0), int64_t{1} << 30);
  const auto extent = [](const TensorType& t, int d) {
    return as_int(t.dims[static_cast<size_t>(d)]).value_or(0);
  };
  const ProductSizes sizes{.rows = extent(a, rows),
                           .columns = extent(b, rank - 2),
                           .terms = extent(b, rank - 1),
                           .bytes = byte_size(b.dtype),
                           .is_transposed = true,
                           .of_a_place = true};
  return are_tasks(machine, matrices) && is_worth_a_copy(sizes);
}

// A matrix, or weights of windows of one element, whose columns lie side by side.
bool is_matrix(const Graph& graph, const Node& node) {
  const Value& b = graph.value(node.inputs[1]);
  const int rank = b.type.rank();
  if (node.op == ops::matmul()) return rank == 2;
  if (node.op != ops::conv() || NodeView(graph, node).attr_int("group", 1) != 1 || rank < 3)
    return false;
  for (int d = 2; d < rank; ++d)
    if (!is_one(b.type.dims[static_cast<size_t>(d)])) return false;
  for (const LayoutAxis& axis : b.layout)  // of these two the inner one
    if (axis.dim < 2) return axis.dim == 1;
  return false;
}

// A matrix that the second cache does not hold: tasks copy what they read of it (schedule/rules/tile_copies.cpp), and
// memory does not see the copy. Of long sums for few results blocks of terms are not to pass by instead.
bool is_copied_by_tasks(const Graph& graph, const Node& node, const Layout& panels,
                        const MachineDescription& machine) {
  constexpr int64_t kPanelsOfAThread = 4;
  if (!is_matrix(graph, node)) return false;
  const TensorType& b = graph.value(node.inputs[1]).type;
  const int64_t columns = as_int(b.dims[static_cast<size_t>(panels.back().dim)]).value_or(0),
                threads = std::max(machine.threads, 1);
  const bool are_few =
      node.op == ops::matmul() && NodeView(graph, node).attr_int("trans_a") != 0 &&
      known_elements(graph.value(node.outputs[0]).type) * byte_size(b.dtype) <= machine.l2_bytes;
  return !are_few && known_elements(b) * byte_size(b.dtype) > bytes_of_a_panel(machine) &&
         columns >= kPanelsOfAThread * threads * panels.back().modulus;
}

// Long sums for few results, both operands as they lie: blocks of terms pass by once while all sums wait in the second
// cache (schedule/rules/term_blocks.cpp). A copy of either would go through memory.
bool passes_by_in_blocks(const Graph& graph, const Node& node, const MachineDescription& machine) {
  constexpr int64_t kFewestTerms = 768, kManyTerms = 8192;
  if (node.op != ops::matmul() || NodeView(graph, node).attr_int("trans_a") == 0 ||
      NodeView(graph, node).attr_int("trans_b") != 0)
    return false;
  const TensorType &b = graph.value(node.inputs[1]).type, &y = graph.value(node.outputs[0]).type;
  const int64_t terms = b.rank() == 2 ? as_int(b.dims[0]).value_or(0) : 0;
  bool divides = false;
  for (int64_t n = kLeastTermsOfABlock; n <= kMostTermsOfABlock; ++n) divides |= terms % n == 0;
  // Threads share the columns, and each all rows: of many results it reads more than panels would have it read.
  const int64_t room = machine.l2_bytes / (terms >= kManyTerms ? 2 : 4);
  return divides && terms >= kFewestTerms && y.rank() == 2 &&
         known_elements(y) * byte_size(b.dtype) <= room;
}

}  // namespace

bool pays_for_dots(const TensorType& a, const TensorType& b, bool trans_b) {
  constexpr int64_t kFewestTerms = 16, kFewestColumns = 4;
  if (a.rank() < 2 || b.rank() < 2) return false;
  const auto of_b = [&](int from_end) {
    return as_int(b.dims[b.dims.size() - static_cast<size_t>(from_end)]);
  };
  const auto k = of_b(trans_b ? 1 : 2), n = of_b(trans_b ? 2 : 1);
  if (!k || *k < kFewestTerms || n.value_or(kFewestColumns) < kFewestColumns) return false;
  // The rows of all matrices share b where there is but one.
  int64_t rows = 1;
  for (size_t d = b.rank() == 2 ? 0 : a.dims.size() - 2; d + 1 < a.dims.size(); ++d)
    rows *= as_int(a.dims[d]).value_or(kFewestRows);
  return rows >= kFewestRows;
}

bool is_packed_in_groups(const Layout& layout) {
  return layout.size() >= 4 && layout.back().modulus > 1 && layout[layout.size() - 2].modulus > 1;
}

PackedLayouts layouts_to_pack(const Graph& graph, const Node& node, size_t i,
                              const MachineDescription& machine, bool shared) {
  PackedLayouts ways;
  const ValueId v = node.inputs[i];
  if (v == kNone || graph.value(v).constant || !lies_in_rows(graph.value(v))) return ways;
  const auto add = [&](const char* name, Layout layout, bool pays) {
    ways.names.emplace_back(name);
    ways.layouts.push_back(std::move(layout));
    if (pays) ways.usual = ways.names.size() - 1;
  };
  if (const int dim = dimension_to_pack(graph, node, i); dim >= 0)
    add("by_columns", with_innermost(dim, graph.value(v).type.rank()),
        !has_few_rows(graph, node) && (shared || !are_copied_by_tasks(graph, node, machine)));
  if (i != 1) return ways;
  if (Layout panels = operand_panels(graph, node, machine); !panels.empty())
    add("by_panels", std::move(panels), true);
  if (!shared && ways.usual > 0 && ways.names[ways.usual] == "by_panels" &&
      (is_copied_by_tasks(graph, node, ways.layouts.back(), machine) ||
       passes_by_in_blocks(graph, node, machine)))
    ways.usual = 0;
  if (node.op != ops::matmul()) return ways;
  if (Layout groups = in_groups(graph, node, machine); !groups.empty())
    add("by_groups", std::move(groups), true);
  return ways;
}

}  // namespace tilewright::passes
