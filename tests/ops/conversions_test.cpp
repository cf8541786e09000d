// Conversions between all element types, compiled for vectors and for scalars, on every kind of
// CPU. Floats become integers by cutting off towards zero, limited to the range of the type, 0 for
// NaN; integers wrap.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

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
class FloatsToSmallIntegers : public testing::TestWithParam<Conversion> {};

TEST_P(FloatsToSmallIntegers, SaturateAndTurnNanToZero) {
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
INSTANTIATE_TEST_SUITE_P(All, FloatsToSmallIntegers, testing::ValuesIn(conversions()),
                         [](const auto& info) {
                           return std::string(name(info.param.from)) + "_to_" +
                                  std::string(name(info.param.to));
                         });

// --- every pair of types ------------------------------------------------------------------------

// Ends of all types, and what lies a little beside the middle of two halves: rounded to f32 first,
// it would be that middle.
HostTensor edges(DType t) {
  std::vector<double> values = delicate_values();
  for (const int bits : {31, 32, 53, 63, 64})
    for (const double part : {1.0, 1 - 0x1p-24, 1 - 0x1p-53, 1 + 0x1p-23, 1 + 0x1p-52})
      for (const double sign : {1.0, -1.0}) values.push_back(sign * std::ldexp(part, bits));
  for (const double tie : {1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-8, 1 + 0x3p-8, 65520.0, 0x1.01p-24})
    for (const double beside : {1 - 0x1p-40, 1.0, 1 + 0x1p-40}) values.push_back(tie * beside);
  if (is_float(t)) return repeated(t, {static_cast<int64_t>(values.size())}, values);
  std::vector<uint64_t> bits{0, 1, 2, ~uint64_t{0}, ~uint64_t{1}, 0x0123456789abcdef};
  for (int k = 6; k < 64; ++k)
    for (const int64_t off : {-1, 0, 1}) {
      bits.push_back((uint64_t{1} << k) + static_cast<uint64_t>(off));
      bits.push_back(0 - bits.back());
      bits.push_back((uint64_t{0x1010001} << k >> 24) + static_cast<uint64_t>(off));
    }
  HostTensor x(t, {static_cast<int64_t>(bits.size())});
  for (size_t i = 0; i < bits.size(); ++i) {
    const uint64_t v = t == DType::kBool ? bits[i] & 1 : bits[i];
    std::memcpy(x.bytes.data() + i * static_cast<size_t>(byte_size(t)), &v,
                static_cast<size_t>(byte_size(t)));
  }
  return x;
}

class EveryPair : public testing::TestWithParam<DType> {};

TEST_P(EveryPair, IsWhatTheInterpreterComputes) {
  GraphCall call;
  const auto x = call.input(edges(GetParam()));
  for (const DTypeInfo& to : kDTypes)
    call.output(call.op("cast", {x}, {{"to", std::string(to.name)}}));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  for (const char* cpu : {"native", "x86-64-v4", "x86-64-v3", "x86-64"}) {
    if (!runs_here(cpu)) continue;
    for (const bool schedule : {true, false}) {
      SCOPED_TRACE(std::string(cpu) + (schedule ? ", scheduled" : ", plain loops"));
      auto runs = run_compiled(call.graph, call.inputs, {true, schedule, false, cpu}, {1});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      for (size_t k = 0; k < oracle->outputs.size(); ++k) {
        const HostTensor &got = (*runs)[0][k], &expected = oracle->outputs[k];
        const auto size = static_cast<size_t>(byte_size(got.dtype));
        for (size_t i = 0; i < static_cast<size_t>(got.size()); ++i) {
          const auto at = static_cast<int64_t>(i);
          if (std::isnan(element(got, at)) && std::isnan(element(expected, at))) continue;
          ASSERT_EQ(
              std::memcmp(got.bytes.data() + i * size, expected.bytes.data() + i * size, size), 0)
              << "to " << name(got.dtype) << ": " << element(call.inputs[0], at) << " became "
              << element(got, at) << ", expected " << element(expected, at);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPair, testing::ValuesIn([] {
                           std::vector<DType> types;
                           for (const DTypeInfo& i : kDTypes) types.push_back(i.dtype);
                           return types;
                         }()),
                         [](const auto& info) { return std::string(name(info.param)); });

// What is stated of the operator, by hand.
TEST(Conversions, HoldTheirStatedMeaning) {
  GraphCall call;
  const auto x = call.input(
      repeated(DType::kFloat32, {8}, {NAN, HUGE_VAL, -HUGE_VAL, 300, -1, 1.9, -1.9, 0x1p63}));
  const auto n = call.input(repeated(DType::kInt32, {3}, {300, -1, 65536 + 5}));
  for (const char* to : {"u8", "i32", "i64", "u64", "bool"})
    call.output(call.op("cast", {x}, {{"to", std::string(to)}}));
  for (const char* to : {"i8", "u8", "u16"})
    call.output(call.op("cast", {n}, {{"to", std::string(to)}}));
  const std::vector<std::vector<double>> expected{
      {0, 255, 0, 255, 0, 1, 0, 255},
      {0, 2147483647, -2147483648.0, 300, -1, 1, -1, 2147483647},
      {0, 0x1p63, -0x1p63, 300, -1, 1, -1, 0x1p63},
      {0, 0x1p64, 0, 300, 0, 1, 0, 0x1p63},
      {1, 1, 1, 1, 1, 1, 1, 1},
      {44, -1, 5},
      {44, 255, 5},
      {300, 65535, 5}};
  auto runs = run_compiled(call.graph, call.inputs, {}, {1});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (size_t k = 0; k < expected.size(); ++k)
    for (size_t i = 0; i < expected[k].size(); ++i)
      EXPECT_EQ(element((*runs)[0][k], static_cast<int64_t>(i)), expected[k][i]) << k << ", " << i;
}

}  // namespace
}  // namespace tilewright
