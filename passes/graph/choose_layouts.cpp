// Channels innermost around convolutions: results lie side by side along the axis that vectors run
// over. Values that exchange their elements one to one share a layout; graph inputs, results and
// views keep row-major order.
#include <numeric>
#include <set>

#include "ir/graph/op.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool wants_channels_last(const Node& n) {
  static const std::set<std::string_view> ops{"conv",           "max_pool", "average_pool",
                                              "conv_transpose", "lp_pool",  "winograd_conv"};
  return ops.count(n.op->name) != 0;
}
// Does a layout of the operand carry over to the result at no cost?
bool is_transparent(const Node& n) {
  static const std::set<std::string_view> ops{
      "pad", "resize", "concat", "slice", "reduce_mean", "reduce_max", "reduce_sum", "upsample"};
  return n.op->fusion == FusionKind::kPointwise || wants_channels_last(n) || ops.count(n.op->name);
}

class Components {
 public:
  explicit Components(size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

Layout channels_last(int rank) {
  std::vector<int> order{0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return permuted_layout(order);
}

}  // namespace

Graph choose_layouts(Graph graph) {
  Components components(graph.values.size());
  auto eligible = [&](ValueId v) {
    return v != kNone && !graph.value(v).constant && graph.value(v).type.rank() >= 3;
  };
  for (const Node& n : graph.nodes) {
    if (!is_transparent(n)) continue;
    for (ValueId out : n.outputs)
      for (ValueId in : n.inputs)
        if (eligible(in) && eligible(out) &&
            graph.value(in).type.rank() == graph.value(out).type.rank())
          components.join(static_cast<size_t>(in), static_cast<size_t>(out));
  }
  std::set<size_t> chosen;
  for (const Node& n : graph.nodes)
    if (wants_channels_last(n) && eligible(n.outputs[0])) {
      chosen.insert(components.find(static_cast<size_t>(n.outputs[0])));
      if (eligible(n.inputs[0])) chosen.insert(components.find(static_cast<size_t>(n.inputs[0])));
    }
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (eligible(static_cast<ValueId>(v)) && chosen.count(components.find(v)))
      graph.values[v].layout = channels_last(graph.values[v].type.rank());
  for (ValueId v : graph.inputs) graph.value(v).layout.clear();
  for (ValueId v : graph.outputs) graph.value(v).layout.clear();
  for (const Node& n :
       graph
           .nodes) {  // regions read and write where the values around them lie, in row-major order
    if (n.regions.empty()) continue;
    for (const auto* values : {&n.inputs, &n.outputs})
      for (ValueId v : *values)
        if (v != kNone) graph.value(v).layout.clear();
  }
  // Where a view follows or leads and nothing else decides, row-major order makes it free.
  for (const Node& n : graph.nodes) {
    if (n.op->name != "reshape") continue;
    Value& to = graph.value(n.outputs[0]);
    if (to.producer >= 0 && !to.layout.empty() && graph.value(n.inputs[0]).layout.empty() &&
        to.type.rank() < 4)
      to.layout.clear();
  }
  return graph;
}

}  // namespace tilewright::passes
