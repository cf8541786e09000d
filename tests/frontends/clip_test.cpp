// Clip: bounds that are absent, no numbers, or the wrong way round, in every opset's form.
#include <cmath>

#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

const double kInf = HUGE_VAL;
const std::vector<double> kNumbers{NAN, kInf, -kInf, -3, 0, 5, 3};

void expect_numbers(const std::vector<Tensor>& y, const std::vector<double>& expected) {
  ASSERT_EQ(y.size(), 1u);
  const std::vector<double> got = numbers_of(y[0]);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
        << "element " << i << " is " << got[i] << ", expected " << expected[i];
}
Operand bound(DType t, std::optional<double> value, bool known) {
  return value ? Operand{tensor_of(t, {}, {*value}), known} : Operand{};
}

struct Bounds {
  std::optional<double> low, high;
  std::vector<double> expected;  // of kNumbers
};

TEST(Clip, LimitsFloats) {
  const std::optional<double> none;
  const std::vector<Bounds> all{
      {none, none, kNumbers},
      {-1, none, {NAN, kInf, -1, -1, 0, 5, 3}},
      {none, 3, {NAN, 3, -kInf, -3, 0, 3, 3}},
      {-1, 3, {NAN, 3, -1, -1, 0, 3, 3}},
      {3, -1, {NAN, -1, -1, -1, -1, -1, -1}},
      {NAN, 3, {NAN, 3, -kInf, -3, 0, 3, 3}},
      {-1, NAN, {NAN, kInf, -1, -1, 0, 5, 3}},
  };
  for (const Bounds& b : all)
    for (const DType t : {DType::kFloat32, DType::kFloat64})
      for (const bool known : {true, false})
        for (const int64_t opset : {11, 12, 21}) {
          if (t == DType::kFloat64 && opset == 11) continue;
          SCOPED_TRACE(testing::Message() << "bounds " << b.low.value_or(0) << " and "
                                          << b.high.value_or(0) << ", opset " << opset);
          expect_numbers(
              run_node(
                  "Clip",
                  {{tensor_of(t, {7}, kNumbers)}, bound(t, b.low, known), bound(t, b.high, known)},
                  {}, opset),
              b.expected);
        }
}

// Attributes; their defaults are the largest numbers of f32.
TEST(Clip, LimitsByAttributes) {
  const double most = 3.4028234663852886e38;
  const Operand x{tensor_of(DType::kFloat32, {7}, kNumbers)};
  expect_numbers(run_node("Clip", {x}, {}, 7), {NAN, most, -most, -3, 0, 5, 3});
  expect_numbers(run_node("Clip", {x}, {{"min", -1.0}}, 10), {NAN, most, -1, -1, 0, 5, 3});
  expect_numbers(run_node("Clip", {x}, {{"max", 3.0}}, 10), {NAN, 3, -most, -3, 0, 3, 3});
  expect_numbers(run_node("Clip", {x}, {{"min", 3.0}, {"max", -1.0}}, 10),
                 {NAN, -1, -1, -1, -1, -1, -1});
}

TEST(Clip, LimitsIntegers) {
  for (const DType t : {DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64}) {
    SCOPED_TRACE(name(t));
    const double low = t == DType::kUInt8 ? 0 : t == DType::kInt8 ? -128 : -0x1p31;
    const Operand x{tensor_of(t, {5}, {low, 0, 2, 7, 127})};
    expect_numbers(run_node("Clip", {x}), {low, 0, 2, 7, 127});
    expect_numbers(run_node("Clip", {x, bound(t, 2, true)}), {2, 2, 2, 7, 127});
    expect_numbers(run_node("Clip", {x, {}, bound(t, 2, false)}), {low, 0, 2, 2, 2});
    expect_numbers(run_node("Clip", {x, bound(t, 7, false), bound(t, 2, false)}), {2, 2, 2, 2, 2});
  }
}

}  // namespace
}  // namespace tilewright
