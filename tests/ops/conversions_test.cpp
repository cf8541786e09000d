// Floats to integers of 8 and 16 bits, compiled for vectors and for scalars: limited to the range
// of the type, towards zero, 0 for NaN.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

// Around the ends of each type, halves, and what no integer type holds.
std::vector<double> delicate_values() {
  std::vector<double> values{0.0,        -0.0,  NAN,          HUGE_VAL,      -HUGE_VAL,
                             1e-7,       -1e-7, 5e-324,       0.49999997,    0.9999999,
                             -0.9999999, 65504, -65504,       1e10,          -1e10,
                             3e38,       -3e38, 2147483648.0, -2147483648.0, 4294967296.0};
  for (const double end : {0.0, 127.0, 128.0, 255.0, 256.0, 32767.0, 32768.0, 65535.0, 65536.0})
    for (const double off : {-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5})
      for (const double sign : {1.0, -1.0}) values.push_back(sign * (end + off));
  return values;
}

struct Conversion {
  DType from, to;
};
class Conversions : public testing::TestWithParam<Conversion> {};

TEST_P(Conversions, SaturateAndTurnNanToZero) {
  const auto [from, to] = GetParam();
  const std::vector<double> values = delicate_values();
  GraphCall call;
  const ir::Attributes to_type{{"to", std::string(name(to))}};
  const auto n = static_cast<int64_t>(values.size());
  call.output(call.op("cast", {call.input(repeated(from, {3 * n + 1}, values))}, to_type));
  // One element: no vector.
  for (const double v : values)
    call.output(call.op("cast", {call.input(repeated(from, {1}, {v}))}, to_type));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  const double low = to == DType::kInt8 ? -128 : to == DType::kInt16 ? -32768 : 0;
  EXPECT_EQ(element(oracle->outputs[0], 2), 0) << "NaN";
  EXPECT_EQ(element(oracle->outputs[0], 4), low) << "minus infinity";
  for (const char* cpu : {"native", "x86-64-v3", "x86-64"}) {
    if (!runs_here(cpu)) continue;
    for (const bool schedule : {true, false}) {
      SCOPED_TRACE(std::string(cpu) + (schedule ? ", scheduled" : ", plain loops"));
      auto runs = run_compiled(call.graph, call.inputs, {true, schedule, false, cpu}, {1});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      for (size_t k = 0; k < oracle->outputs.size(); ++k)
        for (int64_t i = 0; i < oracle->outputs[k].size(); ++i)
          ASSERT_EQ(element((*runs)[0][k], i), element(oracle->outputs[k], i))
              << "of " << element(call.inputs[k], i) << (k ? ", alone" : ", in a vector");
    }
  }
}

std::vector<Conversion> conversions() {
  std::vector<Conversion> all;
  for (const DType from : {DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    for (const DType to : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16})
      all.push_back({from, to});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Conversions, testing::ValuesIn(conversions()), [](const auto& info) {
  return std::string(name(info.param.from)) + "_to_" + std::string(name(info.param.to));
});

}  // namespace
}  // namespace tilewright
