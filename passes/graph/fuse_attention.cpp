// softmax(scale * q k + bias) v as it stands in a graph becomes the operator attention.
//
// The match goes backwards from the product of weights and values: softmax, or a select that makes
// rows of NaN zero; then biases, at most one choice by a condition (a mask) and factors, down to
// the product of query and key. The order of sums changes with it, hence a decision.
#include "ir/graph/op.h"
#include "ir/loops/simplify.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What lies between both products.
struct Scores {
  double scale = 1, fill = 0;
  ValueId product = kNone, condition = kNone, bias = kNone;
};

class FuseAttention : public GraphRewriter {
 public:
  FuseAttention(Graph graph, Decisions* decisions) : GraphRewriter(std::move(graph), decisions) {}

  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (n.op == ops::matmul() && fuse(n)) continue;
      push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  bool fuse(const Node& n) {
    if (!is_plain_product(n) || has_flag(n, "trans_b")) return false;
    bool zero_masked = false;
    const NodeRef softmax = softmax_of(n.inputs[0], zero_masked);
    if (!softmax) return false;
    zero_masked |= has_flag(*softmax, "zero_masked");
    Scores s;
    if (!read_scores(softmax->inputs[0], s)) return false;
    const Node product = *producer(s.product);
    const ValueId q = product.inputs[0], v = n.inputs[1];
    ValueId k = product.inputs[1];
    if (!same_batch(q, k) || !same_batch(q, v)) return false;
    const bool transposed = has_flag(product, "trans_b");
    const size_t rank = type(q).dims.size();
    const Expr rows = type(q).dims[rank - 2], keys = type(k).dims[transposed ? rank - 2 : rank - 1];
    if (is_zero(keys)) return false;
    // Few rows run along the keys as these lie.
    const bool pays = !transposed || as_int(rows).value_or(kFewRows) >= kFewRows;
    if (!decisions().decide_whether(about(n, "fused"), pays, Bits::kChanged)) return false;
    if (transposed) k = with_keys_innermost(k);
    replace(n.outputs[0],
            op(ops::attention(), {q, k, v, s.condition, s.bias},
               {{"scale", s.scale}, {"fill", s.fill}, {"zero_masked", int64_t{zero_masked}}}));
    return true;
  }
  static constexpr int64_t kFewRows = 6;

  static bool has_flag(const Node& n, const std::string& name) {
    const auto at = n.attributes.find(name);
    return at != n.attributes.end() && std::get<int64_t>(at->second) != 0;
  }
  bool is_plain_product(const Node& n) const {
    return n.inputs.size() == 2 && !has_flag(n, "trans_a") &&
           type(n.outputs[0]).dtype == DType::kFloat32 && type(n.outputs[0]).rank() >= 3 &&
           type(n.inputs[0]).rank() == type(n.inputs[1]).rank();
  }
  bool same_batch(ValueId a, ValueId b) const {
    const auto &x = type(a).dims, &y = type(b).dims;
    for (size_t d = 0; d + 2 < x.size(); ++d)
      if (!can_prove_equal(x[d], y[d])) return false;
    return true;
  }
  // The softmax along the last axis that v is, or from which v differs in that rows of NaN are 0.
  NodeRef softmax_of(ValueId v, bool& zero_masked) const {
    NodeRef n = producer(v);
    if (n && n->op == ops::where() && used_once(v) && is_zero_constant(n->inputs[1])) {
      const NodeRef test = producer(n->inputs[0], ops::is_nan());
      if (!test || test->inputs[0] != n->inputs[2] || !used_once(n->inputs[0])) return {};
      zero_masked = true;
      v = n->inputs[2];
      n = producer(v, ops::softmax());
      if (uses_[static_cast<size_t>(v)] != 2) return {};
    } else if (!used_once(v)) {
      return {};
    }
    if (!n || n->op != ops::softmax()) return {};
    const int rank = type(v).rank();
    return NodeView(graph_, *n).axis(rank, -1) == rank - 1 ? n : NodeRef();
  }
  bool is_zero_constant(ValueId v) const {
    const auto c = scalar(v);
    return c && *c == 0;
  }
  std::optional<double> scalar(ValueId v) const {
    if (!constant(v) || !is_scalar(v) || !is_float(type(v).dtype)) return std::nullopt;
    return number_at(*constant(v), 0);
  }

  // From the operand of softmax back to the product: biases, at most one choice, factors.
  bool read_scores(ValueId v, Scores& s) {
    while (const NodeRef n = step_back(v, ops::add())) {
      const size_t k = leads_to_product(n->inputs[0]) ? 0 : 1;
      const ValueId bias = n->inputs[1 - k];
      v = n->inputs[k];
      s.bias = s.bias == kNone ? bias : op(ops::add(), {s.bias, bias});
    }
    if (const NodeRef n = step_back(v, ops::where())) {
      const size_t k = scalar(n->inputs[2]) ? 1 : 2;
      const auto fill = scalar(n->inputs[3 - k]);
      if (!fill) return false;
      s.fill = *fill;
      v = n->inputs[k];
      s.condition = n->inputs[0];
      if (k == 2) s.condition = op(ops::not_(), {s.condition});
    }
    for (NodeRef n = producer(v); n && used_once(v); n = producer(v)) {
      const auto factor = n->inputs.size() == 2 ? scalar(n->inputs[1]) : std::nullopt;
      if (n->op == ops::mul() && factor)
        s.scale *= *factor;
      else if (n->op == ops::div() && factor)
        s.scale /= *factor;
      else
        break;
      v = n->inputs[0];
    }
    const NodeRef product = producer(v, ops::matmul());
    s.product = v;
    return product && used_once(v) && is_plain_product(*product);
  }
  NodeRef step_back(ValueId v, const OpDef* by) const {
    const NodeRef n = producer(v, by);
    return n && used_once(v) && type(v).dtype == DType::kFloat32 ? n : NodeRef();
  }
  bool leads_to_product(ValueId v) const {
    for (int depth = 0; depth < 8; ++depth) {
      const NodeRef n = producer(v);
      if (!n || !used_once(v)) return false;
      if (n->op == ops::matmul()) return true;
      if (n->op == ops::where())
        v = scalar(n->inputs[2]) ? n->inputs[1] : n->inputs[2];
      else if (n->op == ops::mul() || n->op == ops::div() || n->op == ops::add())
        v = n->inputs[0];
      else
        return false;
    }
    return false;
  }
  ValueId with_keys_innermost(ValueId k) {
    std::vector<int64_t> perm(static_cast<size_t>(type(k).rank()));
    for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return op(ops::transpose(), {k}, {{"perm", perm}});
  }

  DecisionName about(const Node& n, std::string_view what) const {
    return decision_name(graph_, n, what);
  }
};

}  // namespace

Graph fuse_attention(Graph graph, Decisions* decisions) {
  return FuseAttention(std::move(graph), decisions).run();
}

}  // namespace tilewright::passes
