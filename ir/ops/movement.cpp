// Operators that move elements: shapes, slices, joins, lookups.
#include <algorithm>
#include <functional>

#include "ir/graph/compute.h"
#include "ir/loops/linear.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kOnnx = "https://onnx.ai/onnx/operators/";

Expr product(const std::vector<Expr>& dims) {
  Expr n = 1;
  for (const Expr& d : dims) n = n * d;
  return simplify(n);
}

// Dimensions that only the run knows, one symbol for each element of the shape operand; `dim` may
// choose what is known.
Status infer_shape_at_run(InferContext& c, const std::function<Expr(int, const Expr&)>& dim) {
  auto rank = c.rank(1) == 1 ? as_int(c.dim(1, 0)) : std::nullopt;
  if (!rank)
    return c.unsupported("the length of the shape operand, " + to_string(c.type(1)) +
                         ", is not known at compile time");
  std::vector<Expr> dims;
  for (int d = 0; d < static_cast<int>(*rank); ++d)
    dims.push_back(dim(d, c.data_dependent_symbol(d, "extent" + std::to_string(d))));
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
// Writes symbol values; one below 0 stops the run.
void store_symbols(ComputeContext& c, const std::vector<Expr>& values) {
  std::vector<Stmt> stores;
  for (size_t k = 0; k < values.size(); ++k)
    stores.push_back(store(c.out(), {Expr(static_cast<int64_t>(k))}, values[k]));
  c.b.opaque(seq(std::move(stores)), "extents");
}

// --- reshape
// ---------------------------------------------------------------------------------------------------------

Status infer_reshape(InferContext& c) {
  auto wanted = c.known(1);
  if (!wanted) return infer_shape_at_run(c, [](int, const Expr& symbol) { return symbol; });
  std::vector<Expr> dims;
  int open = -1;
  const auto& x = c.type(0);
  for (size_t d = 0; d < wanted->size(); ++d) {
    Expr e = simplify(cast(DType::kInt64, (*wanted)[d]));
    if (is_zero(e) && !c.attr_int("allowzero")) {
      if (static_cast<int>(d) >= x.rank())
        return c.error("extent 0 at dimension " + std::to_string(d) + " copies nothing: x is " +
                       to_string(x));
      e = x.dims[d];
    }
    if (auto i = as_int(e); i && *i < 0) {
      if (*i != -1 || open >= 0) return c.error("shape with extent " + std::to_string(*i));
      open = static_cast<int>(d);
      e = 1;
    }
    dims.push_back(e);
  }
  const Expr total = product(x.dims), rest = product(dims);
  if (open >= 0) {
    if (is_zero(rest))
      dims[static_cast<size_t>(open)] = 0;
    else
      dims[static_cast<size_t>(open)] = simplify(floordiv(total, rest));
  }
  Expr made = product(dims);
  if (as_int(total) && as_int(made) && *as_int(total) != *as_int(made))
    return c.error("cannot make " + to_string(TensorType{x.dtype, dims}) + " of " + to_string(x) +
                   ": " + to_text(made) + " elements instead of " + to_text(total));
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void reshape_symbols(ComputeContext& c) {
  const auto& from = c.in(0)->shape;
  const Expr total = product(from);
  std::vector<Expr> dims;
  Expr rest = 1, open = 0;
  for (int d = 0; d < static_cast<int>(c.node().defined_symbols.size()); ++d) {
    Expr e = c.int_element(1, d);
    if (!c.attr_int("allowzero"))
      e = select(eq(e, Expr(0)), d < c.rank(0) ? from[static_cast<size_t>(d)] : Expr(-2), e);
    rest = rest * select(eq(e, Expr(-1)), 1, e);
    open = open + select(eq(e, Expr(-1)), Expr(1), Expr(0));
    dims.push_back(e);
  }
  const Expr left = select(eq(rest, Expr(0)), Expr(0), floordiv(total, max(rest, 1)));
  const Expr fits =
      logical_and(open <= Expr(1), eq(rest * select(eq(open, Expr(0)), Expr(1), left), total));
  for (Expr& e : dims) e = select(fits, select(eq(e, Expr(-1)), left, e), Expr(-1));
  store_symbols(c, dims);
}
void compute_reshape(ComputeContext& c) {
  const auto &from = c.in(0)->shape, &to = c.out()->shape;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr flat = 0;
        for (size_t d = 0; d < to.size(); ++d) flat = flat * to[d] + i[d];
        Axes at(from.size());
        for (size_t d = from.size(); d-- > 0;) {
          at[d] = d == 0 ? flat : floormod(flat, from[d]);
          flat = floordiv(flat, from[d]);
        }
        return load(c.in(0), at);
      },
      "reshape");
}

// --- shape
// -----------------------------------------------------------------------------------------------------------

Status infer_shape(InferContext& c) {
  c.set_output(0, DType::kInt64, {Expr(c.rank(0))});
  return {};
}
void compute_shape(ComputeContext& c) {
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr e = 0;
        for (int d = c.rank(0); d-- > 0;) e = select(eq(i[0], Expr(d)), c.dim(0, d), e);
        return e;
      },
      "shape");
}

// Extents that are no operand's, such as products of them.
Status infer_extents(InferContext& c) {
  c.set_output(
      0, DType::kInt64,
      {Expr(static_cast<int64_t>(c.attr_extents("extents").value_or(std::vector<Expr>{}).size()))});
  return {};
}
void compute_extents(ComputeContext& c) {
  const std::vector<Expr> extents = c.attr_extents("extents").value_or(std::vector<Expr>{});
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr e = 0;
        for (size_t d = extents.size(); d-- > 0;)
          e = select(eq(i[0], Expr(static_cast<int64_t>(d))), extents[d], e);
        return e;
      },
      "extents");
}

// --- transpose, expand
// -------------------------------------------------------------------------------------------------

Status infer_transpose(InferContext& c) {
  const auto& x = c.type(0);
  std::vector<int64_t> perm = c.attr_ints("perm");
  std::vector<bool> seen(x.dims.size());
  std::vector<Expr> dims;
  if (perm.size() != x.dims.size())
    return c.error("perm of " + std::to_string(perm.size()) + " dimensions for " + to_string(x));
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank() || seen[static_cast<size_t>(p)])
      return c.error("perm is no permutation of the dimensions of " + to_string(x));
    seen[static_cast<size_t>(p)] = true;
    dims.push_back(x.dims[static_cast<size_t>(p)]);
  }
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void compute_transpose(ComputeContext& c) {
  const auto perm = c.attr_ints("perm");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at(perm.size());
        for (size_t d = 0; d < perm.size(); ++d) at[static_cast<size_t>(perm[d])] = i[d];
        return load(c.in(0), at);
      },
      "transpose");
}

// Number of dimensions of x behind the first `d` of the result; below 0: x has none there.
int expand_source(const NodeView& c, int d) {
  return d - static_cast<int>(as_int(c.dim(1, 0)).value_or(0)) + c.rank(0);
}
Status infer_expand_at_run(InferContext& c) {
  if (c.rank(1) == 1 && as_int(c.dim(1, 0)).value_or(c.rank(0)) < c.rank(0))
    return c.unsupported("a shape operand of lower rank than x is not known at compile time");
  return infer_shape_at_run(c, [&](int d, const Expr& symbol) {
    const int s = expand_source(c, d);
    return s >= 0 && as_int(c.dim(0, s)).value_or(1) != 1 ? c.dim(0, s) : symbol;
  });
}
void expand_symbols(ComputeContext& c) {
  std::vector<Expr> dims;
  for (int d = 0; d < static_cast<int>(c.node().defined_symbols.size()); ++d) {
    const Expr wanted = c.int_element(1, d);
    const int s = expand_source(c, d);
    const Expr have = s >= 0 ? c.dim(0, s) : Expr(1);
    const Expr agrees = logical_or(eq(wanted, Expr(1)), eq(wanted, have));
    dims.push_back(select(eq(have, Expr(1)), wanted, select(agrees, have, Expr(-1))));
  }
  store_symbols(c, dims);
}
Status infer_expand(InferContext& c) {
  auto shape = c.known(1);
  if (!shape) return infer_expand_at_run(c);
  std::vector<Expr> wanted;
  for (const Expr& e : *shape) wanted.push_back(simplify(cast(DType::kInt64, e)));
  auto dims = broadcast_dims(c.type(0).dims, wanted);
  if (!dims.ok())
    return c.error(to_string(c.type(0)) + " to " + to_string(TensorType{c.type(0).dtype, wanted}) +
                   ": " + dims.error().message);
  c.set_output(0, c.type(0).dtype, std::move(dims).value());
  return {};
}
void compute_expand(ComputeContext& c) {
  const auto &from = c.in(0)->shape, &to = c.out()->shape;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at;
        for (size_t d = 0; d < from.size(); ++d) {
          const size_t k = d + to.size() - from.size();
          // An extent that only the run knows may turn out to be 1.
          const bool fixed = as_int(from[d]) || same_expr(from[d], to[k]);
          at.push_back(is_one(from[d]) ? Expr(0)
                       : fixed         ? i[k]
                                       : select(eq(from[d], Expr(1)), Expr(0), i[k]));
        }
        return load(c.in(0), at);
      },
      "expand");
}

// --- concat
// ----------------------------------------------------------------------------------------------------------

Status infer_concat(InferContext& c) {
  const int rank = c.rank(0), axis = c.axis(rank);
  if (axis < 0 || axis >= rank)
    return c.error("axis " + std::to_string(c.attr_int("axis")) + " of " + to_string(c.type(0)));
  std::vector<Expr> dims = c.type(0).dims;
  Expr total = 0;
  for (int k = 0; k < c.num_inputs(); ++k) {
    if (c.rank(k) != rank || c.type(k).dtype != c.type(0).dtype)
      return c.error("operands differ: " + to_string(c.type(0)) + " and " + to_string(c.type(k)));
    for (int d = 0; d < rank; ++d) {
      auto a = as_int(dims[static_cast<size_t>(d)]), b = as_int(c.dim(k, d));
      if (d != axis && a && b && *a != *b)
        return c.error("extents differ: " + to_string(c.type(0)) + " and " + to_string(c.type(k)) +
                       " along axis " + std::to_string(axis));
      if (d != axis && b) dims[static_cast<size_t>(d)] = Expr(*b);
    }
    total = total + c.dim(k, axis);
  }
  dims[static_cast<size_t>(axis)] = total;
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_concat(ComputeContext& c) {
  const auto axis = static_cast<size_t>(c.axis(c.rank(0)));
  Expr offset = 0;
  for (int k = 0; k < c.num_inputs(); ++k) {
    c.b.compute_at(
        c.out(), c.in(k)->shape,
        [&](const Axes& i) {
          Axes at = i;
          at[axis] = at[axis] + offset;
          return LoopsBuilder::Write{at, load(c.in(k), i)};
        },
        "concat");
    offset = simplify(offset + c.in(k)->shape[axis]);
  }
}

// --- slice
// -----------------------------------------------------------------------------------------------------------

struct SliceAxis {
  Expr start, step, extent;
};  // extent: null when only the run knows start or end
// Element k of starts or ends; null when it is not at hand.
using SliceBound = std::function<Expr(int operand, int k)>;

Result<std::vector<int64_t>> slice_numbers(const NodeView& c, int operand, const char* name,
                                           const std::vector<int64_t>& otherwise) {
  if (!c.has(operand)) return otherwise;
  auto known = c.known_ints(operand);
  if (!known) return unsupported(std::string(name) + " are not known at compile time");
  return *known;
}
// Where a bound lies: from the end when below 0.
Expr slice_position(const Expr& value, const Expr& extent) {
  Expr v = simplify(cast(DType::kInt64, value));
  if (auto i = as_int(v))
    return *i < 0 ? (*i < -(int64_t{1} << 40) ? Expr(-1) : Expr(*i) + extent) : v;
  // A symbolic value may turn out negative only when it is a difference.
  return interval(v).low.value_or(-1) >= 0 ? v : simplify(select(v < Expr(0), v + extent, v));
}
SliceAxis slice_axis(const Expr& from, const Expr& to, int64_t step, const Expr& extent) {
  if (!from || !to) return {nullptr, step, nullptr};
  const Expr low = step > 0 ? Expr(0) : Expr(-1), high = step > 0 ? extent : extent - 1;
  const Expr start = clamp(slice_position(from, extent), step > 0 ? low : Expr(0), high);
  const Expr end = clamp(slice_position(to, extent), low, high);
  const Expr count = step > 0 ? ceildiv(end - start, step) : ceildiv(start - end, -step);
  return {simplify(start), step, simplify(max(count, 0))};
}
// Per dimension, from operands starts, ends, axes, steps; numpy's rules, ends clamped.
Result<std::vector<SliceAxis>> slice_axes(const NodeView& c, const SliceBound& bound) {
  const auto& x = c.type(0);
  std::vector<SliceAxis> result;
  for (const Expr& d : x.dims) result.push_back({0, 1, d});
  auto count = c.rank(1) == 1 ? as_int(c.dim(1, 0)) : std::nullopt;
  if (!count) return unsupported("the length of starts is not known at compile time");
  std::vector<int64_t> all, ones(static_cast<size_t>(*count), 1);
  for (int64_t d = 0; d < *count; ++d) all.push_back(d);
  TW_ASSIGN(std::vector<int64_t> axes, slice_numbers(c, 3, "axes", all));
  TW_ASSIGN(std::vector<int64_t> steps, slice_numbers(c, 4, "steps", ones));
  if (axes.size() != all.size() || as_int(c.dim(2, 0)).value_or(*count) != *count ||
      steps.size() != all.size())
    return invalid("starts, ends, axes and steps differ in length");
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t a = axes[k] < 0 ? axes[k] + x.rank() : axes[k];
    if (a < 0 || a >= x.rank())
      return invalid("axis " + std::to_string(axes[k]) + " of " + to_string(x));
    if (steps[k] == 0) return invalid("step 0");
    const int n = static_cast<int>(k);
    result[static_cast<size_t>(a)] =
        slice_axis(bound(1, n), bound(2, n), steps[k], x.dims[static_cast<size_t>(a)]);
  }
  return result;
}
Result<std::vector<SliceAxis>> slice_axes_known(const NodeView& c) {
  auto starts = c.known(1), ends = c.known(2);
  return slice_axes(c, [&](int operand, int k) {
    const auto& known = operand == 1 ? starts : ends;
    return known && k < static_cast<int>(known->size()) ? (*known)[static_cast<size_t>(k)] : Expr();
  });
}
std::vector<SliceAxis> slice_axes_at_run(const ComputeContext& c) {
  return slice_axes(c, [&](int operand, int k) { return c.int_element(operand, k); }).value();
}
Status infer_slice(InferContext& c) {
  auto axes = slice_axes_known(c);
  if (!axes.ok())
    return axes.error().kind == ErrorKind::kUnsupported ? c.unsupported(axes.error().message)
                                                        : c.error(axes.error().message);
  std::vector<Expr> dims;
  int symbols = 0;
  for (const SliceAxis& a : *axes) {
    if (a.extent) {
      dims.push_back(a.extent);
      continue;
    }
    dims.push_back(c.data_dependent_symbol(symbols, "extent" + std::to_string(symbols)));
    ++symbols;
  }
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void slice_symbols(ComputeContext& c) {
  const auto known = slice_axes_known(c).value(), axes = slice_axes_at_run(c);
  std::vector<Expr> extents;
  for (size_t d = 0; d < axes.size(); ++d)
    if (!known[d].extent) extents.push_back(axes[d].extent);
  store_symbols(c, extents);
}
void compute_slice(ComputeContext& c) {
  const auto axes = slice_axes_at_run(c);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at;
        for (size_t d = 0; d < axes.size(); ++d) at.push_back(axes[d].start + i[d] * axes[d].step);
        return load(c.in(0), at);
      },
      "slice");
}

// --- gather
// ----------------------------------------------------------------------------------------------------------

Status infer_gather(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank());
  if (axis < 0 || axis >= x.rank())
    return c.error("axis " + std::to_string(c.attr_int("axis")) + " of " + to_string(x));
  std::vector<Expr> dims(x.dims.begin(), x.dims.begin() + axis);
  for (const Expr& d : c.type(1).dims) dims.push_back(d);
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void compute_gather(ComputeContext& c) {
  const int axis = c.axis(c.rank(0)), q = c.rank(1);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at(i.begin(), i.begin() + axis), where(i.begin() + axis, i.begin() + axis + q);
        at.push_back(wrapped_index(load(c.in(1), where), c.dim(0, axis)));
        at.insert(at.end(), i.begin() + axis + q, i.end());
        return load(c.in(0), at);
      },
      "gather");
}

std::vector<OpDef> shape_ops() {
  const TensorType x3{DType::kFloat32, {2, 5, 7}};
  const TensorType i1{DType::kInt64, {2}};
  return {
      {.name = "reshape",
       .summary =
           "the same elements in row-major order under another shape; -1: what is left, 0: as in x",
       .operands = {{"x"}, {"shape"}},
       .attributes = {{"allowzero", AttributeKind::kInt, "0 is an extent"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_reshape,
       .compute = compute_reshape,
       .compute_symbols = reshape_symbols,
       .example = {.inputs = {x3, i1}, .values = {{}, {14, -1}}},
       .source = kOnnx},
      {.name = "shape",
       .summary = "the extents of x",
       .operands = {{"x"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_shape,
       .compute = compute_shape,
       .example = {.inputs = {x3}},
       .source = kOnnx},
      {.name = "extents",
       .summary = "the values of expressions over symbols",
       .attributes = {{"extents", AttributeKind::kExtents, "one expression for each element"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_extents,
       .compute = compute_extents,
       .example = {.attributes = {{"extents", Extents{{Expr(3), Expr(5)}}}}},
       .source = kOnnx},
  };
}
std::vector<OpDef> copy_ops() {
  const TensorType x3{DType::kFloat32, {2, 5, 7}};
  const TensorType i1{DType::kInt64, {2}};
  const std::vector<AttributeDef> axis{{"axis", AttributeKind::kInt, "default 0"}};
  return {
      {.name = "transpose",
       .summary = "dimensions permuted: dimension d of y is dimension perm[d] of x",
       .operands = {{"x"}},
       .attributes = {{"perm", AttributeKind::kInts, "a permutation"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_transpose,
       .compute = compute_transpose,
       .example = {.inputs = {x3}, .attributes = {{"perm", std::vector<int64_t>{2, 0, 1}}}},
       .source = kOnnx},
      {.name = "expand",
       .summary = "x broadcast to a shape",
       .operands = {{"x"}, {"shape"}},
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_expand,
       .compute = compute_expand,
       .compute_symbols = expand_symbols,
       .example = {.inputs = {{DType::kFloat32, {5, 1}}, i1}, .values = {{}, {5, 3}}},
       .source = kOnnx},
      {.name = "concat",
       .summary = "operands joined along an axis",
       .operands = {{"x", OperandDef::kVariadic}},
       .attributes = axis,
       .fusion = FusionKind::kInjective,
       .infer_type = infer_concat,
       .compute = compute_concat,
       .example = {.inputs = {x3, x3}, .attributes = {{"axis", int64_t{1}}}},
       .source = kOnnx},
      {.name = "slice",
       .summary = "x[start : end : step] along axes",
       .operands = {{"x"},
                    {"starts"},
                    {"ends"},
                    {"axes", OperandDef::kOptional},
                    {"steps", OperandDef::kOptional}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_slice,
       .compute = compute_slice,
       .compute_symbols = slice_symbols,
       .example = {.inputs = {x3, i1, i1}, .values = {{}, {0, 1}, {2, -1}}},
       .source = kOnnx},
      {.name = "gather",
       .summary = "elements of x at indices along an axis",
       .operands = {{"x"}, {"indices"}},
       .attributes = axis,
       .fusion = FusionKind::kInjective,
       .infer_type = infer_gather,
       .compute = compute_gather,
       .example = {.inputs = {x3, {DType::kInt64, {3, 2}}},
                   .attributes = {{"axis", int64_t{1}}},
                   .values = {{}, {0, 4, -1, 2}}},
       .source = kOnnx},
  };
}

}  // namespace

const std::vector<OpDef>& movement_ops() {
  static const auto* const ops = [] {
    auto* all = new std::vector<OpDef>(shape_ops());
    for (OpDef& op : copy_ops()) all->push_back(std::move(op));
    return all;
  }();
  return *ops;
}

}  // namespace tilewright::ir
