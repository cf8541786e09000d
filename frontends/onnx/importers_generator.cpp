// Ranges, masks, one-hot codes and grids.
#include <array>

#include "frontends/onnx/importers.h"
#include "frontends/tensor_files/element_type.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

void range(NodeImport& n) {
  n.out(0, n.op("range", {n.required(0), n.required(1), n.required(2)}));
}
void eye_like(NodeImport& n) {
  Attributes a{{"k", n.int_attr("k", 0)}};
  if (n.has_attr("dtype")) {
    auto to = dtype_from_onnx(static_cast<int>(n.int_attr("dtype", 1)));
    if (!to) n.unsupported("element type " + onnx_element_name(n.int_attr("dtype", 1)));
    a["to"] = std::string(name(*to));
  }
  n.out(0, n.op("eye_like", {n.required(0)}, a));
}
void trilu(NodeImport& n) {
  n.out(0, n.op("trilu", {n.required(0), n.in(1)}, {{"upper", n.int_attr("upper", 1)}}));
}
void one_hot(NodeImport& n) {
  n.out(0, n.op("one_hot", {n.required(0), n.required(1), n.required(2)},
                {{"axis", n.int_attr("axis", -1)}}));
}
void affine_grid(NodeImport& n) {
  n.out(0, n.op("affine_grid", {n.required(0), n.required(1)},
                {{"align_corners", n.int_attr("align_corners", 0)}}));
}
// 1 at the first largest element along the axis. Before opset 13 all dimensions from the axis on
// are one.
void hardmax(NodeImport& n) {
  ValueId x = n.required(0);
  const std::vector<Expr> dims = n.type(x).dims;
  const int rank = n.rank(x);
  int axis = normalized_axis(n, n.int_attr("axis", n.opset() >= 13 ? -1 : 1), rank);
  if (n.opset() < 13 && axis != rank - 1) {
    Expr rows = 1, columns = 1;
    for (int d = 0; d < rank; ++d)
      (d < axis ? rows : columns) = (d < axis ? rows : columns) * dims[static_cast<size_t>(d)];
    x = n.reshape(x, {simplify(rows), simplify(columns)});
    axis = 1;
  }
  ValueId best = n.op("arg_max", {x}, {{"axis", int64_t{axis}}, {"keepdims", int64_t{0}}});
  const float off_on[] = {0, 1};
  ValueId values = n.cast(n.constant(ir::make_constant_of(DType::kFloat32, {2},
                                                          std::vector<float>(off_on, off_on + 2))),
                          n.dtype(x));
  ValueId y = n.op("one_hot", {best, n.dims({n.dim(x, axis)}), values}, {{"axis", int64_t{axis}}});
  n.out(0, n.reshape(y, dims));
}

constexpr auto kGeneratorRows = std::to_array<OpMapping>({
    {"", "Range", 11, range},
    {"", "EyeLike", 9, eye_like},
    {"", "Trilu", 14, trilu},
    {"", "OneHot", 9, one_hot},
    {"", "AffineGrid", 20, affine_grid},
    {"", "Hardmax", 1, hardmax},
});

}  // namespace

std::span<const OpMapping> generator_mappings() { return kGeneratorRows; }

}  // namespace tilewright::onnx
