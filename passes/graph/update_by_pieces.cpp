// f(concat(a, b, c), x) as concat(f(a, x[..]), f(b, x[..]), f(c, x[..])), where a large part is what a product gives:
// its kernel then computes f of it before anything is stored. So optimisers change parameters where gradients come
// about, and these never lie in memory (PyTorch's tutorials call it an optimizer step fused into backward). Parts that
// no product gives stay together: their updates are one kernel for each stretch of them.
#include <algorithm>
#include <map>
#include <set>

#include "passes/graph/rewrite_graph.h"
#include "runtime/core/memory.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestElements =
    4096;                          // of a part with an update of its own: a smaller one is no work
constexpr size_t kMostNodes = 32;  // of f

// Parts side by side that are updated together, from `start` to `end` of the whole.
struct Stretch {
  std::vector<ValueId> parts;
  ValueId value = kNone;  // what a product gives, in its own shape; none: `parts` joined
  int64_t start = 0, end = 0;
};
struct Update {
  size_t concat = 0;
  ValueId whole = kNone;      // its result
  std::vector<size_t> nodes;  // f, in order
  std::vector<Stretch> stretches;
  std::map<ValueId, std::vector<ValueId>> results;  // of the graph, by stretch
};

class UpdateByPieces : public GraphRewriter {
 public:
  explicit UpdateByPieces(Graph graph)
      : GraphRewriter(std::move(graph)), nodes_(old_), done_(old_.size()) {
    for (size_t i = 0; i < old_.size(); ++i) {
      for (ValueId v : old_[i].outputs)
        if (v != kNone) maker_[v] = i;
      for (ValueId v : old_[i].inputs)
        if (v != kNone) readers_[v].push_back(i);
    }
    for (ValueId v : graph_.outputs) results_.insert(v);
  }
  Graph run() {
    for (size_t i = 0; i < old_.size(); ++i)
      if (auto update = find_update(i)) updates_.push_back(std::move(*update));
    for (size_t u = 0; u < updates_.size(); ++u) {
      for (size_t i : updates_[u].nodes) done_[i] = true;
      for (size_t s = 0; s < updates_[u].stretches.size(); ++s)
        if (const ValueId v = updates_[u].stretches[s].value; v != kNone)
          at_value_.emplace(v, std::pair(u, s));
    }
    for (size_t i = 0; i < old_.size(); ++i) put_back(i);
    return updates_.empty() ? std::move(graph_) : eliminate_dead_nodes(std::move(graph_));
  }

 private:
  std::optional<int64_t> length(ValueId v) const {
    return type(v).rank() == 1 ? as_int(type(v).dims[0]) : std::nullopt;
  }
  const Node* maker(ValueId v) const {
    const auto it = maker_.find(v);
    return it == maker_.end() ? nullptr : &old_[it->second];
  }
  bool is_read_once(ValueId v) const {
    const auto it = readers_.find(v);
    return it != readers_.end() && it->second.size() == 1 && !results_.count(v);
  }

  std::optional<Update> find_update(size_t at) const {
    const Node& concat = old_[at];
    const std::optional<int64_t> n =
        concat.op == ops::concat() ? length(concat.outputs[0]) : std::nullopt;
    if (!n || concat.inputs.size() < 2 || NodeView(graph_, concat).attr_int("interleave") != 0 ||
        results_.count(concat.outputs[0]))
      return std::nullopt;
    Update update{.concat = at, .whole = concat.outputs[0]};
    if (!find_nodes(concat.outputs[0], *n, update) || !find_stretches(concat, update))
      return std::nullopt;
    return update;
  }
  // All that hangs on the concat: element by element, of values as long or of single numbers.
  bool find_nodes(ValueId whole, int64_t n, Update& update) const {
    std::set<size_t> found;
    std::vector<ValueId> open{whole};
    while (!open.empty()) {
      const auto reading = readers_.find(open.back());
      open.pop_back();
      if (reading == readers_.end()) continue;
      for (size_t i : reading->second) {
        if (!found.insert(i).second) continue;
        const Node& node = old_[i];
        if (found.size() > kMostNodes || !is_by_element(node, n)) return false;
        if (results_.count(node.outputs[0])) update.results[node.outputs[0]];
        open.push_back(node.outputs[0]);
      }
    }
    update.nodes.assign(found.begin(), found.end());
    return !update.results.empty();
  }
  bool is_by_element(const Node& node, int64_t n) const {
    return node.op->fusion == FusionKind::kPointwise && node.outputs.size() == 1 &&
           node.defined_symbols.empty() && node.regions.empty() && length(node.outputs[0]) == n &&
           type(node.outputs[0]).dtype == DType::kFloat32 &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return v == kNone || is_scalar(v) || length(v) == n; });
  }
  bool find_stretches(const Node& concat, Update& update) const {
    bool any = false;
    int64_t end = 0;
    std::set<ValueId> own;
    for (ValueId part : concat.inputs) {
      const auto n = length(part);
      if (!n) return false;
      const bool apart = *n >= kFewestElements && is_place(end) &&
                         (is_place(end + *n) || part == concat.inputs.back());
      const ValueId value = apart ? product(part) : kNone;
      if (value != kNone && own.insert(value).second) {
        any = true;
        update.stretches.push_back({{part}, value, end, end + *n});
      } else if (!update.stretches.empty() && update.stretches.back().value == kNone) {
        update.stretches.back().parts.push_back(part);
        update.stretches.back().end += *n;
      } else {
        update.stretches.push_back({{part}, kNone, end, end + *n});
      }
      end += *n;
    }
    return any;
  }
  // May a kernel's operand or result begin at the element? What begins elsewhere is no piece of memory of its own.
  static bool is_place(int64_t element) {
    return element * byte_size(DType::kFloat32) % static_cast<int64_t>(kHostAlignment) == 0;
  }
  // What a product gives, of which the part is all elements in order; none: it is something else.
  ValueId product(ValueId part) const {
    const Node* n = maker(part);
    while (n && n->op == ops::reshape() && is_read_once(n->outputs[0]))
      part = n->inputs[0], n = maker(part);
    if (!is_read_once(part) || !constant_shape(type(part))) return kNone;
    const ValueId value = part;
    while (n && n->op->fusion == FusionKind::kPointwise && n->outputs.size() == 1 &&
           is_read_once(part)) {
      const auto next = std::find_if(n->inputs.begin(), n->inputs.end(), [&](ValueId v) {
        const Node* m = v == kNone ? nullptr : maker(v);
        return m && (m->op->fusion == FusionKind::kContraction ||
                     m->op->fusion == FusionKind::kPointwise);
      });
      if (next == n->inputs.end()) return kNone;
      part = *next, n = maker(part);
    }
    return n && n->op->fusion == FusionKind::kContraction && is_read_once(part) ? value : kNone;
  }

  // After all that it reads; behind it, the updates of what it gives.
  void put_back(size_t i) {
    if (done_[i]) return;
    done_[i] = true;
    for (ValueId v : old_[i].inputs) need(v);
    for (Update& u : updates_)
      if (u.concat == i) return finish(u);
    Node n = std::move(old_[i]);
    const std::vector<ValueId> made = n.outputs;
    push(std::move(n));
    for (ValueId v : made)
      if (const auto it = at_value_.find(v); it != at_value_.end())
        apply(updates_[it->second.first], it->second.second);
  }
  void need(ValueId v) {
    if (const auto it = maker_.find(v); v != kNone && it != maker_.end()) put_back(it->second);
  }
  // f of one stretch.
  void apply(Update& u, size_t at) {
    const Stretch& s = u.stretches[at];
    const bool own = s.value != kNone;
    ValueId of_whole = s.value;
    if (!own)
      of_whole =
          s.parts.size() == 1 ? s.parts[0] : op(ops::concat(), s.parts, {{"axis", int64_t{0}}});
    const Shape shape = *constant_shape(type(of_whole));
    Pieces p{s, shape, {{u.whole, of_whole}}};
    for (auto& [result, pieces] : u.results) {
      pieces.resize(u.stretches.size(), kNone);
      const ValueId of_stretch = piece(result, p);
      pieces[at] = own ? reshape(of_stretch, Shape{s.end - s.start}) : of_stretch;
    }
  }
  // Of one stretch: what stands for values of the whole.
  struct Pieces {
    const Stretch& stretch;
    const Shape shape;
    std::map<ValueId, ValueId> by;
  };
  ValueId piece(ValueId v, Pieces& p) {
    if (v == kNone || is_scalar(v)) return need(v), v;
    if (const auto it = p.by.find(v); it != p.by.end()) return it->second;
    const auto made = maker_.find(v);
    if (const auto n = length(v);
        n && made != maker_.end() && is_by_element(nodes_[made->second], *n)) {
      const Node& node = nodes_[made->second];
      std::vector<ValueId> inputs;
      for (ValueId x : node.inputs) inputs.push_back(piece(x, p));
      follow(node);
      return p.by[v] = op(node.op, std::move(inputs), node.attributes);
    }
    need(v);
    const std::vector<int64_t> start{p.stretch.start}, end{p.stretch.end}, axis{0};
    const ValueId cut = op(ops::slice(), {v, integers(start), integers(end), integers(axis)});
    return p.by[v] = p.stretch.value == kNone ? cut : reshape(cut, p.shape);
  }
  // All stretches that hang on no product, and the results joined.
  void finish(Update& u) {
    for (size_t s = 0; s < u.stretches.size(); ++s)
      if (u.stretches[s].value == kNone) apply(u, s);
    for (auto& [result, pieces] : u.results)
      replace(result, op(ops::concat(), pieces, {{"axis", int64_t{0}}}));
  }

  const std::vector<Node> nodes_;  // as they were
  std::vector<bool> done_;
  std::map<ValueId, size_t> maker_;
  std::map<ValueId, std::vector<size_t>> readers_;
  std::set<ValueId> results_;
  std::vector<Update> updates_;
  std::map<ValueId, std::pair<size_t, size_t>>
      at_value_;  // update and stretch, by what a product gives
};

}  // namespace

Graph update_by_pieces(Graph graph) { return UpdateByPieces(std::move(graph)).run(); }

}  // namespace tilewright::passes
