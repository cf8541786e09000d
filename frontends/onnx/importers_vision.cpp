// Pooling beyond max and mean, regions, sampling.
#include <array>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/windows.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

// Indices count in the extents that follow from the window, also where output_shape asks for larger
// ones: so do the standard's example and those who give it what MaxPool gave. ONNX Runtime counts
// in output_shape.
void max_unpool(NodeImport& n) {
  ValueId x = n.required(0);
  const auto kernel = n.ints_attr("kernel_shape");
  const size_t spatial = kernel.size();
  const auto strides = n.ints_attr("strides", std::vector<int64_t>(spatial, 1)),
             pads = n.ints_attr("pads", std::vector<int64_t>(2 * spatial, 0));
  if (static_cast<int>(spatial) + 2 != n.rank(x) || strides.size() != spatial ||
      pads.size() != 2 * spatial)
    n.fail("kernel_shape, strides or pads do not fit x, which is " + to_string(n.type(x)));
  std::vector<Expr> from{n.dim(x, 0), n.dim(x, 1)};
  for (size_t d = 0; d < spatial; ++d)
    from.push_back(simplify((n.dim(x, static_cast<int>(d) + 2) - 1) * Expr(strides[d]) +
                            Expr(kernel[d] - pads[d] - pads[d + spatial])));
  if (const auto wanted = n.has(2) ? n.known(n.in(2)) : std::nullopt;
      wanted && wanted->size() == from.size())
    for (size_t d = 0; d < from.size(); ++d) {
      const Expr to = simplify(ir::cast(DType::kInt64, (*wanted)[d]));
      if (d < 2)
        n.require_equal(to, from[d], "output_shape has the batches and channels of X");
      else
        n.require_at_most(from[d], to, "output_shape has at least the extents of the windows");
    }
  ValueId inferred = n.dims(from);
  Expr places = 1;
  for (const Expr& e : from) places = places * e;
  const ValueId indices = n.within(n.required(1), places, "an element of 'I'");
  n.out(0, n.op("max_unpool", {x, indices, n.has(2) ? n.in(2) : inferred, inferred}));
}

// (sum over the window of |x|^p)^(1/p)
ValueId to_power(NodeImport& n, ValueId v, double p) {
  if (p == 1) return v;
  if (p == 2) return n.op("mul", {v, v});
  if (p == 0.5) return n.op("sqrt", {v});
  return n.op("pow", {v, n.scalar_like(p, v)});
}
double norm_order(NodeImport& n) {
  const double p = n.opset() < 2 ? n.float_attr("p", 2) : static_cast<double>(n.int_attr("p", 2));
  if (!(p > 0)) n.fail("p is " + std::to_string(p));
  return p;
}
void lp_pool(NodeImport& n) {
  const double p = norm_order(n);
  ValueId powers = to_power(n, n.op("abs", {n.required(0)}), p);
  n.out(0, to_power(n, n.op("sum_pool", {powers}, pool_attributes(n, powers)), 1 / p));
}
void global_lp_pool(NodeImport& n) {
  const double p = norm_order(n);
  ValueId x = n.required(0);
  std::vector<int64_t> axes;
  for (int d = 2; d < n.rank(x); ++d) axes.push_back(d);
  n.out(0, to_power(n,
                    n.op("reduce_sum", {to_power(n, n.op("abs", {x}), p)},
                         {{"axes", axes}, {"keepdims", int64_t{1}}}),
                    1 / p));
}

// Regions are resampled at points between pixels (Mask R-CNN, He et al. 2017). Before opset 16 the
// shift by half a pixel was missing, which is a mode of its own since.
void roi_align(NodeImport& n) {
  const std::string mode = n.string_attr("mode", "avg");
  const std::string coordinates = n.string_attr(
      "coordinate_transformation_mode", n.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  if (mode != "avg" && mode != "max") n.fail("mode is '" + mode + "'");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    n.fail("coordinate_transformation_mode is '" + coordinates + "'");
  n.out(0, n.op("roi_align", {n.required(0), n.required(1), n.required(2)},
                {{"output_height", n.int_attr("output_height", 1)},
                 {"output_width", n.int_attr("output_width", 1)},
                 {"sampling_ratio", n.int_attr("sampling_ratio", 0)},
                 {"spatial_scale", n.float_attr("spatial_scale", 1)},
                 {"mode", mode},
                 {"half_pixel", int64_t{coordinates == "half_pixel"}}}));
}
// Its forerunner, with borders rounded to whole pixels (Fast R-CNN, Girshick 2015).
void max_roi_pool(NodeImport& n) {
  const double scale = n.float_attr("spatial_scale", 1);
  if (!(scale > 0)) n.fail("spatial_scale is " + std::to_string(scale) + ", expected more than 0");
  n.out(0, n.op("max_roi_pool", {n.required(0), n.required(1)},
                {{"pooled_shape", n.ints_attr("pooled_shape")}, {"spatial_scale", scale}}));
}

// Opset 20 gave the modes new names.
void grid_sample(NodeImport& n) {
  std::string mode = n.string_attr("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  n.out(0, n.op("grid_sample", {n.required(0), n.required(1)},
                {{"mode", mode},
                 {"padding_mode", n.string_attr("padding_mode", "zeros")},
                 {"align_corners", n.int_attr("align_corners", 0)}}));
}

// Attributes that operators over moved windows share, as given; absent ones have the operator's
// defaults.
Attributes moved_window(NodeImport& n) {
  Attributes a;
  for (const char* name : {"strides", "dilations", "pads"})
    if (n.has_attr(name)) a[name] = n.ints_attr(name);
  return a;
}
void col2im(NodeImport& n) {
  n.out(0, n.op("col2im", {n.required(0), n.required(1), n.required(2)}, moved_window(n)));
}

// The moved windows as columns, then one matrix product per group.
void deform_conv(NodeImport& n) {
  ValueId x = n.required(0), w = shaped_kernel(n, n.required(1));
  if (n.rank(x) != 4 || n.rank(w) != 4)
    n.unsupported("x is " + to_string(n.type(x)) + ", only [n, c, h, w] is supported");
  const int64_t group = n.int_attr("group", 1);
  if (group < 1) n.fail("group is " + std::to_string(group));
  const Expr o = n.dim(w, 0), per_group = simplify(floordiv(o, Expr(group)));
  auto kh = ir::as_int(n.dim(w, 2)), kw = ir::as_int(n.dim(w, 3));
  if (!kh || !kw) n.needs_value("the shape of w is not known at compile time");
  const std::string found = "x: " + to_string(n.type(x)) + " and w: " + to_string(n.type(w));
  n.require_multiple(o, group, "the results of " + found + " must be whole groups");
  n.require_equal(simplify(n.dim(w, 1) * Expr(group)), n.dim(x, 1),
                  "the channels of " + found + " must fit");
  Attributes a = moved_window(n);
  a["kernel_shape"] = std::vector<int64_t>{*kh, *kw};
  a["offset_group"] = n.int_attr("offset_group", 1);
  ValueId columns = n.op("deform_columns", {x, n.required(2), n.in(4)}, a);
  const Expr batch = n.dim(columns, 0), h = n.dim(columns, 4), width = n.dim(columns, 5),
             rows = simplify(n.dim(w, 1) * Expr(*kh * *kw));
  columns = n.reshape(columns, {batch, Expr(group), rows, simplify(h * width)});
  ValueId y = n.reshape(n.op("matmul", {n.reshape(w, {Expr(group), per_group, rows}), columns}),
                        {batch, o, h, width});
  if (n.has(3)) y = n.op("add", {y, n.reshape(n.in(3), {o, Expr(1), Expr(1)})});
  n.out(0, y);
}

constexpr auto kVisionRows = std::to_array<OpMapping>({
    {"", "MaxUnpool", 9, max_unpool},
    {"", "LpPool", 1, lp_pool, Form::kFormula},
    {"", "GlobalLpPool", 1, global_lp_pool, Form::kFormula},
    {"", "RoiAlign", 10, roi_align},
    {"", "MaxRoiPool", 1, max_roi_pool},
    {"", "GridSample", 16, grid_sample},
    {"", "Col2Im", 18, col2im},
    {"", "DeformConv", 19, deform_conv, Form::kFormula},
});

}  // namespace

std::span<const OpMapping> vision_mappings() { return kVisionRows; }

}  // namespace tilewright::onnx
