#include "frontends/onnx/windows.h"

#include "ir/loops/simplify.h"

namespace tilewright::onnx {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

namespace {

// The padding, begin and end, that gives ceil(x / stride) windows of `reach` elements along a
// dimension of x elements. Strides beyond the window pad nothing, as in TensorFlow, whose exporters
// write these modes; ONNX Runtime crops by pads below 0 there.
std::pair<Expr, Expr> same_padding(const Expr& x, int64_t stride, int64_t reach, AutoPad mode) {
  Expr total = (ceildiv(x, stride) - 1) * Expr(stride) + Expr(reach) - x;
  if (reach < stride) total = max(total, 0);  // else it is at least reach - stride
  const Expr small = floordiv(total, 2), large = total - small;
  return mode == AutoPad::kSameUpper ? std::pair(small, large) : std::pair(large, small);
}

// Begins, then ends. Nothing where attributes do not fit x, which its operator reports.
std::optional<ir::Extents> same_pads(NodeImport& n, ValueId x, const std::vector<Expr>& kernel,
                                     AutoPad mode) {
  const size_t spatial = kernel.size();
  const std::vector<int64_t> ones(spatial, 1), strides = n.ints_attr("strides", ones),
                                               dilations = n.ints_attr("dilations", ones);
  if (n.rank(x) != static_cast<int>(spatial) + 2 || strides.size() != spatial ||
      dilations.size() != spatial)
    return std::nullopt;
  ir::Extents pads{std::vector<Expr>(2 * spatial)};
  for (size_t d = 0; d < spatial; ++d) {
    const auto k = ir::as_int(kernel[d]);
    if (!k || *k < 1 || strides[d] < 1 || dilations[d] < 1) return std::nullopt;
    const auto [begin, end] = same_padding(n.dim(x, static_cast<int>(d) + 2), strides[d],
                                           (*k - 1) * dilations[d] + 1, mode);
    pads.dims[d] = simplify(begin);
    pads.dims[d + spatial] = simplify(end);
  }
  return pads;
}

}  // namespace

ir::Attribute pads_attribute(ir::Extents pads) {
  std::vector<int64_t> numbers;
  for (const Expr& e : pads.dims)
    if (const auto i = ir::as_int(e)) numbers.push_back(*i);
  if (numbers.size() == pads.dims.size()) return numbers;
  return pads;
}

AutoPad auto_pad(const NodeImport& n) {
  const std::string mode = n.string_attr("auto_pad", "NOTSET");
  if (mode == "NOTSET") return AutoPad::kGiven;
  if (mode == "VALID") return AutoPad::kValid;
  if (mode == "SAME_UPPER") return AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") return AutoPad::kSameLower;
  n.fail("auto_pad '" + mode + "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

Attributes window_attributes(NodeImport& n, ValueId x, const std::vector<Expr>& kernel) {
  Attributes a;
  for (const char* name : {"strides", "dilations"})
    if (n.has_attr(name)) a[name] = n.ints_attr(name);
  const AutoPad mode = auto_pad(n);
  if (mode == AutoPad::kGiven && n.has_attr("pads")) a["pads"] = n.ints_attr("pads");
  if (is_same(mode))
    if (auto pads = same_pads(n, x, kernel, mode)) a["pads"] = pads_attribute(std::move(*pads));
  // With the same number of results nothing is left to round.
  if (!is_same(mode) && n.int_attr("ceil_mode", 0)) a["ceil_mode"] = int64_t{1};
  return a;
}
Attributes conv_attributes(NodeImport& n, ValueId x, ValueId w) {
  const auto& dims = n.type(w).dims;
  return window_attributes(n, x, {dims.begin() + std::min<long>(2, n.rank(w)), dims.end()});
}
Attributes pool_attributes(NodeImport& n, ValueId x) {
  const std::vector<int64_t> kernel = n.ints_attr("kernel_shape");
  Attributes a = window_attributes(n, x, {kernel.begin(), kernel.end()});
  a["kernel_shape"] = kernel;
  return a;
}

ValueId shaped_kernel(NodeImport& n, ValueId w) {
  const std::vector<int64_t> kernel = n.ints_attr("kernel_shape");
  if (kernel.empty()) return w;
  std::vector<Expr> dims = n.type(w).dims;
  bool fits = dims.size() == kernel.size() + 2, known = true;
  for (size_t d = 0; fits && d < kernel.size(); ++d) {
    const auto extent = ir::as_int(dims[d + 2]);
    known &= extent.has_value();
    fits = extent.value_or(kernel[d]) == kernel[d] && kernel[d] > 0;
    dims[d + 2] = kernel[d];
  }
  if (!fits) n.fail("kernel_shape does not fit w, which is " + to_string(n.type(w)));
  return known ? w : n.reshape(w, dims);
}

}  // namespace tilewright::onnx
