// Resize and Upsample.
#include <algorithm>
#include <array>
#include <cmath>

#include "frontends/onnx/importers.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::ValueId;

// Optional operands are left out, or, in older exporters, given as a tensor without elements.
bool is_empty(const NodeImport& n, ValueId v) {
  return v == kNone || (n.rank(v) == 1 && ir::is_zero(n.dim(v, 0)));
}

// Whole factors whose nearest element is index / factor; nothing when this is another resampling.
std::vector<int64_t> repeat_factors(const NodeImport& n, ValueId x, ValueId scales,
                                    const Attributes& a) {
  auto text = [&](const char* name) { return std::get<std::string>(a.at(name)); };
  const std::string coordinates = text("coordinates"), rounding = text("nearest_mode");
  const bool divides = (coordinates == "asymmetric" && rounding == "floor") ||
                       ((coordinates == "half_pixel" || coordinates == "pytorch_half_pixel") &&
                        rounding == "round_prefer_floor");
  if (text("mode") != "nearest" || !divides || is_empty(n, scales)) return {};
  auto known = n.known_floats(scales);
  if (!known || static_cast<int>(known->size()) != n.rank(x)) return {};
  std::vector<int64_t> factors;
  for (double s : *known) {
    if (s < 1 || s > 1024 || s != std::floor(s)) return {};
    factors.push_back(static_cast<int64_t>(s));
  }
  return factors;
}

// The nearest element at whole factors is a repetition, which needs no table of positions; the rest
// is the general operator.
void resized(NodeImport& n, ValueId x, ValueId roi, ValueId scales, ValueId sizes, Attributes a) {
  if (a.count("axes") == 0) {
    auto factors = repeat_factors(n, x, scales, a);
    if (!factors.empty()) {
      n.out(0, n.op("repeat", {x}, {{"factors", factors}}));
      return;
    }
  }
  n.out(0, n.op("resize", {x, roi, scales, sizes}, std::move(a)));
}

// Opset 11 and later: every choice is an attribute, with these defaults.
void resize(NodeImport& n) {
  // The policy counts with sizes alone, but a word that the standard lacks is an error with scales, too.
  const std::string policy = n.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    n.fail("keep_aspect_ratio_policy '" + policy +
           "', expected stretch, not_larger or not_smaller");
  Attributes a{{"mode", n.string_attr("mode", "nearest")},
               {"coordinates", n.string_attr("coordinate_transformation_mode", "half_pixel")},
               {"nearest_mode", n.string_attr("nearest_mode", "round_prefer_floor")},
               {"policy", policy},
               {"antialias", n.int_attr("antialias", 0)},
               {"exclude_outside", n.int_attr("exclude_outside", 0)},
               {"cubic_coeff_a", n.float_attr("cubic_coeff_a", -0.75)},
               {"extrapolation_value", n.float_attr("extrapolation_value", 0)}};
  static const std::array<std::string_view, 7> kCoordinates{
      "tf_half_pixel_for_nn", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners",        "asymmetric", "tf_crop_and_resize"};
  const std::string coordinates = std::get<std::string>(a["coordinates"]);
  if (std::find(kCoordinates.begin(), kCoordinates.end(), coordinates) == kCoordinates.end())
    n.fail("coordinate_transformation_mode is '" + coordinates + "'");
  if (n.has_attr("axes")) a["axes"] = n.ints_attr("axes");
  resized(n, n.required(0), n.in(1), n.in(2), n.in(3), std::move(a));
}
// Before opset 11 the only coordinates are x / scale, and the nearest element is the one below.
void upsample(NodeImport& n) {
  const std::string mode = n.string_attr("mode", "nearest");
  ValueId scales = kNone;
  if (n.opset() >= 9) {
    scales = n.required(1);
  } else {
    auto given = n.floats_attr("scales");
    if (n.opset() < 7)
      given = {1, 1, n.float_attr("height_scale", 1), n.float_attr("width_scale", 1)};
    std::vector<float> f(given.begin(), given.end());
    scales = n.constant(ir::make_constant_of(DType::kFloat32, {static_cast<int64_t>(f.size())}, f));
  }
  resized(n, n.required(0), kNone, scales, kNone,
          {{"mode", mode == "bilinear" ? std::string("linear") : mode},
           {"coordinates", std::string("asymmetric")},
           {"nearest_mode", std::string("floor")}});
}

constexpr auto kResizeRows = std::to_array<OpMapping>({
    {"", "Resize", 10, upsample},
    {"", "Resize", 11, resize},
    {"", "Upsample", 1, upsample},
});

}  // namespace

std::span<const OpMapping> resize_mappings() { return kResizeRows; }

}  // namespace tilewright::onnx
