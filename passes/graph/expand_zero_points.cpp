// Products of 8-bit operands with zero points become products of the stored bytes, u8 times i8, and
// corrections on the sum:
//   sum (a - za)(b - zb) = sum a b - za sum (b - zb) - zb sum a
// where the sums over b are constants, or worth it beside a product of enough rows. Where bytes
// would bring nothing, the zero points are subtracted in i32 first.
#include <numeric>

#include "ir/graph/op.h"
#include "passes/graph/pack_operands.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class ExpandZeroPoints : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      const bool conv = n.op == ops::conv(), matmul = n.op == ops::matmul();
      if ((!conv && !matmul) || type(n.outputs[0]).dtype != DType::kInt32 ||
          byte_size(type(n.inputs[0]).dtype) != 1 || input(n, 4) != kNone) {
        push(std::move(n));
      } else if (by_bytes(n)) {
        conv ? conv_of_bytes(n) : matmul_of_bytes(n);
      } else {
        subtract_first(n);
      }
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  bool by_bytes(const Node& n) const {
    NodeView view(graph_, n);
    const auto& w = type(n.inputs[1]).dims;
    const ValueId za = input(n, 2), zb = input(n, 3);
    if (!constant(n.inputs[1]) || (zb != kNone && !constant(zb)))
      return n.op == ops::matmul() && by_packed_bytes(n);
    auto in_fours = [](const Expr& e) {
      return as_int(e).value_or(1) % dot_terms(DType::kUInt8) == 0;
    };
    if (n.op == ops::conv())
      return (view.attr_int("group", 1) == 1 ? in_fours(w[1]) : is_one(w[1])) &&
             (za == kNone || is_scalar(za)) && is_zero_when_signed(n.inputs[1], zb);
    if (w.size() != 2 || view.attr_int("trans_a") || type(n.inputs[0]).rank() < 2 || !is_per_row(n))
      return false;
    const size_t along = view.attr_int("trans_b") ? 1 : 0;
    if (!in_fours(w[along])) return by_packed_bytes(n);
    return zb == kNone || is_scalar(zb) || is_one_along(zb, along);
  }
  // A right operand that is known at run time alone, or with too few terms for whole groups, is
  // worth packing for dot products.
  bool by_packed_bytes(const Node& n) const {
    NodeView view(graph_, n);
    const bool trans_b = view.attr_int("trans_b") != 0;
    const TensorType& b = type(n.inputs[1]);
    if (view.attr_int("trans_a") || !pays_for_dots(type(n.inputs[0]), b, trans_b) || !is_per_row(n))
      return false;
    const ValueId zb = input(n, 3);
    if (zb == kNone || is_scalar(zb)) return true;
    return is_one_along(zb, trans_b ? 1 : 0) &&
           (b.rank() == 2 ? as_int(element_count(type(zb))).has_value() : !trans_b);
  }
  // Is the zero point of a one for all, or one for each row?
  bool is_per_row(const Node& n) const {
    const ValueId za = input(n, 2);
    return za == kNone || is_scalar(za) ||
           (type(za).rank() == type(n.inputs[0]).rank() && is_one(type(za).dims.back()));
  }
  // Does the zero point of matrices not change along this axis of each?
  bool is_one_along(ValueId zero, size_t axis) const {
    const auto& dims = type(zero).dims;
    return dims.size() >= 2 ? is_one(dims[dims.size() - 2 + axis]) : axis == 0;
  }
  // Is the zero point 0 once the bytes are signed?
  bool is_zero_when_signed(ValueId of, ValueId zero) const {
    return is_known(zero, type(of).dtype == DType::kUInt8 ? 128 : 0);
  }
  // An absent zero point is 0.
  bool is_known(ValueId zero, int64_t wanted) const {
    if (zero == kNone) return wanted == 0;
    if (!constant(zero)) return false;
    const Constant& c = *constant(zero);
    for (int64_t i = 0; i < element_count(c.shape).value_or(0); ++i)
      if (integer_at(c, i) != wanted) return false;
    return true;
  }

  // The zero point in i32, moved as the bytes are moved.
  ValueId moved(ValueId zero, int64_t by) {
    if (zero == kNone) return by ? number(static_cast<double>(by), DType::kInt32) : kNone;
    const ValueId wide = cast(zero, DType::kInt32);
    return by ? op(ops::add(), {wide, number(static_cast<double>(by), DType::kInt32)}) : wide;
  }
  ValueId bytes(ValueId v, DType to, int64_t by) {
    if (type(v).dtype == to) return v;
    return cast(
        op(ops::add(), {cast(v, DType::kInt32), number(static_cast<double>(by), DType::kInt32)}),
        to);
  }
  // Operands as u8 and i8, and their zero points.
  struct Operands {
    ValueId a, b, zero_a, zero_b;
  };
  Operands operands(const Node& n) {
    const int64_t by_a = type(n.inputs[0]).dtype == DType::kInt8 ? 128 : 0,
                  by_b = type(n.inputs[1]).dtype == DType::kUInt8 ? -128 : 0;
    const bool zero = is_zero_when_signed(n.inputs[1], input(n, 3));
    const ValueId zero_a = is_known(input(n, 2), 0) ? kNone : input(n, 2);
    return {bytes(n.inputs[0], DType::kUInt8, by_a), bytes(n.inputs[1], DType::kInt8, by_b),
            moved(zero_a, by_a), zero ? kNone : moved(input(n, 3), by_b)};
  }
  Attributes in_i32(const Node& n) const {
    Attributes a = n.attributes;
    a["out_dtype"] = std::string("i32");
    return a;
  }
  ValueId sum_of(ValueId v, std::vector<int64_t> axes, bool keep) {
    return op(ops::reduce_sum(), {cast(v, DType::kInt32)},
              {{"axes", std::move(axes)}, {"keepdims", int64_t{keep}}});
  }

  void matmul_of_bytes(const Node& n) {
    const Operands o = operands(n);
    const TensorType of_b = type(n.inputs[1]);  // new nodes move the old ones
    const bool transposed = NodeView(graph_, n).attr_int("trans_b") != 0;
    const int64_t along = of_b.rank() - (transposed ? 1 : 2);
    const int64_t k = *as_int(of_b.dims[static_cast<size_t>(along)]);
    ValueId y =
        op(ops::matmul(), {in_groups(o.a, type(o.a).rank() - 1), in_groups(o.b, along)}, in_i32(n));
    if (o.zero_a != kNone)
      y = op(ops::sub(), {y, op(ops::mul(), {o.zero_a, sum_of_columns(n, along, transposed, k)})});
    if (o.zero_b != kNone)
      y = op(ops::sub(), {y, op(ops::mul(), {sum_of(o.a, {type(o.a).rank() - 1}, true),
                                             for_results(o.zero_b, of_b.rank())})});
    replace(n.outputs[0], y);
  }
  // sum (b - zb) over the k terms of each column, in a shape that broadcasts against the results:
  // the same however b and zb were moved.
  ValueId sum_of_columns(const Node& n, int64_t along, bool transposed, int64_t k) {
    const int rank = type(n.inputs[1]).rank();
    ValueId sum = sum_of(n.inputs[1], {along}, rank > 2);
    if (rank > 2 && transposed) {
      std::vector<int64_t> perm(static_cast<size_t>(rank));
      std::iota(perm.begin(), perm.end(), int64_t{0});
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      sum = op(ops::transpose(), {sum}, {{"perm", std::move(perm)}});
    }
    if (is_known(input(n, 3), 0)) return sum;
    const ValueId zero = for_results(cast(input(n, 3), DType::kInt32), rank);
    return op(ops::sub(),
              {sum, op(ops::mul(), {zero, number(static_cast<double>(k), DType::kInt32)})});
  }
  // A zero point of b, a scalar or one per column, in a shape that broadcasts against the results.
  ValueId for_results(ValueId zero, int rank_of_b) {
    if (is_scalar(zero)) return reshape(zero, {});
    return rank_of_b == 2 ? reshape(zero, {*as_int(element_count(type(zero)))}) : zero;
  }
  // With zeros up to whole groups of the terms of a dot product.
  ValueId in_groups(ValueId v, int64_t dim) {
    const int64_t terms = dot_terms(DType::kUInt8),
                  extent = *as_int(type(v).dims[static_cast<size_t>(dim)]);
    if (extent % terms == 0) return v;
    const auto rank = static_cast<size_t>(type(v).rank());
    std::vector<int64_t> pads(2 * rank);
    pads[rank + static_cast<size_t>(dim)] = terms - extent % terms;
    return op(ops::pad(), {v, graph_.add_constant(
                                  "", make_constant_of<int64_t>(
                                          DType::kInt64, {static_cast<int64_t>(2 * rank)}, pads))});
  }
  void conv_of_bytes(const Node& n) {
    const Operands o = operands(n);
    ValueId padding = kNone;
    if (o.zero_a != kNone) padding = cast(reshape(o.zero_a, {}), DType::kUInt8);
    ValueId y = op(ops::conv(), {o.a, o.b, kNone, kNone, padding}, in_i32(n));
    if (o.zero_a != kNone) {
      const int rank = type(o.b).rank();
      std::vector<int64_t> axes, shape(static_cast<size_t>(rank), 1);
      for (int64_t d = 1; d < rank; ++d) axes.push_back(d);
      shape[1] = *as_int(type(o.b).dims[0]);
      y = op(
          ops::sub(),
          {y, op(ops::mul(), {reshape(o.zero_a, {}), reshape(sum_of(o.b, axes, false), shape)})});
    }
    replace(n.outputs[0], y);
  }
  void subtract_first(const Node& n) {
    auto without = [&](size_t i) {
      const ValueId zero = input(n, i + 2), v = n.inputs[i];
      if (zero == kNone) return v;
      return op(ops::sub(), {cast(v, DType::kInt32), cast(zero, DType::kInt32)});
    };
    const ValueId a = without(0), b = without(1);
    replace(n.outputs[0], op(n.op, {a, b}, in_i32(n)));
  }
};

}  // namespace

Graph expand_zero_points(Graph graph) { return ExpandZeroPoints(std::move(graph)).run(); }

}  // namespace tilewright::passes
