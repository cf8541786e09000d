// Reductions over dimensions.
//
// Sums of halves accumulate in f32. Exact kernels sum in an order that follows from the shape;
// splitting a reduction over lanes or workers is the schedule's (factor_reduction).
#include <algorithm>

#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"

namespace tilewright::ir {
namespace {

// Attribute axes brought into [0, rank) and sorted; empty attribute: all.
std::vector<int> reduced_axes(const NodeView& c) {
  const int rank = c.rank(0);
  std::vector<int> axes;
  if (!c.has_attribute("axes")) {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
    return axes;
  }
  for (int64_t a : c.attr_ints("axes")) axes.push_back(static_cast<int>(a < 0 ? a + rank : a));
  std::sort(axes.begin(), axes.end());
  return axes;
}
bool is_reduced(const std::vector<int>& axes, int d) {
  return std::find(axes.begin(), axes.end(), d) != axes.end();
}

Status infer_reduce(InferContext& c) {
  const auto& x = c.type(0);
  if (c.has_attribute("axes"))
    if (auto given = distinct_axes(c.attr_ints("axes"), x); !given.ok())
      return c.at_node(given.error());
  const std::vector<int> axes = reduced_axes(c);
  std::vector<Expr> dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (!is_reduced(axes, d))
      dims.push_back(x.dims[static_cast<size_t>(d)]);
    else if (c.attr_int("keepdims", 1))
      dims.push_back(1);
  }
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}

struct ReduceIndex {
  std::vector<Expr> extents;  // of the reduced dimensions
  std::vector<int> axes;
  bool keepdims;
  Axes operator()(int rank, const Axes& i, const Axes& r) const {
    Axes at;
    size_t next = 0, next_reduced = 0;
    for (int d = 0; d < rank; ++d) {
      if (is_reduced(axes, d)) {
        at.push_back(r[next_reduced++]);
        if (keepdims) ++next;
      } else {
        at.push_back(i[next++]);
      }
    }
    return at;
  }
};
ReduceIndex reduce_index(const ComputeContext& c) {
  ReduceIndex r{{}, reduced_axes(c), c.attr_int("keepdims", 1) != 0};
  for (int d : r.axes) r.extents.push_back(c.dim(0, d));
  return r;
}
template <Combiner combiner>
void compute_reduce(ComputeContext& c) {
  const ReduceIndex index = reduce_index(c);
  const DType dtype = c.out()->dtype,
              acc = combiner == Combiner::kSum || combiner == Combiner::kProduct
                        ? accumulator(dtype)
                        : dtype;
  Buffer result = acc == dtype ? c.out() : c.b.temp("acc", acc, c.out()->shape);
  c.b.reduce(
      result, index.extents, combiner,
      [&](const Axes& i, const Axes& r) {
        return cast(acc, load(c.in(0), index(c.rank(0), i, r)));
      },
      "reduce");
  if (acc != dtype)
    c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(result, i)); }, "round");
}
void compute_reduce_mean(ComputeContext& c) {
  const ReduceIndex index = reduce_index(c);
  const DType dtype = c.out()->dtype, acc = accumulator(dtype);
  Buffer sum = c.b.temp("sum", acc, c.out()->shape);
  c.b.reduce(
      sum, index.extents, Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        return cast(acc, load(c.in(0), index(c.rank(0), i, r)));
      },
      "reduce");
  Expr count = 1;
  for (const Expr& e : index.extents) count = count * e;
  const auto n = as_int(simplify(count));
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        // A multiplication by the reciprocal is one rounding more; divide when the count is no
        // power of two.
        if (n && *n > 0 && (*n & (*n - 1)) == 0 && is_float(acc))
          return cast(dtype, load(sum, i) * constant(1.0 / static_cast<double>(*n), acc));
        return cast(dtype, load(sum, i) / cast(acc, count));
      },
      "mean");
}

// The place of the extreme element. A NaN is beyond all numbers, as in NumPy and PyTorch: its place
// is the result, that of the first one or, where the last of equals is wanted, of the last.
class ArgExtreme {
 public:
  ArgExtreme(ComputeContext& c, bool largest)
      : c_(c), largest_(largest), last_(c.attr_int("select_last_index") != 0) {}

  void build() {
    const int rank = c_.rank(0), axis = c_.axis(rank);
    const ReduceIndex index{{c_.dim(0, axis)}, {axis}, c_.attr_int("keepdims", 1) != 0};
    const DType t = c_.in(0)->dtype;
    best_ = c_.b.temp("best", t, c_.out()->shape);
    if (is_float(t) && axis < rank - 1)
      nan_seen_ = c_.b.temp("nan_seen", DType::kBool, c_.out()->shape);
    auto init = [&](const Axes& i) {
      Stmt first =
          seq({store(best_, i, largest_ ? lowest(t) : highest(t)), store(c_.out(), i, int_imm(0))});
      return nan_seen_ ? seq({first, store(nan_seen_, i, bool_imm(false))}) : first;
    };
    // Along a row the place changes seldom; elsewhere lanes choose.
    auto update = [&](const Axes& i, const Axes& r) {
      const Expr x = load(c_.in(0), index(rank, i, r));
      return axis == rank - 1 ? branch(i, r[0], x) : choose(i, r[0], x);
    };
    c_.b.reduce_custom(c_.out()->shape, index.extents, init, update,
                       largest_ ? "argmax" : "argmin");
  }

 private:
  Expr beyond(const Expr& x, const Expr& y, bool or_equal) const {
    if (largest_) return or_equal ? x >= y : x > y;
    return or_equal ? x <= y : x < y;
  }
  static Expr is_nan(const Expr& x) { return unary(UnaryOp::kIsNan, x); }

  // A comparison that NaN passes too finds nearly all elements that change nothing.
  Stmt branch(const Axes& i, const Expr& at, const Expr& x) const {
    const Expr b = load(best_, i);
    Stmt take = seq({store(c_.out(), i, at), store(best_, i, x)});
    if (!is_float(x.dtype())) return if_then(beyond(x, b, last_), take);
    const Expr number = logical_not(is_nan(b));
    return if_then(logical_not(beyond(b, x, !last_)),
                   if_then(last_ ? logical_or(is_nan(x), number) : number, take));
  }
  // The best number does not wait for the comparison.
  Stmt choose(const Axes& i, const Expr& at, const Expr& x) const {
    const Expr b = load(best_, i);
    auto keep = [&](const Expr& better) {
      return store(c_.out(), i, select(better, at, load(c_.out(), i)));
    };
    if (!is_float(x.dtype()))
      return seq({keep(beyond(x, b, last_)), store(best_, i, largest_ ? max(b, x) : min(b, x))});
    const Expr seen = load(nan_seen_, i), nan = is_nan(x);
    const Expr better = logical_and(logical_not(seen), logical_not(beyond(b, x, !last_)));
    return seq({keep(last_ ? logical_or(better, nan) : better),
                store(best_, i, select(beyond(x, b, false), x, b)),
                store(nan_seen_, i, logical_or(seen, nan))});
  }

  ComputeContext& c_;
  const bool largest_, last_;
  Buffer best_, nan_seen_;
};
template <bool largest>
void compute_arg(ComputeContext& c) {
  ArgExtreme(c, largest).build();
}
Status infer_arg(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank());
  if (axis < 0 || axis >= x.rank())
    return c.error("axis " + std::to_string(c.attr_int("axis")) + " of " + to_string(x));
  std::vector<Expr> dims = x.dims;
  if (c.attr_int("keepdims", 1))
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  c.set_output(0, DType::kInt64, std::move(dims));
  return {};
}

// v, one for each result, with the reduced dimensions back as extents of 1.
V kept(GradientContext& c, V v) {
  std::vector<Expr> dims = c.type(c.in(0).id).dims;
  for (int a : reduced_axes(c.view())) dims[static_cast<size_t>(a)] = 1;
  return {c, c.reshape(v.id, dims)};
}
V repeated(GradientContext& c, V v) {
  return v.make("expand", {kept(c, v).id, c.dims(c.type(c.in(0).id).dims)});
}
// v, one for each operand, summed up for each result and repeated.
V sum_of(GradientContext& c, std::string_view op, V v) {
  const std::vector<int> axes = reduced_axes(c.view());
  return reduce(op, v, {axes.begin(), axes.end()});
}
void gradient_of_mean(GradientContext& c) {
  Expr count = 1;
  for (int a : reduced_axes(c.view())) count = count * c.view().dim(0, a);
  const V n = V{c, c.reshape(c.dims({simplify(count)}), std::vector<int64_t>{})}.to(c.dy().dtype());
  c.add(0, repeated(c, c.dy() / n));
}
// To all that are the extreme, in equal parts.
void gradient_of_extreme(GradientContext& c) {
  const V dy = kept(c, c.dy()), x = c.in(0);
  const V taken = apply("equal", x, kept(c, c.out()));
  const V parts = sum_of(c, "reduce_sum", where(taken, dy.number(1), dy.number(0)));
  c.add(0, where(taken, dy / parts, dy.number(0)));
}
// dy times the product of the others: without a division by 0.
void gradient_of_product(GradientContext& c) {
  const V x = c.in(0), one = x.number(1), none = x.number(0);
  const V is_zero = apply("equal", x, none), others = where(is_zero, one, x);
  const V zeros = sum_of(c, "reduce_sum", where(is_zero, one, none));
  const V product = sum_of(c, "reduce_prod", others);
  const V all = where(apply("equal", zeros, none), product / others, none),
          but_this = where(apply("equal", zeros, one), product, none);
  c.add(0, kept(c, c.dy()) * where(is_zero, but_this, all));
}

const std::vector<AttributeDef> kReduceAttributes{
    {"axes", AttributeKind::kInts, "dimensions; absent: all"},
    {"keepdims", AttributeKind::kInt, "reduced dimensions stay with extent 1; default 1"}};
OpDef reduce_op(std::string_view op_name, std::string_view summary,
                void (*compute)(ComputeContext&), void (*gradient)(GradientContext&)) {
  return {.name = op_name,
          .summary = summary,
          .operands = {{"x"}},
          .attributes = kReduceAttributes,
          .fusion = FusionKind::kReduction,
          .channels = Channels::kAlong,
          .infer_type = infer_reduce,
          .compute = compute,
          .gradient = gradient,
          .example = {.inputs = {{DType::kFloat32, {5, 37, 3}}},
                      .attributes = {{"axes", std::vector<int64_t>{1}}}},
          .source = "https://onnx.ai/onnx/operators/"};
}
OpDef arg_op(std::string_view op_name, std::string_view summary, void (*compute)(ComputeContext&)) {
  return {.name = op_name,
          .summary = summary,
          .operands = {{"x"}},
          .attributes = {{"axis", AttributeKind::kInt, "default 0"},
                         {"keepdims", AttributeKind::kInt, "default 1"},
                         {"select_last_index", AttributeKind::kInt, "of equal elements the last"}},
          .fusion = FusionKind::kReduction,
          .infer_type = infer_arg,
          .compute = compute,
          .example = {.inputs = {{DType::kFloat32, {5, 37}}}, .attributes = {{"axis", int64_t{1}}}},
          .source = "https://onnx.ai/onnx/operators/onnx__ArgMax.html"};
}

}  // namespace

const std::vector<OpDef>& reduction_ops() {
  static const std::vector<OpDef> ops{
      reduce_op("reduce_sum", "sum over axes", compute_reduce<Combiner::kSum>,
                [](GradientContext& c) { c.add(0, repeated(c, c.dy())); }),
      reduce_op("reduce_prod", "product over axes", compute_reduce<Combiner::kProduct>,
                gradient_of_product),
      reduce_op("reduce_max", "largest element over axes, NaN if there is one",
                compute_reduce<Combiner::kMax>, gradient_of_extreme),
      reduce_op("reduce_min", "smallest element over axes, NaN if there is one",
                compute_reduce<Combiner::kMin>, gradient_of_extreme),
      reduce_op("reduce_mean", "mean over axes", compute_reduce_mean, gradient_of_mean),
      arg_op("arg_max", "index of the largest element along an axis, or of NaN if there is one",
             compute_arg<true>),
      arg_op("arg_min", "index of the smallest element along an axis, or of NaN if there is one",
             compute_arg<false>),
  };
  return ops;
}

}  // namespace tilewright::ir
