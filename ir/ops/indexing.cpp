// Reading and writing at positions that are data.
//
// gather and scatter in ONNX's four forms. Indices are checked before (index_checks), so the loops
// wrap negative ones and read. A scatter is serial, as two updates may meet in one element and
// then, without a reduction, the later one wins.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indexing_gradient.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// Is there a dimension other than the axis where indices reach beyond x?
bool reaches_beyond(const NodeView& c, int axis) {
  for (int d = 0; d < c.rank(0); ++d)
    if (d != axis && !c.at_most(c.dim(1, d), c.dim(0, d),
                                "indices must reach no farther than x beside the axis"))
      return true;
  return false;
}

// The axis, of which every index is an element.
std::vector<IndexedDim> indexed_axis(const NodeView& c) {
  const int axis = c.axis(c.rank(0));
  return {{axis, c.dim(0, axis)}};
}
// The dimensions from `first` on, one for each place of an index tuple.
std::vector<IndexedDim> indexed_by_tuples(const NodeView& c, int first) {
  std::vector<IndexedDim> dims;
  for (int64_t k = 0; k < as_int(c.type(1).dims.back()).value_or(0); ++k, ++first)
    dims.push_back({first, c.dim(0, first)});
  return dims;
}

// --- gather_elements ---------------------------------------------------------------------------

Status infer_gather_elements(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank());
  if (axis < 0 || axis >= x.rank()) return c.error(axis_message(c.attr_int("axis"), x));
  if (c.rank(1) != x.rank())
    return c.error("x is " + to_string(x) + ", indices is " + to_string(c.type(1)) +
                   ": ranks differ");
  if (reaches_beyond(c, axis))
    return c.error("x is " + to_string(x) + ", indices is " + to_string(c.type(1)) +
                   ", larger in a dimension other than the axis");
  c.set_output(0, x.dtype, c.type(1).dims);
  return {};
}
void compute_gather_elements(ComputeContext& c) {
  const auto axis = static_cast<size_t>(c.axis(c.rank(0)));
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at = i;
        for (size_t d = 0; d < i.size(); ++d)
          at[d] = within(i[d], c.in(1)->shape[d], c.in(0)->shape[d]);
        at[axis] = wrapped_index(load(c.in(1), i), c.in(0)->shape[axis]);
        return load(c.in(0), at);
      },
      "gather_elements");
}

// --- gather_nd ---------------------------------------------------------------------------------

// Length of the index tuples: the last extent of operand 1.
std::optional<int64_t> tuple_length(const NodeView& c) {
  return c.rank(1) == 0 ? std::nullopt : as_int(c.type(1).dims.back());
}

Status infer_gather_nd(InferContext& c) {
  const auto &x = c.type(0), &indices = c.type(1);
  const int64_t batch = c.attr_int("batch_dims", 0);
  if (indices.rank() < 1)
    return c.error("indices is " + to_string(indices) + ", expected at least one dimension");
  auto k = tuple_length(c);
  if (!k) return c.needs_value("the last extent of indices is not known at compile time");
  if (batch < 0 || batch >= indices.rank() || *k + batch > x.rank())
    return c.error("x is " + to_string(x) + ", indices is " + to_string(indices) +
                   ", batch_dims is " + std::to_string(batch));
  for (size_t d = 0; d < static_cast<size_t>(batch); ++d)
    if (!c.agree(x.dims[d], indices.dims[d]))
      return c.error("x is " + to_string(x) + ", indices is " + to_string(indices) +
                     ": batch dimensions differ");
  std::vector<Expr> dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + batch + *k, x.dims.end());
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
void compute_gather_nd(ComputeContext& c) {
  const int64_t batch = c.attr_int("batch_dims", 0), k = *tuple_length(c), q = c.rank(1) - 1;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at, where(i.begin(), i.begin() + q);
        for (size_t d = 0; d < static_cast<size_t>(batch); ++d)
          at.push_back(within(i[d], c.in(1)->shape[d], c.in(0)->shape[d]));
        where.push_back(0);
        for (int64_t n = 0; n < k; ++n) {
          where.back() = n;
          at.push_back(
              wrapped_index(load(c.in(1), where), c.in(0)->shape[static_cast<size_t>(batch + n)]));
        }
        at.insert(at.end(), i.begin() + q, i.end());
        return load(c.in(0), at);
      },
      "gather_nd");
}

// --- scatter -----------------------------------------------------------------------------------

Status check_scatter(InferContext& c) {
  const std::string reduction = c.attr_string("reduction", "none");
  if (reduction != "none" && reduction != "add" && reduction != "mul" && reduction != "min" &&
      reduction != "max")
    return c.error("reduction is '" + reduction + "'");
  if (c.type(0).dtype != c.type(2).dtype)
    return c.error("x is " + to_string(c.type(0)) + ", updates is " + to_string(c.type(2)) +
                   ": types differ");
  c.set_output(0, c.type(0));
  return {};
}
Stmt update_element(const ComputeContext& c, const Axes& at, Expr value) {
  const std::string reduction = c.attr_string("reduction", "none");
  if (reduction == "none") return store(c.out(), at, value);
  const Combiner how = reduction == "add"   ? Combiner::kSum
                       : reduction == "mul" ? Combiner::kProduct
                       : reduction == "min" ? Combiner::kMin
                                            : Combiner::kMax;
  Expr old = load(c.out(), at);
  if (value.dtype() == DType::kBool && how != Combiner::kMin && how != Combiner::kMax)
    return store(c.out(), at,
                 combine(how == Combiner::kSum ? Combiner::kOr : Combiner::kAnd, old, value));
  return store(c.out(), at, combine(how, old, value));
}
void copy_data(ComputeContext& c) {
  c.b.compute(c.out(), [&](const Axes& i) { return load(c.in(0), i); }, "copy");
}

Status infer_scatter_elements(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank());
  if (axis < 0 || axis >= x.rank()) return c.error(axis_message(c.attr_int("axis"), x));
  if (c.rank(1) != x.rank() || c.rank(2) != x.rank())
    return c.error("x is " + to_string(x) + ", indices is " + to_string(c.type(1)) +
                   ", updates is " + to_string(c.type(2)) + ": ranks differ");
  bool fits = !reaches_beyond(c, axis);
  for (int d = 0; d < x.rank(); ++d) fits &= c.agree(c.dim(1, d), c.dim(2, d));
  if (!fits)
    return c.error("x is " + to_string(x) + ", indices is " + to_string(c.type(1)) +
                   ", updates is " + to_string(c.type(2)) + ": extents do not fit");
  return check_scatter(c);
}
void compute_scatter_elements(ComputeContext& c) {
  copy_data(c);
  const auto axis = static_cast<size_t>(c.axis(c.rank(0)));
  std::vector<Expr> extents;
  for (size_t d = 0; d < c.in(1)->shape.size(); ++d) {
    const Expr n = simplify(min(c.in(1)->shape[d], c.in(2)->shape[d]));
    extents.push_back(d == axis ? n : simplify(min(n, c.in(0)->shape[d])));
  }
  c.b.opaque(loop_nest(extents,
                       [&](const Axes& i) {
                         Axes at = i;
                         at[axis] = wrapped_index(load(c.in(1), i), c.in(0)->shape[axis]);
                         return update_element(c, at, load(c.in(2), i));
                       }),
             "scatter");
}

Status infer_scatter_nd(InferContext& c) {
  const auto &x = c.type(0), &indices = c.type(1), &updates = c.type(2);
  if (indices.rank() < 1)
    return c.error("indices is " + to_string(indices) + ", expected at least one dimension");
  auto k = tuple_length(c);
  if (!k) return c.needs_value("the last extent of indices is not known at compile time");
  if (*k > x.rank() || updates.rank() != indices.rank() - 1 + x.rank() - *k)
    return c.error("x is " + to_string(x) + ", indices is " + to_string(indices) + ", updates is " +
                   to_string(updates) + ": ranks do not fit");
  for (int d = 0; d < updates.rank(); ++d) {
    const int q = indices.rank() - 1;
    if (!c.agree(c.dim(2, d), d < q ? c.dim(1, d) : c.dim(0, static_cast<int>(*k) + d - q)))
      return c.error("x is " + to_string(x) + ", indices is " + to_string(indices) +
                     ", updates is " + to_string(updates) + ": extents do not fit");
  }
  return check_scatter(c);
}
void compute_scatter_nd(ComputeContext& c) {
  copy_data(c);
  const int64_t k = *tuple_length(c), q = c.rank(1) - 1;
  std::vector<Expr> extents;
  for (size_t d = 0; d < c.in(2)->shape.size(); ++d) {
    const size_t n = static_cast<size_t>(q);
    extents.push_back(
        simplify(min(c.in(2)->shape[d],
                     d < n ? c.in(1)->shape[d] : c.in(0)->shape[static_cast<size_t>(k) + d - n])));
  }
  c.b.opaque(loop_nest(extents,
                       [&](const Axes& i) {
                         Axes at, where(i.begin(), i.begin() + q);
                         where.push_back(0);
                         for (int64_t n = 0; n < k; ++n) {
                           where.back() = n;
                           at.push_back(wrapped_index(load(c.in(1), where),
                                                      c.in(0)->shape[static_cast<size_t>(n)]));
                         }
                         at.insert(at.end(), i.begin() + q, i.end());
                         return update_element(c, at, load(c.in(2), i));
                       }),
             "scatter");
}

// --- tensor_scatter ----------------------------------------------------------------------------

Status infer_tensor_scatter(InferContext& c) {
  const auto &x = c.type(0), &update = c.type(1);
  const int axis = c.axis(x.rank(), -2);
  if (axis <= 0 || axis >= x.rank()) return c.error(axis_message(c.attr_int("axis", -2), x));
  if (update.rank() != x.rank() || update.dtype != x.dtype)
    return c.error("cache is " + to_string(x) + ", update is " + to_string(update));
  for (int d = 0; d < x.rank(); ++d)
    if (d != axis && !c.agree(c.dim(0, d), c.dim(1, d)))
      return c.error("cache is " + to_string(x) + ", update is " + to_string(update));
  if (c.has(2) && (c.rank(2) != 1 || !c.agree(c.dim(2, 0), x.dims[0])))
    return c.error("start is " + to_string(c.type(2)) + ", expected one per batch");
  const std::string mode = c.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.error("mode is '" + mode + "'");
  c.set_output(0, x);
  return {};
}
// Each element of the result comes from the update when its position lies in the written window,
// else from the cache.
void compute_tensor_scatter(ComputeContext& c) {
  const auto axis = static_cast<size_t>(c.axis(c.rank(0), -2));
  const bool circular = c.attr_string("mode", "linear") == "circular";
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr start =
            c.has(2) ? cast(DType::kInt64, load(c.in(2), {within(i[0], c.dim(0, 0), c.dim(2, 0))}))
                     : Expr(0);
        Axes at;
        for (size_t d = 0; d < i.size(); ++d)
          at.push_back(within(i[d], c.in(0)->shape[d], c.in(1)->shape[d]));
        at[axis] = i[axis] - start;
        if (circular) at[axis] = floormod(at[axis], c.in(0)->shape[axis]);
        Expr inside = logical_and(at[axis] >= Expr(0), at[axis] < c.in(1)->shape[axis]);
        return select(inside, load(c.in(1), at), load(c.in(0), i));
      },
      "tensor_scatter");
}

void gradient_of_tensor_scatter(GradientContext& c) {
  c.add_transposed(0);
  c.add_transposed(1);
}

}  // namespace

const std::vector<OpDef>& indexing_ops() {
  static const TensorType x2{DType::kFloat32, {4, 5}}, i2{DType::kInt64, {2, 5}},
      u2{DType::kFloat32, {2, 5}};
  static const AttributeDef axis{"axis", AttributeKind::kInt, "default 0"};
  static const AttributeDef reduction{"reduction", AttributeKind::kString,
                                      "none (the last update wins), add, mul, min or max"};
  static const std::vector<OpDef> ops{
      {.name = "gather_elements",
       .summary = "x at indices along an axis, one index per result",
       .operands = {{"x"}, {"indices"}},
       .attributes = {axis},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_gather_elements,
       .compute = compute_gather_elements,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .index_operand = 1,
       .indexed_dims = indexed_axis,
       .example = {.inputs = {x2, i2}, .values = {{}, {0, 3, -1, 2}}},
       .source = kOnnx},
      {.name = "gather_nd",
       .summary = "elements or slices of x at index tuples",
       .operands = {{"x"}, {"indices"}},
       .attributes = {{"batch_dims", AttributeKind::kInt,
                       "leading dimensions that x and indices share; default 0"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_gather_nd,
       .compute = compute_gather_nd,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .index_operand = 1,
       .indexed_dims =
           [](const NodeView& c) {
             return indexed_by_tuples(c, static_cast<int>(c.attr_int("batch_dims", 0)));
           },
       .example = {.inputs = {{DType::kFloat32, {3, 4, 5}}, {DType::kInt64, {2, 2}}},
                   .values = {{}, {2, 3, 0, -1}}},
       .source = kOnnx},
      {.name = "scatter_elements",
       .summary = "x with updates written at indices along an axis",
       .operands = {{"x"}, {"indices"}, {"updates"}},
       .attributes = {axis, reduction},
       .infer_type = infer_scatter_elements,
       .compute = compute_scatter_elements,
       .gradient = gradient_of_scatter,
       .index_operand = 1,
       .indexed_dims = indexed_axis,
       .example = {.inputs = {x2, i2, u2},
                   .attributes = {{"reduction", std::string("add")}},
                   .values = {{}, {0, 3, -1, 2}}},
       .source = kOnnx},
      {.name = "scatter_nd",
       .summary = "x with elements or slices written at index tuples",
       .operands = {{"x"}, {"indices"}, {"updates"}},
       .attributes = {reduction},
       .infer_type = infer_scatter_nd,
       .compute = compute_scatter_nd,
       .gradient = gradient_of_scatter,
       .index_operand = 1,
       .indexed_dims = [](const NodeView& c) { return indexed_by_tuples(c, 0); },
       .example = {.inputs = {x2, {DType::kInt64, {2, 1}}, u2}, .values = {{}, {3, 0}}},
       .source = kOnnx},
      {.name = "tensor_scatter",
       .summary = "a cache with an update written at a start position of each batch",
       .operands = {{"cache"}, {"update"}, {"start", OperandDef::kOptional}},
       .attributes = {{"axis", AttributeKind::kInt, "default -2"},
                      {"mode", AttributeKind::kString, "linear or circular"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_tensor_scatter,
       .compute = compute_tensor_scatter,
       .gradient = gradient_of_tensor_scatter,
       .example = {.inputs = {{DType::kFloat32, {2, 6, 3}},
                              {DType::kFloat32, {2, 2, 3}},
                              {DType::kInt64, {2}}},
                   .attributes = {{"axis", int64_t{1}}},
                   .values = {{}, {}, {1, 4}}},
       .source = "https://onnx.ai/onnx/operators/onnx__TensorScatter.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
