// Shapes and the movement of elements.
#include <algorithm>
#include <array>
#include <numeric>

#include "frontends/onnx/importers.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {

using ir::Expr;
using ir::ValueId;

ValueId must_add_up(NodeImport& n, ValueId x, int axis, const std::vector<int64_t>& parts) {
  constexpr int64_t kMost = int64_t{1} << 31;  // sums of these do not overflow
  if (std::any_of(parts.begin(), parts.end(),
                  [](int64_t part) { return part < 0 || part > kMost; }))
    n.fail("parts are " + to_string(parts) + ", expected 0 to 2^31");
  const int64_t total = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  const auto extent = ir::as_int(n.dim(x, axis));
  n.require_equal(total, n.dim(x, axis),
                  "the parts must add up to dimension " + std::to_string(axis));
  if (extent) return x;
  std::vector<Expr> dims = n.type(x).dims;
  dims[static_cast<size_t>(axis)] = Expr(total);
  return n.reshape(x, dims);
}

namespace {

// The shape may be known, follow from extents, or be found by the run; its length must be known.
void reshape(NodeImport& n) {
  n.out(0, n.op("reshape", {n.required(0), n.required(1)},
                {{"allowzero", n.int_attr("allowzero", 0)}}));
}
// Two dimensions: the product of those before the axis, and of the others.
void flatten(NodeImport& n) {
  ValueId x = n.required(0);
  const int rank = n.rank(x);
  int64_t axis = n.int_attr("axis", 1);
  if (axis < -rank || axis > rank)
    n.fail("axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  if (axis < 0) axis += rank;
  Expr rows = 1, columns = 1;
  for (int d = 0; d < rank; ++d)
    (d < axis ? rows : columns) = (d < axis ? rows : columns) * n.dim(x, d);
  n.out(0, n.reshape(x, {simplify(rows), simplify(columns)}));
}
// Axes are an attribute before opset 13 and an operand from opset 13 on. Without axes, dimensions whose extent is known
// to be 1 are removed; the run checks that no dynamic extent is 1, since the rank would depend on it.
void squeeze(NodeImport& n) {
  ValueId x = n.required(0);
  const int rank = n.rank(x);
  auto axes = n.axes(1, 13);
  std::vector<bool> drop(static_cast<size_t>(rank));
  if (axes)
    for (int64_t a : *axes) drop[static_cast<size_t>(normalized_axis(n, a, rank))] = true;
  std::vector<Expr> dims;
  std::vector<int64_t> kept;  // without axes: extents that the run may find to be 1 would go
  for (int d = 0; d < rank; ++d) {
    const Expr e = n.dim(x, d);
    if (!axes && !ir::as_int(e)) kept.push_back(d);
    if (!axes) drop[static_cast<size_t>(d)] = ir::is_one(e);
    if (!drop[static_cast<size_t>(d)])
      dims.push_back(e);
    else
      n.require_equal(
          e, 1, "dimension " + std::to_string(d) + " of " + to_string(n.type(x)) + " must be 1");
  }
  ir::Attributes attributes{{"allowzero", int64_t{1}}};
  if (!kept.empty()) attributes["not_one"] = kept;
  n.out(0, n.op("reshape", {x, n.dims(dims)}, attributes));
}
// Axes count in the result, also where they are below 0.
void unsqueeze(NodeImport& n) {
  ValueId x = n.required(0);
  auto axes = n.axes(1, 13);
  if (!axes) n.fail("axes are missing");
  const int rank = n.rank(x) + static_cast<int>(axes->size());
  std::vector<bool> fresh(static_cast<size_t>(rank));
  for (int64_t a : *axes) {
    const int d = normalized_axis(n, a, rank);
    if (fresh[static_cast<size_t>(d)]) n.fail("axis " + std::to_string(a) + " is given twice");
    fresh[static_cast<size_t>(d)] = true;
  }
  std::vector<Expr> dims;
  int next = 0;
  for (int d = 0; d < rank; ++d)
    dims.push_back(fresh[static_cast<size_t>(d)] ? Expr(1) : n.dim(x, next++));
  n.out(0, n.reshape(x, dims));
}
void transpose(NodeImport& n) {
  ValueId x = n.required(0);
  std::vector<int64_t> perm = n.ints_attr("perm");
  if (perm.empty())
    for (int d = n.rank(x); d-- > 0;) perm.push_back(d);
  n.out(0, n.transpose(x, perm));
}
// Attributes start and end cut the list of extents, as a slice of Python does.
void shape(NodeImport& n) {
  ValueId x = n.required(0), s = n.op("shape", {x});
  const int64_t rank = n.rank(x);
  auto bound = [&](const char* name, int64_t fallback) {
    int64_t v = n.int_attr(name, fallback);
    return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  const int64_t start = bound("start", 0), end = bound("end", rank);
  n.out(0, start == 0 && end == rank ? s : n.slice(s, 0, start, std::max(start, end)));
}
// The number of elements, known or found by the run.
void size(NodeImport& n) {
  n.out(0, n.op("reduce_prod", {n.op("shape", {n.required(0)})}, {{"keepdims", int64_t{0}}}));
}
void concat(NodeImport& n) {
  if (n.num_inputs() == 1) {
    n.out(0, n.op("identity", {n.required(0)}));
    return;
  }
  n.out(0, n.op("concat", n.all_inputs(), {{"axis", n.int_attr("axis", 1)}}));
}
// Parts are an attribute, an operand, or equal ones, of which the last may be smaller from opset 18 on.
void split(NodeImport& n) {
  ValueId x = n.required(0);
  const int axis = normalized_axis(n, n.int_attr("axis", 0), n.rank(x));
  std::vector<int64_t> sizes =
      n.opset() >= 13 ? (n.has(1) ? n.must_know_ints(n.in(1), "split") : std::vector<int64_t>{})
                      : n.ints_attr("split");
  if (sizes.empty()) {
    auto extent = ir::as_int(n.dim(x, axis));
    if (!extent) n.needs_value("equal split of a dimension that is not known at compile time");
    const int64_t parts = n.int_attr("num_outputs", n.num_outputs());
    if (parts < 1 || parts != n.num_outputs())
      n.fail("num_outputs is " + std::to_string(parts) + ", the node has " +
             std::to_string(n.num_outputs()) + " results");
    const int64_t each = (*extent + parts - 1) / parts;
    for (int64_t k = 0; k < parts; ++k)
      sizes.push_back(std::clamp<int64_t>(*extent - k * each, 0, each));
  }
  x = must_add_up(n, x, axis, sizes);
  int64_t at = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (n.wants(static_cast<int>(k)))
      n.out(static_cast<int>(k), n.slice(x, axis, at, at + sizes[k]));
    at += sizes[k];
  }
}
// Before opset 10 starts, ends and axes are attributes.
void slice(NodeImport& n) {
  ValueId x = n.required(0);
  if (n.opset() >= 10) {
    n.out(0, n.op("slice", {x, n.required(1), n.required(2), n.in(3), n.in(4)}));
    return;
  }
  std::vector<int64_t> starts = n.ints_attr("starts"), axes = n.ints_attr("axes");
  if (axes.empty())
    for (size_t d = 0; d < starts.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  n.out(0, n.op("slice", {x, n.ints(starts), n.ints(n.ints_attr("ends")), n.ints(axes)}));
}
// Negative indices count from the end. The run checks indices that are unknown at compile time.
void gather(NodeImport& n) {
  n.out(0, n.op("gather", {n.required(0), n.required(1)}, {{"axis", n.int_attr("axis", 0)}}));
}
void expand(NodeImport& n) { n.out(0, n.op("expand", {n.required(0), n.required(1)})); }
// One of several attributes holds the value; tensors became initializers when the model was read.
void constant(NodeImport& n) {
  if (auto t = n.tensor_attr("value")) return n.out(0, n.constant(t));
  if (n.has_attr("value_int"))
    return n.out(0, n.reshape(n.ints({n.int_attr("value_int", 0)}), std::vector<int64_t>{}));
  if (n.has_attr("value_float"))
    return n.out(0, n.scalar(n.float_attr("value_float", 0), DType::kFloat32));
  if (n.has_attr("value_ints")) return n.out(0, n.ints(n.ints_attr("value_ints")));
  if (n.has_attr("value_floats")) {
    auto v = n.floats_attr("value_floats");
    std::vector<float> f(v.begin(), v.end());
    return n.out(
        0, n.constant(ir::make_constant_of(DType::kFloat32, {static_cast<int64_t>(f.size())}, f)));
  }
  n.unsupported("constant of strings, or without a value");
}
// Repeats one element, 0 in f32 where the node names none.
void constant_of_shape(NodeImport& n) {
  ir::ConstantRef value = n.tensor_attr("value");
  ValueId fill = value ? n.constant(value) : n.scalar(0, DType::kFloat32);
  n.out(0, n.op("expand",
                {n.rank(fill) ? n.reshape(fill, std::vector<int64_t>{}) : fill, n.required(0)}));
}

constexpr auto kShapeRows = std::to_array<OpMapping>({
    {"", "Reshape", 5, reshape},
    {"", "Flatten", 1, flatten},
    {"", "Squeeze", 1, squeeze},
    {"", "Unsqueeze", 1, unsqueeze},
    {"", "Transpose", 1, transpose},
    {"", "Shape", 1, shape},
    {"", "Size", 1, size},
    {"", "Concat", 1, concat},
    {"", "Split", 2, split},
    {"", "Slice", 1, slice},
    {"", "Gather", 1, gather},
    {"", "Expand", 8, expand},
    {"", "Constant", 1, constant},
    {"", "ConstantOfShape", 9, constant_of_shape},
});

}  // namespace

std::span<const OpMapping> shape_mappings() { return kShapeRows; }

}  // namespace tilewright::onnx
