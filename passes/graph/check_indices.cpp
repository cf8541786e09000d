// Indices, and other integers of a range, that only the run knows are checked there, before they are used: memory
// outside of what they point into is never touched, and the run ends with an error that names the node.
#include "ir/graph/index_range.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class CheckIndices : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

  // A wrong constant inside a branch is an error when the branch is taken.
  Result<Graph> run(bool inside) {
    for (Node& n : old_) {
      if (n.op->indexed_dims && n.op->index_operand < static_cast<int>(n.inputs.size()))
        TW_RETURN_IF_ERROR(check(n, inside));
      if (n.op == ops::within() && graph_.nodes.size() > 0 &&
          graph_.nodes.back().outputs[0] == n.inputs[0] &&
          graph_.nodes.back().op == ops::checked_indices())
        take_over(n);
      else
        push(std::move(n));
    }
    return std::move(graph_);
  }

 private:
  // The node before, which has just been made, checks the elements: it gives the result instead of a copy.
  void take_over(const Node& within) {
    for (auto& [key, made] : checked_)
      if (made == within.inputs[0]) made = within.outputs[0];
    replace(within.outputs[0], within.inputs[0]);
  }
  Status check(Node& n, bool inside) {
    const std::vector<IndexedDim> dims = n.op->indexed_dims(NodeView(graph_, n));
    ValueId& indices = n.inputs[static_cast<size_t>(n.op->index_operand)];
    if (dims.empty() || indices == kNone) return {};
    if (const ConstantRef& c = constant(indices)) {
      const Status s = check_constant(n, *c, dims);
      if (s.ok() && all_known(dims)) return {};
      if (!s.ok() && !inside) return s;
    }
    Extents extents;
    for (const IndexedDim& d : dims) extents.dims.push_back(d.extent);
    auto [it, fresh] =
        checked_.emplace(std::tuple(indices, extents, dims[0].dim == kNoIndices), kNone);
    if (fresh) {
      follow(n);
      const bool no_indices = dims[0].dim == kNoIndices;
      Attributes attributes{{"extents", extents}};
      if (no_indices) attributes["from_zero"] = int64_t{1};
      const ValueId farthest = op(ops::farthest_index(), {indices}, std::move(attributes));
      it->second = op(ops::checked_indices(), {indices, farthest},
                      {{"extents", extents},
                       {"dim", static_cast<int64_t>(dims[0].dim)},
                       {"node", index_owner(n)}});
    }
    indices = it->second;
    return {};
  }
  static bool all_known(const std::vector<IndexedDim>& dims) {
    for (const IndexedDim& d : dims)
      if (!as_int(d.extent)) return false;
    return true;
  }
  static Status check_constant(const Node& n, const Constant& c,
                               const std::vector<IndexedDim>& dims) {
    const int64_t count = static_cast<int64_t>(c.bytes) / byte_size(c.dtype);
    for (int64_t i = 0; i < count; ++i) {
      const IndexedDim& d = dims[static_cast<size_t>(i) % dims.size()];
      const int64_t index = integer_at(c, i);
      if (const auto extent = as_int(d.extent); extent && !is_index_within(index, d.dim, *extent))
        return invalid(index_message(n, index, d.dim, *extent));
    }
    return {};
  }

  std::map<std::tuple<ValueId, Extents, bool>, ValueId> checked_;
};

}  // namespace

Result<Graph> check_indices(Graph graph, bool inside) {
  return CheckIndices(std::move(graph)).run(inside);
}

}  // namespace tilewright::passes
