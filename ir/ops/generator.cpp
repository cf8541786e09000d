// Tensors made from positions: ranges, masks, one-hot codes, grids.
#include <cmath>

#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

// --- range -------------------------------------------------------------------------------------

std::optional<double> known_number(const NodeView& c, int operand) {
  auto e = c.known(operand);
  if (!e || e->size() != 1) return std::nullopt;
  if (const auto* f = (*e)[0].as<FloatImm>()) return f->value;
  if (auto i = as_int((*e)[0])) return static_cast<double>(*i);
  return std::nullopt;
}
// Returns the extent of a range whose length is a constant.
Result<Expr> checked_length(double n) {
  if (n <= 0x1p31) return Expr(static_cast<int64_t>(std::max(0.0, n)));  // NaN is not
  return invalid("the range has " + std::to_string(n) + " elements, expected at most 2^31");
}
// Returns the number of elements if it is known at compile time, and null if not.
Result<Expr> range_extent(const NodeView& c) {
  constexpr int64_t kLongest = int64_t{1}
                               << 40;  // of steps between numbers that follow from extents
  if (is_float(c.type(0).dtype)) {
    auto start = known_number(c, 0), limit = known_number(c, 1), delta = known_number(c, 2);
    if (!start || !limit || !delta || *delta == 0) return Expr(nullptr);
    return checked_length(std::ceil((*limit - *start) / *delta));
  }
  auto start = known_dims(c, 0), limit = known_dims(c, 1);
  auto delta = c.known_ints(2);
  if (!start || !limit || !delta || (*delta)[0] == 0) return Expr(nullptr);
  if (const auto from = as_int((*start)[0]), to = as_int((*limit)[0]); from && to) {
    const __int128 step = (*delta)[0], distance = static_cast<__int128>(*to) - *from;
    const __int128 n = distance / step + (distance % step != 0 && (distance < 0) == (step < 0));
    return checked_length(static_cast<double>(n));
  }
  const int64_t step = std::clamp((*delta)[0], -kLongest, kLongest);
  const Expr distance = step > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  return simplify(max(ceildiv(distance, std::abs(step)), 0));
}
Status infer_range(InferContext& c) {
  const DType t = c.type(0).dtype;
  for (int k = 0; k < 3; ++k) {
    if (c.rank(k) > 1 || (c.rank(k) == 1 && !c.agree(c.dim(k, 0), 1)) || c.type(k).dtype != t)
      return c.error("start, limit and delta must be scalars of one type, found " +
                     to_string(c.type(k)));
  }
  if (t == DType::kBool) return c.error("start is " + to_string(c.type(0)));
  if (known_number(c, 2) == 0.0) return c.error("delta is 0");
  auto length = range_extent(c);
  if (!length.ok()) return c.at_node(length.error());
  const Expr& n = *length;
  c.set_output(0, t, {n ? n : Expr(c.data_dependent_symbol(0, "length"))});
  return {};
}
Expr scalar_operand(const ComputeContext& c, int k) { return load(c.in(k), zeros(c.rank(k))); }

void compute_range(ComputeContext& c) {
  const DType t = c.out()->dtype;
  const DType wide = accumulator(t);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        return cast(t, cast(wide, scalar_operand(c, 0)) +
                           cast(wide, i[0]) * cast(wide, scalar_operand(c, 2)));
      },
      "range");
}
void compute_range_length(ComputeContext& c) {
  Expr start = scalar_operand(c, 0), limit = scalar_operand(c, 1), delta = scalar_operand(c, 2), n;
  if (is_float(start.dtype())) {
    auto wide = [](const Expr& e) { return cast(DType::kFloat64, e); };
    n = cast(DType::kInt64, unary(UnaryOp::kCeil, (wide(limit) - wide(start)) / wide(delta)));
  } else {
    auto wide = [](const Expr& e) { return cast(DType::kInt64, e); };
    Expr d = wide(delta), distance = wide(limit) - wide(start);
    n = Expr(0) - floordiv(Expr(0) - distance, select(eq(d, Expr(0)), Expr(1), d));
  }
  n = select(eq(delta, constant(0, delta.dtype())), Expr(-1), max(n, 0));
  c.b.opaque(store(c.out(), {Expr(0)}, n), "length");
}

// By start and delta; how many elements there are is no matter of a derivative.
void gradient_of_range(GradientContext& c) {
  const V dy = c.dy();
  c.add(0, dy);
  const V number = {c, c.op("range", {c.ints({0}), c.dims(c.type(dy.id).dims), c.ints({1})})};
  c.add(2, dy * number.to(dy.dtype()));
}

// --- eye_like, trilu ---------------------------------------------------------------------------

Status infer_eye_like(InferContext& c) {
  if (c.rank(0) != 2) return c.error("x is " + to_string(c.type(0)) + ", expected a matrix");
  auto to = c.has_attribute("to") ? dtype_from_name(c.attr_string("to")) : c.type(0).dtype;
  if (!to) return c.unsupported("element type '" + c.attr_string("to") + "'");
  c.set_output(0, *to, c.type(0).dims);
  return {};
}
void compute_eye_like(ComputeContext& c) {
  const DType t = c.out()->dtype;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        return select(eq(i[1] - i[0], Expr(c.attr_int("k"))), constant(1, t), constant(0, t));
      },
      "eye_like");
}
Status infer_trilu(InferContext& c) {
  if (c.rank(0) < 2)
    return c.error("x is " + to_string(c.type(0)) + ", expected at least two dimensions");
  c.set_output(0, c.type(0));
  return {};
}
void compute_trilu(ComputeContext& c) {
  const bool upper = c.attr_int("upper", 1) != 0;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr k = c.has(1) ? cast(DType::kInt64, scalar_operand(c, 1)) : Expr(0);
        Expr distance = i[i.size() - 1] - i[i.size() - 2];
        return select(upper ? distance >= k : distance <= k, load(c.in(0), i),
                      constant(0, c.out()->dtype));
      },
      "trilu");
}

// --- one_hot -----------------------------------------------------------------------------------

Status infer_one_hot(InferContext& c) {
  auto depth = c.known(1);
  if (!depth || depth->size() != 1) return c.needs_value("depth is not known at compile time");
  Expr extent = simplify(cast(DType::kInt64, (*depth)[0]));
  if (const auto* f = (*depth)[0].as<FloatImm>()) extent = static_cast<int64_t>(f->value);
  const int rank = c.rank(0) + 1, axis = c.axis(rank, -1);
  if (axis < 0 || axis >= rank) return c.error(axis_message(c.attr_int("axis", -1), c.type(0)));
  if (c.rank(2) != 1 || !c.agree(c.dim(2, 0), 2))
    return c.error("values is " + to_string(c.type(2)) + ", expected off and on");
  if (!c.at_most(0, extent, "depth must be at least 0"))
    return c.error("depth is " + to_text(extent));
  std::vector<Expr> dims = c.type(0).dims;
  dims.insert(dims.begin() + axis, extent);
  c.set_output(0, c.type(2).dtype, std::move(dims));
  return {};
}
void compute_one_hot(ComputeContext& c) {
  const auto axis = c.axis(c.rank(0) + 1, -1);
  const Expr depth = c.out()->shape[static_cast<size_t>(axis)];
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at = i;
        at.erase(at.begin() + axis);
        Expr hot = cast(DType::kInt64, load(c.in(0), at));
        hot = select(hot < Expr(0), hot + depth, hot);
        return select(eq(hot, i[static_cast<size_t>(axis)]), load(c.in(2), {Expr(1)}),
                      load(c.in(2), {Expr(0)}));
      },
      "one_hot");
}

// --- affine_grid -------------------------------------------------------------------------------

Status infer_affine_grid(InferContext& c) {
  auto size = known_dims(c, 1);
  if (!size) return c.needs_value("size is not known at compile time");
  const size_t n = size->size() - 2;
  if (size->size() < 4 || size->size() > 5 || c.rank(0) != 3 || !c.agree(c.dim(0, 0), (*size)[0]) ||
      !c.agree(c.dim(0, 1), static_cast<int64_t>(n)) ||
      !c.agree(c.dim(0, 2), static_cast<int64_t>(n + 1)))
    return c.error("theta is " + to_string(c.type(0)) + ", size has " +
                   std::to_string(size->size()) + " elements");
  std::vector<Expr> dims{(*size)[0]};
  dims.insert(dims.end(), size->begin() + 2, size->end());
  dims.push_back(static_cast<int64_t>(n));
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
// y[n, spatial..., r] = sum over k of theta[n, r, k] * p[k]: p is the position in [-1, 1], x first,
// then 1.
void compute_affine_grid(ComputeContext& c) {
  const bool corners = c.attr_int("align_corners") != 0;
  const DType t = c.out()->dtype, wide = accumulator(t);
  const size_t n = static_cast<size_t>(c.out()->rank()) - 2;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        auto theta = [&](size_t k) {
          return cast(wide, load(c.in(0), {i[0], i[n + 1], Expr(static_cast<int64_t>(k))}));
        };
        Expr sum = theta(n);
        for (size_t k = 0; k < n; ++k) {
          const Expr &axis = i[n - k], extent = c.out()->shape[n - k];
          Expr two = constant(2, wide), one = constant(1, wide);
          Expr p = corners ? cast(wide, axis) * two / cast(wide, max(extent - 1, 1)) - one
                           : (cast(wide, axis) * two + one) / cast(wide, extent) - one;
          sum = sum + theta(k) * p;
        }
        return cast(t, sum);
      },
      "affine_grid");
}

}  // namespace

const std::vector<OpDef>& generator_ops() {
  static const TensorType i0{DType::kInt64, {}}, i1{DType::kInt64, {1}};
  static const std::vector<OpDef> ops{
      {.name = "range",
       .summary = "start, start + delta, ... up to limit, which is left out",
       .operands = {{"start"}, {"limit"}, {"delta"}},
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_range,
       .compute = compute_range,
       .gradient = gradient_of_range,
       .compute_symbols = compute_range_length,
       .symbols_rule = "delta is 0",
       .example = {.inputs = {i0, i0, i0}, .values = {{3}, {17}, {4}}},
       .source = kOnnx},
      {.name = "eye_like",
       .summary = "ones on diagonal k of a matrix shaped like x",
       .operands = {{"x"}},
       .attributes = {{"k", AttributeKind::kInt, "default 0"},
                      {"to", AttributeKind::kString, "element type; absent: of x"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_eye_like,
       .compute = compute_eye_like,
       .gradient = [](GradientContext&) {},  // of the shape alone
       .example = {.inputs = {{DType::kFloat32, {4, 5}}}, .attributes = {{"k", int64_t{1}}}},
       .source = kOnnx},
      {.name = "trilu",
       .summary = "the upper or lower triangle of matrices, zero elsewhere",
       .operands = {{"x"}, {"k", OperandDef::kOptional}},
       .attributes = {{"upper", AttributeKind::kInt, "default 1"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_trilu,
       .compute = compute_trilu,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {2, 4, 5}}, i0}, .values = {{}, {1}}},
       .source = kOnnx},
      {.name = "one_hot",
       .summary = "values[1] where the new axis equals the index, else values[0]",
       .operands = {{"indices"}, {"depth"}, {"values"}},
       .attributes = {{"axis", AttributeKind::kInt, "of the result; default -1"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_one_hot,
       .compute = compute_one_hot,
       .gradient = [](GradientContext& c) { c.add_transposed(2); },
       .example = {.inputs = {{DType::kInt64, {3}}, i1, {DType::kFloat32, {2}}},
                   .values = {{1, -1, 9}, {5}, {0, 1}}},
       .source = kOnnx},
      {.name = "affine_grid",
       .summary = "sampling positions of an affine map",
       .operands = {{"theta"}, {"size"}},
       .attributes = {{"align_corners", AttributeKind::kInt, "default 0"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_affine_grid,
       .compute = compute_affine_grid,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {2, 2, 3}}, {DType::kInt64, {4}}},
                   .values = {{}, {2, 3, 4, 5}}},
       .source = "https://onnx.ai/onnx/operators/onnx__AffineGrid.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
