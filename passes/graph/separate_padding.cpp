// Padding of convolutions as nodes of their own, where the kernel that makes the operand can store
// it amid the padding: then nothing but the padding itself is written.
//
// Otherwise the convolution's kernel copies its input into a padded buffer first. The gradient of its weights
// reads the same operand.
#include <limits>
#include <map>
#include <set>

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
    for (const Node& n : old_) {
      if (auto p = padding_of(n)) ways_[n.inputs[operand_of(n)]].insert(*p);
      if (!n.op->compute || may_be_view(n)) placed_.insert(n.inputs.begin(), n.inputs.end());
    }
    placed_.insert(graph_.outputs.begin(), graph_.outputs.end());
    for (Node& n : old_) {
      follow(n);
      if (!rewrite(n)) push(std::move(n));
    }
    return std::move(graph_);
  }

 private:
  struct Padding {
    std::vector<int64_t> amounts;  // of all dimensions, as the operator pad takes them
    ValueId value = kNone;
    auto operator<=>(const Padding&) const = default;
  };

  bool rewrite(const Node& n) {
    const auto padding = padding_of(n);
    if (!padding) return false;
    std::vector<ValueId> inputs = n.inputs;
    ValueId& x = inputs[operand_of(n)];
    if (!may_lie_amid_padding(x)) return false;
    const std::optional<Padding> widest = that_holds_all(ways_[x]);
    if (!widest || !is_wanted(x)) return false;
    x = part(padded(x, *widest), *widest, *padding);
    Attributes attributes = n.attributes;
    attributes["pads"] = std::vector<int64_t>(padding->amounts.size() - 4, 0);
    replace(n.outputs[0], op(n.op, std::move(inputs), std::move(attributes)));
    return true;
  }
  // A value can lie amid one padding, of which its readers take as much as they want.
  static std::optional<Padding> that_holds_all(const std::set<Padding>& ways) {
    Padding widest = *ways.begin();
    for (const Padding& p : ways) {
      if (p.value != widest.value) return std::nullopt;
      for (size_t i = 0; i < p.amounts.size(); ++i)
        widest.amounts[i] = std::max(widest.amounts[i], p.amounts[i]);
    }
    return widest;
  }
  // Asked once a value, whoever reads it.
  bool is_wanted(ValueId v) {
    const auto [known, is_new] = wanted_.try_emplace(v, false);
    if (is_new)
      known->second = decisions().decide_whether(
          decision_name(graph_, v, "amid_padding"),
          as_int(type(v).dims[1]).value_or(0) >= kFewestChannels, Bits::kKept);
    return known->second;
  }
  ValueId padded(ValueId v, const Padding& p) {
    const auto [known, is_new] = padded_.try_emplace(v, kNone);
    if (is_new)
      known->second =
          op(ops::pad(), {v, integers(p.amounts), p.value}, {{"mode", std::string("constant")}});
    return known->second;
  }
  ValueId part(ValueId v, const Padding& has, const Padding& wants) {
    if (has == wants) return v;
    const size_t rank = has.amounts.size() / 2;
    std::vector<int64_t> starts, ends;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t after = has.amounts[rank + d] - wants.amounts[rank + d];
      starts.push_back(has.amounts[d] - wants.amounts[d]);
      ends.push_back(after > 0 ? -after : std::numeric_limits<int64_t>::max());
    }
    return op(ops::slice(), {v, integers(starts), integers(ends)});
  }
  static bool may_be_view(const Node& n) {
    return n.op == ops::reshape() || n.op == ops::transpose();
  }
  static size_t operand_of(const Node& n) { return n.op == ops::conv_weights_gradient() ? 1 : 0; }
  bool may_lie_amid_padding(ValueId v) const {
    const NodeRef maker = producer(v);
    return maker && maker->op->compute && !may_be_view(*maker) && maker->defined_symbols.empty() &&
           placed_.count(v) == 0 && type(v).rank() >= 3;
  }
  // Nothing where there is none, where it depends on symbols, and for results of one channel, whose
  // padded copy is laid out anew.
  std::optional<Padding> padding_of(const Node& n) const {
    const bool is_gradient = n.op == ops::conv_weights_gradient();
    if (!is_gradient && (n.op != ops::conv() || is_one(type(n.outputs[0]).dims[1])))
      return std::nullopt;
    const TensorType &x = type(n.inputs[operand_of(n)]),
                     &w = type(is_gradient ? n.outputs[0] : n.inputs[1]);
    std::vector<int64_t> kernel;
    for (size_t d = 2; d < w.dims.size(); ++d) kernel.push_back(as_int(w.dims[d]).value_or(0));
    const auto g = window_geometry(NodeView(graph_, n), x.dims, kernel);
    if (!g.ok()) return std::nullopt;
    // Around x stands its padding value, its zero point, or 0.
    Padding p;
    if (!is_gradient) p.value = input(n, 4) != kNone ? input(n, 4) : input(n, 2);
    if (p.value != kNone && !is_scalar(p.value)) return std::nullopt;
    int64_t all = 0;
    for (const auto* side : {&g->pads_begin, &g->pads_end}) {
      p.amounts.insert(p.amounts.end(), {0, 0});
      for (const Expr& e : *side) {
        if (!as_int(e)) return std::nullopt;
        p.amounts.push_back(*as_int(e));
        all += p.amounts.back();
      }
    }
    return all > 0 ? std::optional(p) : std::nullopt;
  }

  std::set<ValueId> placed_;  // must lie row by row: results of the graph, operands of views
  std::map<ValueId, std::set<Padding>> ways_;  // in which convolutions pad a value
  std::map<ValueId, bool> wanted_;             // amid their padding
  std::map<ValueId, ValueId> padded_;
};

}  // namespace

Graph separate_padding(Graph graph, Decisions* decisions) {
  return SeparatePadding(std::move(graph), decisions).run();
}

}  // namespace tilewright::passes
