// Products of dequantised operands become products in integers: the sum of 8-bit products in i32,
// times the product of both scales. What comes after, up to the next quantisation, works on the sum
// in registers.
//
// This is QDQ fusion: dequantize(x) * dequantize(w) = (s_x s_w) * sum (x - z_x)(w - z_w), with s_w
// per output channel at most, so that it leaves the sum. Needs scales that do not vary along the
// reduction.
#include <set>

#include "ir/graph/op.h"
#include "passes/graph/pack_operands.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

class QuantizeContractions : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (const Node& n : old_)
      if (n.op == ops::quantize() && used_once(n.inputs[0])) quantized_.insert(n.inputs[0]);
    for (Node& n : old_) {
      follow(n);
      if (is_float(type(n.outputs[0]).dtype) && to_integers(n)) continue;
      push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  bool to_integers(const Node& n) {
    const bool conv = n.op == ops::conv();
    if (!conv && n.op != ops::matmul()) return false;
    if (n.inputs.size() != 2 || type(n.outputs[0]).dtype != DType::kFloat32) return false;
    const NodeRef x = producer(n.inputs[0], ops::dequantize()),
                  w = producer(n.inputs[1], ops::dequantize());
    if (!x || !w) return false;
    if (!is_byte(type(x->inputs[0]).dtype) || !is_byte(type(w->inputs[0]).dtype) ||
        !(constant(w->inputs[0]) ? runs_in_fours(n, *w) : pays_at_run_time(n, *w)))
      return false;
    const ValueId scale_x = x->inputs[1], zero_x = input(*x, 2), zero_w = input(*w, 2);
    if (!is_scalar(scale_x) || (zero_x != kNone && !is_scalar(zero_x))) return false;
    const ValueId scale_w = of_results(n, *w, w->inputs[1]);
    if (scale_w == kNone) return false;
    Attributes attributes = n.attributes;
    attributes["out_dtype"] = std::string("i32");
    const auto [bytes_x, bytes_w] = in_fours(n, x->inputs[0], w->inputs[0], zero_w);
    const ValueId sum = op(n.op, {bytes_x, bytes_w, zero_x, zero_w}, std::move(attributes));
    const ValueId factor = op(ops::mul(), {reshape(scale_x, {}), scale_w});
    replace(n.outputs[0], op(ops::mul(), {cast(sum, DType::kFloat32), factor}));
    return true;
  }

  // A product of two operands that are known at run time alone. One whose result is not quantised
  // again may be part of an attention.
  bool pays_at_run_time(const Node& n, const Node& w) const {
    NodeView view(graph_, n);
    const ValueId scale = w.inputs[1], zero = input(w, 2);
    return n.op == ops::matmul() && !view.attr_int("trans_a") && quantized_.count(n.outputs[0]) &&
           is_scalar(scale) && (zero == kNone || is_scalar(zero)) &&
           pays_for_dots(type(n.inputs[0]), type(w.inputs[0]), view.attr_int("trans_b") != 0);
  }
  // The terms of one result come in whole groups of a dot product, or each channel has a window of
  // its own: what is read of it is a quarter of floats.
  bool runs_in_fours(const Node& n, const Node& w) const {
    NodeView view(graph_, n);
    const auto& dims = type(w.inputs[0]).dims;
    if (n.op == ops::conv()) {
      if (view.attr_int("group", 1) != 1) return is_one(dims[1]) && has_no_zero_point(w);
      const int64_t rest = as_int(dims[1]).value_or(1) % dot_terms(DType::kUInt8);
      return rest == 0 || (rest == dot_terms(DType::kUInt8) - 1 && pads_with_zero(w));
    }
    if (dims.size() != 2 || view.attr_int("trans_a") || type(n.inputs[0]).rank() < 2) return false;
    return as_int(dims[view.attr_int("trans_b") ? 1 : 0]).value_or(1) % dot_terms(DType::kUInt8) ==
           0;
  }

  bool has_no_zero_point(const Node& w) const {
    const ValueId zero = input(w, 2);
    if (type(w.inputs[0]).dtype != DType::kInt8) return false;
    if (zero == kNone) return true;
    if (!constant(zero)) return false;
    const int64_t n = element_count(constant(zero)->shape).value_or(0);
    for (int64_t i = 0; i < n; ++i)
      if (integer_at(*constant(zero), i) != 0) return false;
    return true;
  }
  // Is it known what stands for 0 in the weights?
  bool pads_with_zero(const Node& w) const {
    const ValueId zero = input(w, 2);
    if (zero == kNone || (constant(zero) && is_scalar(zero))) return true;
    const auto& dims = type(zero).dims;
    for (size_t d = 1; d < dims.size(); ++d)
      if (!is_one(dims[d])) return false;
    return constant(zero) && static_cast<int>(dims.size()) == type(w.inputs[0]).rank();
  }
  // Images of three channels get a fourth one, whose weights are 0.
  std::pair<ValueId, ValueId> in_fours(const Node& n, ValueId x, ValueId w, ValueId zero) {
    const int64_t four = dot_terms(DType::kUInt8);
    if (n.op != ops::conv() || constant(w)->shape[1] % four == 0 ||
        NodeView(graph_, n).attr_int("group", 1) != 1)
      return {x, w};
    const Constant& given = *constant(w);
    Shape shape = given.shape;
    ++shape[1];
    int64_t window = 1;
    for (size_t d = 2; d < shape.size(); ++d) window *= shape[d];
    const auto each = static_cast<size_t>(given.shape[1] * window),
               more = static_cast<size_t>(window);
    std::vector<uint8_t> bytes;
    for (size_t o = 0; o < static_cast<size_t>(shape[0]); ++o) {
      bytes.insert(bytes.end(), given.data + o * each, given.data + (o + 1) * each);
      const bool one = zero == kNone || is_scalar(zero);
      const int64_t fill =
          zero == kNone ? 0 : integer_at(*constant(zero), one ? 0 : static_cast<int64_t>(o));
      bytes.insert(bytes.end(), more, static_cast<uint8_t>(fill));
    }
    const size_t rank = shape.size();
    std::vector<int64_t> pads(2 * rank);
    pads[rank + 1] = 1;
    const ValueId sizes = graph_.add_constant(
        "", make_constant_of<int64_t>(DType::kInt64, {static_cast<int64_t>(2 * rank)}, pads));
    return {op(ops::pad(), {x, sizes}),
            graph_.add_constant("", make_constant(given.dtype, shape, std::move(bytes)))};
  }

  // Scale of w, one for all or one per result channel, in a shape that broadcasts against results.
  ValueId of_results(const Node& n, const Node& w, ValueId scale) {
    if (!is_fixed(scale)) return kNone;
    if (is_scalar(scale)) return reshape(scale, {});
    const bool conv = n.op == ops::conv();
    const size_t channel = conv || NodeView(graph_, n).attr_int("trans_b") ? 0 : 1;
    const auto& dims = type(scale).dims;
    const int rank = type(w.inputs[0]).rank();
    if (static_cast<int>(dims.size()) != rank) return kNone;
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != channel && !is_one(dims[d])) return kNone;
    const int64_t channels = as_int(dims[channel]).value_or(1);
    std::vector<int64_t> shape{channels};
    if (conv) {
      shape.assign(static_cast<size_t>(rank), 1);
      shape[1] = channels;
    }
    return reshape(scale, shape);
  }

  std::set<ValueId> quantized_;  // values of which nothing but the quantised form is used
};

}  // namespace

Graph quantize_contractions(Graph graph) { return QuantizeContractions(std::move(graph)).run(); }

}  // namespace tilewright::passes
