// Resizes by a scale that gives no whole number of elements: what PyTorch and TensorFlow mean when
// they export them, and ONNX Runtime computes.
#include <algorithm>

#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

constexpr int64_t kIn = 7;

struct Case {
  const char* coordinates;
  double scale;
  double (*position)(double o, double out, double scale);
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.coordinates << " by " << c.scale; }

double pixel(double o, double, double scale) { return (o + 0.5) / scale - 0.5; }
double symmetric(double o, double out, double scale) {
  return kIn / 2.0 * (1 - out / (kIn * scale)) + pixel(o, out, scale);
}
double asymmetric(double o, double, double scale) { return o / scale; }
// The last of `out` elements is the last one of x, or of the region.
double corners(double o, double out, double) { return out > 1 ? o * (kIn - 1) / (out - 1) : 0; }
double region(double o, double out, double) {
  return out > 1 ? 0.1 * (kIn - 1) + o * (0.8 - 0.1) * (kIn - 1) / (out - 1)
                 : (0.1 + 0.8) / 2 * (kIn - 1);
}

const Case kCases[] = {
    {"half_pixel", 0.6, pixel},
    {"half_pixel", 1.3, pixel},
    {"pytorch_half_pixel", 0.6, pixel},
    {"pytorch_half_pixel", 1.3, pixel},
    {"half_pixel_symmetric", 0.6, symmetric},
    {"half_pixel_symmetric", 1.3, symmetric},
    {"asymmetric", 0.6, asymmetric},
    {"asymmetric", 1.3, asymmetric},
    {"align_corners", 0.6, corners},
    {"align_corners", 1.3, corners},
    {"align_corners", 0.2, corners},
    {"tf_crop_and_resize", 0.6, region},
    {"tf_crop_and_resize", 1.3, region},
    {"tf_crop_and_resize", 0.2, region},
};

class FractionalResize : public testing::TestWithParam<Case> {};

// x holds its own positions, so the result of a linear resize is where it was taken.
TEST_P(FractionalResize, TakesThePositionsThatExportersMean) {
  const Case& c = GetParam();
  std::vector<double> x;
  for (int64_t i = 0; i < kIn; ++i) x.push_back(static_cast<double>(i));
  const Operand scales{tensor_of(DType::kFloat32, {2}, {1, c.scale}), true},
      roi{tensor_of(DType::kFloat32, {4}, {0, 0.1, 1, 0.8}), true};
  const auto y = run_node("Resize", {{tensor_of(DType::kFloat32, {1, kIn}, x)}, roi, scales},
                          {{"mode", std::string("linear")},
                           {"coordinate_transformation_mode", std::string(c.coordinates)}});
  ASSERT_EQ(y.size(), 1u);
  const auto out = static_cast<int64_t>(kIn * c.scale);
  ASSERT_EQ(y[0].shape(), (Shape{1, out}));
  const std::vector<double> got = numbers_of(y[0]);
  for (size_t o = 0; o < got.size(); ++o)
    EXPECT_NEAR(got[o],
                std::clamp(c.position(static_cast<double>(o), static_cast<double>(out), c.scale),
                           0.0, kIn - 1.0),
                1e-5)
        << "element " << o;
}

INSTANTIATE_TEST_SUITE_P(All, FractionalResize, testing::ValuesIn(kCases), [](const auto& info) {
  return std::string(info.param.coordinates) + "_" +
         std::to_string(static_cast<int>(info.param.scale * 10));
});

}  // namespace
}  // namespace tilewright
