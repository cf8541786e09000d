// Operators that move elements: permutations, broadcasts, joins, lookups.
#include "ir/formula/gradient.h"
#include "ir/graph/broadcast.h"
#include "ir/graph/compute.h"
#include "ir/loops/linear.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/run_extents.h"
#include "ir/ops/slicing.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

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

void gradient_of_transpose(GradientContext& c) {
  const std::vector<int64_t> perm = c.view().attr_ints("perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  c.add(0, {c, c.transpose(c.dy().id, inverse)});
}

// Number of dimensions of x behind the first `d` of the result; below 0: x has none there.
int expand_source(const NodeView& c, int d) {
  return d - static_cast<int>(as_int(c.dim(1, 0)).value_or(0)) + c.rank(0);
}
Status infer_expand_at_run(InferContext& c) {
  if (c.rank(1) == 1 && as_int(c.dim(1, 0)).value_or(c.rank(0)) < c.rank(0))
    return c.needs_value("a shape operand of lower rank than x is not known at compile time");
  return infer_shape_at_run(c, [&](int d, const Expr& symbol) {
    const int s = expand_source(c, d);
    const bool known = s >= 0 && as_int(c.dim(0, s)).value_or(1) != 1;
    return known && c.broadcasts(c.dim(0, s), symbol) ? c.dim(0, s) : symbol;
  });
}
void expand_symbols(ComputeContext& c) {
  std::vector<Expr> dims;
  for (int d = 0; d < static_cast<int>(c.node().defined_symbols.size()); ++d) {
    const Expr wanted = c.int_element(1, d);
    const int s = expand_source(c, d);
    const Expr have = s >= 0 ? c.dim(0, s) : Expr(1);
    // A known extent is the result's; that it agrees is required of the symbol (infer_expand_at_run).
    if (as_int(have).value_or(1) != 1) {
      dims.push_back(wanted);
      continue;
    }
    const Expr agrees = logical_or(eq(wanted, Expr(1)), eq(wanted, have));
    dims.push_back(select(eq(have, Expr(1)), wanted, select(agrees, have, Expr(-1))));
  }
  store_symbols(c, dims);
}
Status infer_expand(InferContext& c) {
  auto shape = c.known(1);
  if (!shape) return infer_expand_at_run(c);
  std::vector<Expr> dims;
  for (const Expr& e : *shape) dims.push_back(simplify(cast(DType::kInt64, e)));
  const TensorType wanted{c.type(0).dtype, dims};
  if (dims.size() < static_cast<size_t>(c.rank(0)))
    dims.insert(dims.begin(), static_cast<size_t>(c.rank(0)) - dims.size(), Expr(1));
  for (int d = 0; d < c.rank(0); ++d) {
    const Expr& from = c.dim(0, d);
    Expr& to = dims[dims.size() - static_cast<size_t>(c.rank(0) - d)];
    if (!c.broadcasts(from, to))
      return c.error(to_string(c.type(0)) + " to " + to_string(wanted) + ": extents " +
                     to_text(from) + " and " + to_text(to) + " do not broadcast");
    to = *broadcast_extent(from, to);
  }
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
// Returns the element of x that index i of the result repeats. If an extent may be 1, a select picks index 0
// at run time; along the last dimension it picks between two loads, so that each has a known stride.
Expr repeated_element(const Buffer& x, const std::vector<Expr>& to, const Axes& i) {
  Axes at, once;
  Expr is_once;
  for (size_t d = 0; d < x->shape.size(); ++d) {
    const size_t k = d + to.size() - x->shape.size();
    const Expr is_one_here = eq(x->shape[d], Expr(1));
    const bool open = !as_int(x->shape[d]) && may_repeat(x->shape[d], to[k]);
    const bool last = d + 1 == x->shape.size();
    const Expr index = is_one(x->shape[d]) ? Expr(0) : i[k];
    at.push_back(open && !last ? select(is_one_here, Expr(0), index) : index);
    once.push_back(last ? Expr(0) : at.back());
    if (open && last) is_once = is_one_here;
  }
  return is_once ? select(is_once, load(x, once), load(x, at)) : load(x, at);
}
void compute_expand(ComputeContext& c) {
  c.b.compute(
      c.out(), [&](const Axes& i) { return repeated_element(c.in(0), c.out()->shape, i); },
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
      const auto b = as_int(c.dim(k, d));
      if (d != axis && !c.agree(dims[static_cast<size_t>(d)], c.dim(k, d)))
        return c.error("extents differ: " + to_string(c.type(0)) + " and " + to_string(c.type(k)) +
                       " along axis " + std::to_string(axis));
      if (d != axis && b) dims[static_cast<size_t>(d)] = Expr(*b);
    }
    if (c.attr_int("interleave") && !can_prove_equal(c.dim(k, axis), c.dim(0, axis)))
      return c.error("extents differ: " + to_string(c.type(0)) + " and " + to_string(c.type(k)) +
                     " along the interleaved axis " + std::to_string(axis));
    total = total + c.dim(k, axis);
  }
  dims[static_cast<size_t>(axis)] = simplify(total);
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_concat(ComputeContext& c) {
  const auto axis = static_cast<size_t>(c.axis(c.rank(0)));
  const bool interleave = c.attr_int("interleave");
  Expr offset = 0;
  for (int k = 0; k < c.num_inputs(); ++k) {
    if (!c.is_in_place(k))
      c.b.compute_at(
          c.out(), c.in(k)->shape,
          [&](const Axes& i) {
            Axes at = i;
            at[axis] = interleave ? at[axis] * Expr(c.num_inputs()) + Expr(k) : at[axis] + offset;
            return LoopsBuilder::Write{at, load(c.in(k), i)};
          },
          "concat");
    offset = simplify(offset + c.dim(k, static_cast<int>(axis)));
  }
}

// To each operand its part.
void gradient_of_concat(GradientContext& c) {
  const NodeView node = c.view();
  const int axis = node.axis(node.rank(0)), count = node.num_inputs();
  const bool interleave = node.attr_int("interleave") != 0;
  const int64_t step = interleave ? count : 1;
  Expr start = 0;
  for (int k = 0; k < count; ++k) {
    const Expr end =
        simplify(interleave ? node.dim(0, axis) * Expr(count) : start + node.dim(k, axis));
    c.add(k, c.dy().make("slice", {c.dy().id, c.dims({start}), c.dims({end}), c.ints({axis}),
                                   c.ints({step})}));
    start = interleave ? Expr(k + 1) : end;
  }
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
std::vector<IndexedDim> gathered_dim(const NodeView& c) {
  if (c.attr_int("clamps", 0)) return {};
  const int axis = c.axis(c.rank(0));
  return {{axis, c.dim(0, axis)}};
}
void compute_gather(ComputeContext& c) {
  const int axis = c.axis(c.rank(0)), q = c.rank(1);
  const auto index = c.attr_int("clamps", 0) ? clamped_index : wrapped_index;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at(i.begin(), i.begin() + axis), where(i.begin() + axis, i.begin() + axis + q);
        at.push_back(index(load(c.in(1), where), c.dim(0, axis)));
        at.insert(at.end(), i.begin() + axis + q, i.end());
        return load(c.in(0), at);
      },
      "gather");
}

}  // namespace

const std::vector<OpDef>& movement_ops() {
  const TensorType x3{DType::kFloat32, {2, 5, 7}};
  const TensorType i1{DType::kInt64, {2}};
  const std::vector<AttributeDef> axis{{"axis", AttributeKind::kInt, "default 0"}};
  static const auto* const ops = new std::vector<OpDef>{
      {.name = "transpose",
       .summary = "dimensions permuted: dimension d of y is dimension perm[d] of x",
       .operands = {{"x"}},
       .attributes = {{"perm", AttributeKind::kInts, "a permutation"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_transpose,
       .compute = compute_transpose,
       .gradient = gradient_of_transpose,
       .example = {.inputs = {x3}, .attributes = {{"perm", std::vector<int64_t>{2, 0, 1}}}},
       .source = kOnnx},
      {.name = "expand",
       .summary = "x broadcast to a shape",
       .operands = {{"x"}, {"shape"}},
       .fusion = FusionKind::kPointwise,
       .retypes = true,
       .infer_type = infer_expand,
       .compute = compute_expand,
       .gradient = [](GradientContext& c) { c.add(0, c.dy()); },
       .compute_symbols = expand_symbols,
       .symbols_rule = "x does not broadcast to the shape asked for",
       .example = {.inputs = {{DType::kFloat32, {5, 1}}, i1}, .values = {{}, {5, 3}}},
       .source = kOnnx},
      {.name = "concat",
       .summary = "operands joined along an axis",
       .operands = {{"x", OperandDef::kVariadic}},
       .attributes = {axis[0],
                      {"interleave", AttributeKind::kInt,
                       "default 0: one after the other; 1: element k of operand i of n, all of one "
                       "extent, is element k * n + i"}},
       .fusion = FusionKind::kInjective,
       .channels = Channels::kAlong,
       .reads_stored = true,
       .has_parts = true,
       .infer_type = infer_concat,
       .compute = compute_concat,
       .gradient = gradient_of_concat,
       .example = {.inputs = {x3, x3}, .attributes = {{"axis", int64_t{1}}}},
       .source = kOnnx},
      slice_op(),
      {.name = "gather",
       .summary = "elements of x at indices along an axis",
       .operands = {{"x"}, {"indices"}},
       .attributes =
           {axis[0],
            {"clamps", AttributeKind::kInt,
             "default 0; 1: indices out of range are taken as the nearest ones, and are no "
             "error"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_gather,
       .compute = compute_gather,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .index_operand = 1,
       .indexed_dims = gathered_dim,
       .example = {.inputs = {x3, {DType::kInt64, {3, 2}}},
                   .attributes = {{"axis", int64_t{1}}},
                   .values = {{}, {0, 4, -1, 2}}},
       .source = kOnnx},
  };
  return *ops;
}

}  // namespace tilewright::ir
