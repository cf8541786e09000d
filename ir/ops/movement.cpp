// Operators that move elements: shapes, slices, joins, lookups.
#include <algorithm>

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kOnnx = "https://onnx.ai/onnx/operators/";

Expr product(const std::vector<Expr>& dims) {
  Expr n = 1;
  for (const Expr& d : dims) n = n * d;
  return simplify(n);
}

// --- reshape ---------------------------------------------------------------------------------------------------------

Status infer_reshape(InferContext& c) {
  auto wanted = c.known(1);
  if (!wanted) return c.unsupported("the shape operand is not known at compile time");
  std::vector<Expr> dims;
  int open = -1;
  const auto& x = c.type(0);
  for (size_t d = 0; d < wanted->size(); ++d) {
    Expr e = simplify(cast(DType::kInt64, (*wanted)[d]));
    if (is_zero(e) && !c.attr_int("allowzero")) {
      if (static_cast<int>(d) >= x.rank()) return c.error("extent 0 at dimension " + std::to_string(d) + " copies nothing: x is " + to_string(x));
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
    if (is_zero(rest)) dims[static_cast<size_t>(open)] = 0;
    else dims[static_cast<size_t>(open)] = simplify(floordiv(total, rest));
  }
  Expr made = product(dims);
  if (as_int(total) && as_int(made) && *as_int(total) != *as_int(made))
    return c.error("cannot make " + to_string(TensorType{x.dtype, dims}) + " of " + to_string(x) + ": " + to_string(made) + " elements instead of " + to_string(total));
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void compute_reshape(ComputeContext& c) {
  const auto &from = c.in(0)->shape, &to = c.out()->shape;
  c.b.compute(c.out(), [&](const Axes& i) {
    Expr flat = 0;
    for (size_t d = 0; d < to.size(); ++d) flat = flat * to[d] + i[d];
    Axes at(from.size());
    for (size_t d = from.size(); d-- > 0;) {
      at[d] = d == 0 ? flat : floormod(flat, from[d]);
      flat = floordiv(flat, from[d]);
    }
    return load(c.in(0), at);
  }, "reshape");
}

// --- shape -----------------------------------------------------------------------------------------------------------

Status infer_shape(InferContext& c) {
  c.set_output(0, DType::kInt64, {Expr(c.rank(0))});
  return {};
}
void compute_shape(ComputeContext& c) {
  c.b.compute(c.out(), [&](const Axes& i) {
    Expr e = 0;
    for (int d = c.rank(0); d-- > 0;) e = select(eq(i[0], Expr(d)), c.dim(0, d), e);
    return e;
  }, "shape");
}

// Extents that are no operand's, such as products of them.
Status infer_extents(InferContext& c) {
  c.set_output(0, DType::kInt64, {Expr(static_cast<int64_t>(c.attr_extents("extents").value_or(std::vector<Expr>{}).size()))});
  return {};
}
void compute_extents(ComputeContext& c) {
  const std::vector<Expr> extents = c.attr_extents("extents").value_or(std::vector<Expr>{});
  c.b.compute(c.out(), [&](const Axes& i) {
    Expr e = 0;
    for (size_t d = extents.size(); d-- > 0;) e = select(eq(i[0], Expr(static_cast<int64_t>(d))), extents[d], e);
    return e;
  }, "extents");
}

// --- transpose, expand -------------------------------------------------------------------------------------------------

Status infer_transpose(InferContext& c) {
  const auto& x = c.type(0);
  std::vector<int64_t> perm = c.attr_ints("perm");
  std::vector<bool> seen(x.dims.size());
  std::vector<Expr> dims;
  if (perm.size() != x.dims.size()) return c.error("perm of " + std::to_string(perm.size()) + " dimensions for " + to_string(x));
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank() || seen[static_cast<size_t>(p)]) return c.error("perm is no permutation of the dimensions of " + to_string(x));
    seen[static_cast<size_t>(p)] = true;
    dims.push_back(x.dims[static_cast<size_t>(p)]);
  }
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void compute_transpose(ComputeContext& c) {
  const auto perm = c.attr_ints("perm");
  c.b.compute(c.out(), [&](const Axes& i) {
    Axes at(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) at[static_cast<size_t>(perm[d])] = i[d];
    return load(c.in(0), at);
  }, "transpose");
}

Status infer_expand(InferContext& c) {
  auto shape = c.known(1);
  if (!shape) return c.unsupported("the shape operand is not known at compile time");
  std::vector<Expr> wanted;
  for (const Expr& e : *shape) wanted.push_back(simplify(cast(DType::kInt64, e)));
  auto dims = broadcast_dims(c.type(0).dims, wanted);
  if (!dims.ok()) return c.error(to_string(c.type(0)) + " to " + to_string(TensorType{c.type(0).dtype, wanted}) + ": " + dims.error().message);
  c.set_output(0, c.type(0).dtype, std::move(dims).value());
  return {};
}
void compute_expand(ComputeContext& c) {
  c.b.compute(c.out(), [&](const Axes& i) { return c.read(0, i); }, "expand");
}

// --- concat ----------------------------------------------------------------------------------------------------------

Status infer_concat(InferContext& c) {
  const int rank = c.rank(0), axis = c.axis(rank);
  if (axis < 0 || axis >= rank) return c.error("axis " + std::to_string(c.attr_int("axis")) + " of " + to_string(c.type(0)));
  std::vector<Expr> dims = c.type(0).dims;
  Expr total = 0;
  for (int k = 0; k < c.num_inputs(); ++k) {
    if (c.rank(k) != rank || c.type(k).dtype != c.type(0).dtype) return c.error("operands differ: " + to_string(c.type(0)) + " and " + to_string(c.type(k)));
    for (int d = 0; d < rank; ++d) {
      auto a = as_int(dims[static_cast<size_t>(d)]), b = as_int(c.dim(k, d));
      if (d != axis && a && b && *a != *b) return c.error("extents differ: " + to_string(c.type(0)) + " and " + to_string(c.type(k)) + " along axis " + std::to_string(axis));
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
    c.b.compute_at(c.out(), c.in(k)->shape, [&](const Axes& i) {
      Axes at = i;
      at[axis] = at[axis] + offset;
      return LoopsBuilder::Write{at, load(c.in(k), i)};
    }, "concat");
    offset = simplify(offset + c.in(k)->shape[axis]);
  }
}

// --- slice -----------------------------------------------------------------------------------------------------------

struct SliceAxis { Expr start, step, extent; };
// Per dimension, from operands starts, ends, axes, steps; numpy's rules, ends clamped.
Result<std::vector<SliceAxis>> slice_axes(const NodeView& c) {
  const auto& x = c.type(0);
  std::vector<SliceAxis> result;
  for (const Expr& d : x.dims) result.push_back({0, 1, d});
  auto starts = c.known(1), ends = c.known(2);
  if (!starts || !ends) return unsupported("starts and ends are not known at compile time");
  std::vector<int64_t> axes, steps(starts->size(), 1);
  if (c.has(3)) {
    auto a = c.known_ints(3);
    if (!a) return unsupported("axes are not known at compile time");
    axes = *a;
  } else {
    for (size_t d = 0; d < starts->size(); ++d) axes.push_back(static_cast<int64_t>(d));
  }
  if (c.has(4)) {
    auto s = c.known_ints(4);
    if (!s) return unsupported("steps are not known at compile time");
    steps = *s;
  }
  if (axes.size() != starts->size() || ends->size() != starts->size() || steps.size() != starts->size())
    return invalid("starts, ends, axes and steps differ in length");
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t a = axes[k] < 0 ? axes[k] + x.rank() : axes[k];
    if (a < 0 || a >= x.rank()) return invalid("axis " + std::to_string(axes[k]) + " of " + to_string(x));
    if (steps[k] == 0) return invalid("step 0");
    const Expr extent = x.dims[static_cast<size_t>(a)];
    auto position = [&](const Expr& value) {
      Expr v = simplify(cast(DType::kInt64, value));
      if (auto i = as_int(v)) return *i < 0 ? (*i < -(int64_t{1} << 40) ? Expr(-1) : Expr(*i) + extent) : v;
      // A symbolic value may turn out negative only when it is a difference.
      return interval(v).low.value_or(-1) >= 0 ? v : simplify(select(v < Expr(0), v + extent, v));
    };
    Expr start = position((*starts)[k]), end = position((*ends)[k]);
    Expr low = steps[k] > 0 ? Expr(0) : Expr(-1), high = steps[k] > 0 ? extent : extent - 1;
    if (steps[k] < 0) start = clamp(start, 0, high);
    else start = clamp(start, low, high);
    end = clamp(end, low, high);
    Expr count = steps[k] > 0 ? ceildiv(end - start, steps[k]) : ceildiv(start - end, -steps[k]);
    result[static_cast<size_t>(a)] = {simplify(start), steps[k], simplify(max(count, 0))};
  }
  return result;
}
Status infer_slice(InferContext& c) {
  auto axes = slice_axes(c);
  if (!axes.ok()) return axes.error().kind == ErrorKind::kUnsupported ? c.unsupported(axes.error().message) : c.error(axes.error().message);
  std::vector<Expr> dims;
  for (const SliceAxis& a : *axes) dims.push_back(a.extent);
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_slice(ComputeContext& c) {
  const auto axes = slice_axes(c).value();
  c.b.compute(c.out(), [&](const Axes& i) {
    Axes at;
    for (size_t d = 0; d < axes.size(); ++d) at.push_back(axes[d].start + i[d] * axes[d].step);
    return load(c.in(0), at);
  }, "slice");
}

// --- gather ----------------------------------------------------------------------------------------------------------

Status infer_gather(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank());
  if (axis < 0 || axis >= x.rank()) return c.error("axis " + std::to_string(c.attr_int("axis")) + " of " + to_string(x));
  std::vector<Expr> dims(x.dims.begin(), x.dims.begin() + axis);
  for (const Expr& d : c.type(1).dims) dims.push_back(d);
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void compute_gather(ComputeContext& c) {
  const int axis = c.axis(c.rank(0)), q = c.rank(1);
  c.b.compute(c.out(), [&](const Axes& i) {
    Axes at(i.begin(), i.begin() + axis), where(i.begin() + axis, i.begin() + axis + q);
    at.push_back(wrapped_index(load(c.in(1), where), c.dim(0, axis)));
    at.insert(at.end(), i.begin() + axis + q, i.end());
    return load(c.in(0), at);
  }, "gather");
}

}  // namespace

const std::vector<OpDef>& movement_ops() {
  static const TensorType x3{DType::kFloat32, {2, 5, 7}};
  static const TensorType i1{DType::kInt64, {2}};
  static const std::vector<AttributeDef> axis{{"axis", AttributeKind::kInt, "default 0"}};
  static const std::vector<OpDef> ops{
      {.name = "reshape", .summary = "the same elements in row-major order under another shape; -1: what is left, 0: as in x",
       .operands = {{"x"}, {"shape"}}, .attributes = {{"allowzero", AttributeKind::kInt, "0 is an extent"}}, .fusion = FusionKind::kInjective,
       .infer_type = infer_reshape, .compute = compute_reshape, .example = {.inputs = {x3, i1}, .values = {{}, {14, -1}}}, .source = kOnnx},
      {.name = "shape", .summary = "the extents of x", .operands = {{"x"}}, .fusion = FusionKind::kInjective, .infer_type = infer_shape,
       .compute = compute_shape, .example = {.inputs = {x3}}, .source = kOnnx},
      {.name = "extents", .summary = "the values of expressions over symbols", .attributes = {{"extents", AttributeKind::kExtents, "one expression for each element"}},
       .fusion = FusionKind::kInjective, .infer_type = infer_extents, .compute = compute_extents,
       .example = {.attributes = {{"extents", Extents{{Expr(3), Expr(5)}}}}}, .source = kOnnx},
      {.name = "transpose", .summary = "dimensions permuted: dimension d of y is dimension perm[d] of x", .operands = {{"x"}},
       .attributes = {{"perm", AttributeKind::kInts, "a permutation"}}, .fusion = FusionKind::kInjective, .infer_type = infer_transpose,
       .compute = compute_transpose, .example = {.inputs = {x3}, .attributes = {{"perm", std::vector<int64_t>{2, 0, 1}}}}, .source = kOnnx},
      {.name = "expand", .summary = "x broadcast to a shape", .operands = {{"x"}, {"shape"}}, .fusion = FusionKind::kPointwise,
       .infer_type = infer_expand, .compute = compute_expand, .example = {.inputs = {{DType::kFloat32, {5, 1}}, i1}, .values = {{}, {5, 3}}}, .source = kOnnx},
      {.name = "concat", .summary = "operands joined along an axis", .operands = {{"x", OperandDef::kVariadic}}, .attributes = axis,
       .fusion = FusionKind::kInjective, .infer_type = infer_concat, .compute = compute_concat,
       .example = {.inputs = {x3, x3}, .attributes = {{"axis", int64_t{1}}}}, .source = kOnnx},
      {.name = "slice", .summary = "x[start : end : step] along axes",
       .operands = {{"x"}, {"starts"}, {"ends"}, {"axes", OperandDef::kOptional}, {"steps", OperandDef::kOptional}}, .fusion = FusionKind::kInjective,
       .infer_type = infer_slice, .compute = compute_slice, .example = {.inputs = {x3, i1, i1}, .values = {{}, {0, 1}, {2, -1}}}, .source = kOnnx},
      {.name = "gather", .summary = "elements of x at indices along an axis", .operands = {{"x"}, {"indices"}}, .attributes = axis,
       .fusion = FusionKind::kInjective, .infer_type = infer_gather, .compute = compute_gather,
       .example = {.inputs = {x3, {DType::kInt64, {3, 2}}}, .attributes = {{"axis", int64_t{1}}}, .values = {{}, {0, 4, -1, 2}}}, .source = kOnnx},
  };
  return ops;
}

}  // namespace tilewright::ir
