// Rematerialisation of what costs one operation per element: a value that is made of another one
// alone, which lies in memory anyway, is computed where it is read. Otherwise it would be written
// once and read by each reader, in place of what it is made of. (In training: a batch less its mean,
// which the variance reads and, much later, its gradient.) Fusion then joins each copy to its reader.
#include <map>

#include "ir/graph/op.h"
#include "passes/graph/readers.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class RepeatPointwise : public GraphRewriter {
 public:
  explicit RepeatPointwise(Graph graph)
      : GraphRewriter(std::move(graph)),
        readers_(old_, graph_),
        repeated_(graph_.values.size()),
        is_read_(graph_.values.size()) {}

  Graph run() {
    for (Node& n : old_) {
      if (pays(n)) repeated_[static_cast<size_t>(n.outputs[0])] = true;
      std::map<ValueId, ValueId> copies;  // a node may read a value twice
      for (ValueId& v : n.inputs)
        if (v != kNone && repeated_[static_cast<size_t>(v)]) v = own(v, copies);
      push(std::move(n));
    }
    return std::move(graph_);
  }

 private:
  // A division by one number takes less than memory does.
  bool is_cheap(const Node& n) const {
    const bool costly = n.op->costly && !(n.op == ops::div() && is_scalar(n.inputs[1]));
    return n.op->fusion == FusionKind::kPointwise && !costly && n.outputs.size() == 1 &&
           n.defined_symbols.empty() && n.op != ops::identity();
  }
  bool pays(const Node& n) const {
    constexpr int64_t kSmall = 8;  // times fewer elements: these stay in cache
    if (!is_cheap(n)) return false;
    const ValueId v = n.outputs[0];
    const auto& reading = readers_.of(v);
    if (reading.size() < 2 || !is_large(type(v)) || readers_.is_output(v)) return false;
    for (const Node* r : reading)
      if ((r->op->fusion != FusionKind::kPointwise && r->op->fusion != FusionKind::kReduction) ||
          r->op == ops::identity())
        return false;
    const int64_t elements = known_elements(type(v));
    ValueId from = kNone;
    for (ValueId u : n.inputs) {
      if (u == kNone || u == from || known_elements(type(u)) * kSmall <= elements) continue;
      if (from != kNone || known_elements(type(u)) != elements) return false;
      from = u;
    }
    return from != kNone && !repeated_[static_cast<size_t>(from)] &&
           readers_.lies_in_memory(from, n);
  }
  // v for one of its readers: the first takes the one that there is.
  ValueId own(ValueId v, std::map<ValueId, ValueId>& copies) {
    const auto [copy, is_new] = copies.try_emplace(v, v);
    if (is_new && is_read_[static_cast<size_t>(v)]) copy->second = again(v);
    is_read_[static_cast<size_t>(v)] = true;
    return copy->second;
  }
  ValueId again(ValueId v) {
    Node copy = *producer(v);
    const std::string name = graph_.value(v).name;
    const Layout layout = graph_.value(v).layout;
    const ValueId made = graph_.add_value(name, type(v));
    graph_.value(made).layout = layout;
    copy.outputs = {made};
    push(std::move(copy));
    return made;
  }

  const Readers readers_;
  std::vector<bool> repeated_, is_read_;  // by value
};

}  // namespace

Graph repeat_pointwise(Graph graph) { return RepeatPointwise(std::move(graph)).run(); }

}  // namespace tilewright::passes
