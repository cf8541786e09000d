// Operators on shapes: another shape for the same elements, and extents as values.
#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/run_extents.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

Expr product(const std::vector<Expr>& dims) {
  Expr n = 1;
  for (const Expr& d : dims) n = n * d;
  return simplify(n);
}

// What is left of `total` elements for one extent beside `rest`: nothing where the run finds that to
// be 0.
Expr extent_left(const Expr& total, const Expr& rest) {
  const Expr quotient = simplify(floordiv(total, rest));
  bool by_symbols = false;
  for_each_expr(quotient, [&](const Expr& e) {
    const auto* division = e.as<Binary>();
    by_symbols |= division && division->op == BinaryOp::kFloorDiv && !as_int(division->b);
  });
  return by_symbols && !can_prove(rest >= Expr(1)) ? simplify(floordiv(total, max(rest, 1)))
                                                   : quotient;
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
      dims[static_cast<size_t>(open)] = extent_left(total, rest);
  }
  Expr made = product(dims);
  for (int64_t d : c.attr_ints("not_one"))
    if (!c.at_most(select(eq(x.dims[static_cast<size_t>(d)], Expr(1)), Expr(1), Expr(0)), 0,
                   "without axes, a dimension that the run finds to be 1 would change the rank"))
      return c.error("dimension " + std::to_string(d) + " of " + to_string(x) + " is 1");
  if (!c.agree(total, made))
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

}  // namespace

const std::vector<OpDef>& shaping_ops() {
  const TensorType x3{DType::kFloat32, {2, 5, 7}};
  const TensorType i1{DType::kInt64, {2}};
  static const auto* const ops = new std::vector<OpDef>{
      {.name = "reshape",
       .summary =
           "the same elements in row-major order under another shape; -1: what is left, 0: as in x",
       .operands = {{"x"}, {"shape"}},
       .attributes = {{"allowzero", AttributeKind::kInt, "0 is an extent"},
                      {"not_one", AttributeKind::kInts,
                       "dimensions of x that must not have the extent 1"}},
       .fusion = FusionKind::kInjective,
       .retypes = true,
       .infer_type = infer_reshape,
       .compute = compute_reshape,
       .gradient =
           [](GradientContext& c) { c.add(0, {c, c.reshape(c.dy().id, c.type(c.in(0).id).dims)}); },
       .compute_symbols = reshape_symbols,
       .symbols_rule = "the shape asked for has another number of elements",
       .example = {.inputs = {x3, i1}, .values = {{}, {14, -1}}},
       .source = kOnnx},
      {.name = "shape",
       .summary = "the extents of x",
       .operands = {{"x"}},
       .fusion = FusionKind::kInjective,
       .of_types = true,
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
  return *ops;
}

}  // namespace tilewright::ir
