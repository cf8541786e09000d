// Padding of convolutions as nodes of their own, where the kernel that makes the operand can store
// it amid the padding: then nothing but the padding itself is written.
#include "ir/ops/window.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestChannels = 16;  // that lie side by side

class SeparatePadding : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (!rewrite(n)) push(std::move(n));
    }
    return std::move(graph_);
  }

 private:
  bool rewrite(const Node& n) {
    // For results of one channel the padded copy is laid out anew.
    if (n.op->name != "conv" || is_one(type(n.outputs[0]).dims[1]) ||
        !is_made_for_this(n.inputs[0]))
      return false;
    const auto pads = pads_of(n);
    // Around x stands its padding value, its zero point, or 0.
    const ValueId value = input(n, 4) != kNone ? input(n, 4) : input(n, 2);
    if (!pads || (value != kNone && !is_scalar(value))) return false;
    const auto count = static_cast<int64_t>(pads->size());
    const ValueId amounts =
        graph_.add_constant("", make_constant_of<int64_t>(DType::kInt64, {count}, *pads));
    std::vector<ValueId> inputs = n.inputs;
    inputs[0] = op("pad", {n.inputs[0], amounts, value}, {{"mode", std::string("constant")}});
    Attributes attributes = n.attributes;
    attributes.erase("auto_pad");
    attributes["pads"] = std::vector<int64_t>(static_cast<size_t>(count) - 4, 0);
    replace(n.outputs[0], op("conv", std::move(inputs), std::move(attributes)));
    return true;
  }
  bool is_made_for_this(ValueId v) const {
    const Node* maker = producer(v);
    return maker && maker->op->compute && maker->op->name != "reshape" &&
           maker->op->name != "transpose" && maker->defined_symbols.empty() && used_once(v) &&
           type(v).rank() >= 3 && as_int(type(v).dims[1]).value_or(0) >= kFewestChannels;
  }
  // Of all dimensions, as the operator pad takes them; nothing where there are none, or where they
  // depend on symbols.
  std::optional<std::vector<int64_t>> pads_of(const Node& n) const {
    const TensorType &x = type(n.inputs[0]), &w = type(n.inputs[1]);
    std::vector<int64_t> kernel, pads;
    for (size_t d = 2; d < w.dims.size(); ++d) kernel.push_back(as_int(w.dims[d]).value_or(0));
    const auto g = window_geometry(NodeView(graph_, n), x.dims, kernel);
    if (!g.ok()) return std::nullopt;
    int64_t all = 0;
    for (const auto* side : {&g->pads_begin, &g->pads_end}) {
      pads.insert(pads.end(), {0, 0});
      for (const Expr& e : *side) {
        if (!as_int(e)) return std::nullopt;
        pads.push_back(*as_int(e));
        all += pads.back();
      }
    }
    return all > 0 ? std::optional(pads) : std::nullopt;
  }
};

}  // namespace

Graph separate_padding(Graph graph) { return SeparatePadding(std::move(graph)).run(); }

}  // namespace tilewright::passes
