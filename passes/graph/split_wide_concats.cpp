// A concat of many operands becomes a concat of concats, each a kernel of bounded size, for what is
// decided about a kernel takes longer than in proportion to its blocks. The inner results lie in the
// outer one's memory (analysis/aliases.cpp): no element is copied twice.
#include "ir/loops/linear.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Where extents are open, each place in the result is a sum of those before it.
constexpr size_t kMostOperands = 64, kMostOpenOperands = 16;

class SplitWideConcats : public GraphRewriter {
 public:
  explicit SplitWideConcats(Graph graph) : GraphRewriter(std::move(graph)) {}
  Graph run() {
    for (Node& n : old_) {
      if (n.op == ops::concat() && NodeView(graph_, n).attr_int("interleave") == 0) {
        const size_t most = most_operands(n);
        follow(n);
        while (n.inputs.size() > most) n.inputs = joined(n, most);
      }
      push(std::move(n));
    }
    return std::move(graph_);
  }

 private:
  size_t most_operands(const Node& n) const {
    const NodeView view(graph_, n);
    const Linear extent =
        to_linear(type(n.outputs[0]).dims[static_cast<size_t>(view.axis(view.rank(0)))]);
    return extent.terms.size() > kMostOpenOperands ? kMostOpenOperands : kMostOperands;
  }
  // The operands in runs of nearly the same length, each joined into one.
  std::vector<ValueId> joined(const Node& n, size_t most) {
    const size_t count = n.inputs.size(), runs = (count + most - 1) / most;
    std::vector<ValueId> parts;
    for (size_t r = 0; r < runs; ++r)
      parts.push_back(op(n.op,
                         {n.inputs.begin() + static_cast<int64_t>(r * count / runs),
                          n.inputs.begin() + static_cast<int64_t>((r + 1) * count / runs)},
                         n.attributes));
    return parts;
  }
};

}  // namespace

Graph split_wide_concats(Graph graph) { return SplitWideConcats(std::move(graph)).run(); }

}  // namespace tilewright::passes
