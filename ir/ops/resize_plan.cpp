#include "ir/ops/resize_plan.h"

#include <algorithm>
#include <cmath>

#include "ir/loops/simplify.h"
#include "ir/ops/indices.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

constexpr double kLargest = 0x1p40;  // of extents and scales

// floor(extent * scale), in f32 as the scales are: 40 * 3.3f is 132. Null when that is no integer
// expression.
Expr scaled_extent(const Expr& extent, double scale) {
  if (!(scale < kLargest)) return nullptr;
  if (auto n = as_int(extent)) {
    const float exact = static_cast<float>(*n) * static_cast<float>(scale);
    return exact < kLargest ? Expr(static_cast<int64_t>(std::floor(exact))) : nullptr;
  }
  if (scale == std::floor(scale)) return simplify(extent * Expr(static_cast<int64_t>(scale)));
  // A dyadic fraction.
  for (int64_t divisor = 2; divisor <= 64; divisor *= 2)
    if (const double p = scale * static_cast<double>(divisor); p == std::floor(p))
      return simplify(floordiv(extent * Expr(static_cast<int64_t>(p)), divisor));
  return nullptr;
}

std::optional<std::vector<double>> known_scales(const NodeView& c) {
  if (!c.has(2)) return std::nullopt;
  auto elements = c.known(2);
  if (!elements || elements->empty()) return std::nullopt;
  std::vector<double> scales;
  for (const Expr& e : *elements) {
    const auto* f = e.as<FloatImm>();
    if (!f) return std::nullopt;
    scales.push_back(f->value);
  }
  return scales;
}
bool is_empty(const NodeView& c, int operand) {
  return !c.has(operand) || (c.rank(operand) == 1 && is_zero(c.dim(operand, 0)));
}

// With keep_aspect_ratio_policy all axes get one scale, and extents are rounded.
Status keep_aspect_ratio(std::vector<ResizeAxis>& axes, bool largest) {
  double scale = largest ? 0 : HUGE_VAL;
  for (const ResizeAxis& a : axes) {
    auto in = as_int(a.in), out = as_int(a.out);
    if (!in || !out)
      return needs_value(
          "keep_aspect_ratio_policy with an extent that is not known at compile time");
    const double s = static_cast<double>(*out) / static_cast<double>(*in);
    scale = largest ? std::max(scale, s) : std::min(scale, s);
  }
  for (ResizeAxis& a : axes) {
    const double out = std::floor(scale * static_cast<double>(*as_int(a.in)) + 0.5);
    if (!(out < kLargest))  // also where the scale is infinite, of an extent of 0
      return invalid("the common scale " + std::to_string(scale) + " of extent " +
                     std::to_string(*as_int(a.in)) + " gives none");
    a.known = scale;
    a.out = static_cast<int64_t>(out);
  }
  return {};
}

Result<std::vector<ResizeAxis>> resize_axes(const NodeView& c) {
  const int rank = c.rank(0);
  std::vector<int64_t> given = c.attr_ints("axes");
  if (given.empty())
    for (int d = 0; d < rank; ++d) given.push_back(d);
  const auto scales = known_scales(c);
  std::optional<std::vector<Expr>> sizes;
  if (!is_empty(c, 3)) sizes = known_dims(c, 3);
  if (!scales && !sizes) {
    if (is_empty(c, 2) && is_empty(c, 3)) return invalid("neither scales nor sizes are given");
    return needs_value("scales or sizes is not known at compile time");
  }
  const size_t found = sizes ? sizes->size() : scales->size();
  if (found != given.size())
    return invalid(std::to_string(found) + " scales or sizes for " + std::to_string(given.size()) +
                   " axes");
  TW_ASSIGN(const std::vector<int> dims, distinct_axes(given, c.type(0)));
  std::vector<ResizeAxis> axes;
  for (size_t k = 0; k < given.size(); ++k) {
    ResizeAxis a;
    a.axis = dims[k];
    a.in = c.dim(0, a.axis);
    a.roi_begin = static_cast<int>(k);
    a.roi_end = static_cast<int>(k + given.size());
    if (sizes) {
      a.out = (*sizes)[k];
    } else {
      a.known = (*scales)[k];
      if (!(*a.known > 0)) return invalid("scale " + std::to_string(*a.known));
      a.out = scaled_extent(a.in, *a.known);
      if (!a.out && as_int(a.in))
        return invalid("scale " + std::to_string(*a.known) + " of extent " +
                       std::to_string(*as_int(a.in)) + ": too large");
      if (!a.out)
        return needs_value("scale " + std::to_string(*a.known) +
                           " of an extent that is not known at compile time");
    }
    axes.push_back(std::move(a));
  }
  const std::string policy = c.attr_string("policy", "stretch");
  if (sizes && policy != "stretch")
    TW_RETURN_IF_ERROR(keep_aspect_ratio(axes, policy == "not_smaller"));
  return axes;
}

}  // namespace

Result<ResizePlan> resize_plan(const NodeView& c) {
  constexpr double kLeastScale = 0x1p-16;  // a result sums up some elements over the scale
  ResizePlan p;
  p.dims = c.type(0).dims;
  p.mode = c.attr_string("mode", "nearest");
  p.coordinates = c.attr_string("coordinates", "half_pixel");
  p.nearest = c.attr_string("nearest_mode", "round_prefer_floor");
  p.antialias = c.attr_int("antialias") != 0 && p.mode != "nearest";
  p.exclude_outside = c.attr_int("exclude_outside") != 0 && p.mode != "nearest";
  if (p.mode != "nearest" && p.mode != "linear" && p.mode != "cubic")
    return invalid("mode is '" + p.mode + "'");
  if (p.nearest != "round_prefer_floor" && p.nearest != "round_prefer_ceil" &&
      p.nearest != "floor" && p.nearest != "ceil")
    return invalid("nearest_mode is '" + p.nearest + "'");
  TW_ASSIGN(std::vector<ResizeAxis> axes, resize_axes(c));
  const bool roi = p.coordinates == "tf_crop_and_resize";
  if (roi && is_empty(c, 1)) return invalid("tf_crop_and_resize needs roi");
  for (ResizeAxis& a : axes) {
    p.dims[static_cast<size_t>(a.axis)] = a.out;
    const bool same = is_zero(simplify(a.in - a.out)) && a.known.value_or(1) == 1;
    if (same && (!roi || is_one(a.in))) continue;
    if (!c.at_most(0, a.out, "sizes must be at least 0"))
      return invalid("size " + to_text(a.out) + " of dimension " + std::to_string(a.axis));
    if (!c.at_most(simplify(min(a.out, 1)), a.in, "there must be something to resize"))
      return invalid("x is " + to_string(c.type(0)) + ": nothing to resize");
    if (!a.known && as_int(a.in) && as_int(a.out) && *as_int(a.in) > 0)
      a.known = static_cast<double>(*as_int(a.out)) / static_cast<double>(*as_int(a.in));
    a.scale = a.known ? f64(*a.known) : f64(a.out) / f64(a.in);
    if (p.antialias && !a.known)
      return needs_value("antialias with a scale that is not known at compile time");
    if (p.antialias && *a.known < kLeastScale)
      return unsupported("antialias with scale " + std::to_string(*a.known) + ", less than " +
                         std::to_string(kLeastScale));
    p.axes.push_back(std::move(a));
  }
  return p;
}

}  // namespace tilewright::ir
