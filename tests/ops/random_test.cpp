// Random numbers: the generator's known answers, the same bits however a kernel is made, and
// distributions that tests of statistics do not tell from those asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

using Words = std::array<uint32_t, 4>;
using Pair = std::array<uint32_t, 2>;

// Philox4x32-10 as its paper writes it.
Words philox(Words c, Pair k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}
// Those that Random123, the authors' library, comes with.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

HostTensor pair(Pair p) {
  return repeated(DType::kUInt32, {2}, {static_cast<double>(p[0]), static_cast<double>(p[1])});
}
ir::Attributes of(const std::vector<ir::Expr>& shape, const char* type = "f32") {
  return {{"shape", ir::Extents{shape}}, {"to", std::string(type)}};
}
const Pair kKey{0xa4093822, 0x299f31d0}, kStream{0x13198a2e, 0xf3707344};

class Random : public KernelTest {};

TEST_P(Random, KeysAreKnownAnswers) {
  GraphCall call;
  call.output(call.op("random_key", {call.input(pair({~0u, ~0u})), call.input(pair({~0u, ~0u}))}));
  call.output(call.op("random_key",
                      {call.input(pair(kKey)), call.input(repeated(DType::kInt64, {}, {-3.0}))}));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  EXPECT_EQ(element(oracle->outputs[0], 0), 0x408f276d);
  EXPECT_EQ(element(oracle->outputs[0], 1), 0x41c83b0e);
  const Words w = philox({~0u - 2, ~0u, ~0u, ~0u}, kKey);
  for (int64_t i : {0, 1}) EXPECT_EQ(element(oracle->outputs[1], i), w[static_cast<size_t>(i)]);
  expect_equal(call, 0);
}

// Over a shape that leaves tails, and one that work is shared out over.
TEST_P(Random, UniformIsTheGeneratorsBits) {
  GraphCall call;
  const auto key = call.input(pair(kKey)), stream = call.input(pair(kStream));
  const std::vector<Shape> shapes{{3, 37}, {16, 1027}, {}, {2, 0, 3}};
  for (const Shape& shape : shapes) {
    const std::vector<ir::Expr> dims(shape.begin(), shape.end());
    call.output(call.op("random_uniform", {key, stream}, of(dims)));
    call.output(call.op("random_uniform", {key, stream}, of(dims, "f64")));
    ir::Attributes few = of(dims);
    few["bits"] = int64_t{8};
    call.output(call.op("random_uniform", {key, stream}, few));
  }
  expect_equal(call, 0, {{}, {true, false}});
  auto runs = run_compiled(call.graph, call.inputs, {true, true, true, GetParam()}, {1});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (size_t k = 0; k < shapes.size(); ++k)
    for (int64_t i = 0; i < element_count(shapes[k]).value(); ++i) {
      const Words w = philox({static_cast<uint32_t>(i), 0, kStream[0], kStream[1]}, kKey);
      ASSERT_EQ(element((*runs)[0][3 * k], i), (w[0] >> 8) * 0x1p-24) << i;
      ASSERT_EQ(element((*runs)[0][3 * k + 1], i),
                static_cast<double>((uint64_t{w[0]} << 21) + (w[1] >> 11)) * 0x1p-53)
          << i;
      ASSERT_EQ(element((*runs)[0][3 * k + 2], i), (w[0] >> 24) * 0x1p-8) << i;
    }
}

TEST_P(Random, NormalIsBoxAndMullers) {
  GraphCall call;
  const auto key = call.input(pair(kKey)), stream = call.input(pair(kStream));
  call.output(call.op("random_normal", {key, stream}, of({16, 1027})));
  call.output(call.op("random_normal", {key, stream}, of({16, 1027}, "f64")));
  expect_equal(call, 8, {{}, {true, false}});
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  for (int64_t i = 0; i < 16 * 1027; ++i) {
    const Words w = philox({static_cast<uint32_t>(i), 0, kStream[0], kStream[1]}, kKey);
    const double u = ((w[0] >> 1) + 0.5) * 0x1p-31, angle = 2 * M_PI * (w[1] >> 8) * 0x1p-24;
    ASSERT_NEAR(element(oracle->outputs[0], i), std::sqrt(-2 * std::log(u)) * std::cos(angle), 1e-5)
        << i;
  }
}

// Positions beyond 2^32 have a second word; where extents are known, none is that far.
TEST_P(Random, PositionsOfUnknownExtents) {
  GraphCall call;
  const ir::Var n("n");
  const auto x = call.graph.add_value("x", {DType::kFloat32, {n}});
  call.graph.inputs.push_back(x);
  call.inputs.push_back(repeated(DType::kFloat32, {203}, {0}));
  const auto key = call.input(pair(kKey)), stream = call.input(pair(kStream));
  call.output(call.op("add", {x, call.op("random_uniform", {key, stream}, of({n}))}));
  expect_equal(call, 0);
  auto runs = run_compiled(call.graph, call.inputs, {true, true, false, GetParam()}, {1});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (int64_t i = 0; i < 203; ++i)
    ASSERT_EQ(
        element((*runs)[0][0], i),
        (philox({static_cast<uint32_t>(i), 0, kStream[0], kStream[1]}, kKey)[0] >> 8) * 0x1p-24);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Random, testing::Values("native", "x86-64-v4", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

// --- distributions -----------------------------------------------------------------------------

constexpr int64_t kMany = 1 << 18;

std::vector<double> numbers(const char* op, const char* type) {
  GraphCall call;
  call.output(call.op(op, {call.input(pair({1, 2})), call.input(pair({3, 4}))}, of({kMany}, type)));
  auto runs = run_compiled(call.graph, call.inputs, {}, {1});
  TW_CHECK(runs.ok());
  std::vector<double> x;
  for (int64_t i = 0; i < kMany; ++i) x.push_back(element((*runs)[0][0], i));
  return x;
}
// The largest distance between the distribution of x and a stated one, times the root of their
// number: above 1.95 once in a thousand times.
double kolmogorov(std::vector<double> x, double (*below)(double)) {
  std::sort(x.begin(), x.end());
  double distance = 0;
  const auto n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto rank = static_cast<double>(i);
    distance = std::max({distance, below(x[i]) - rank / n, (rank + 1) / n - below(x[i])});
  }
  return distance * std::sqrt(n);
}

TEST(Distribution, UniformIsFlat) {
  for (const char* type : {"f32", "f64"}) {
    const std::vector<double> x = numbers("random_uniform", type);
    std::array<double, 256> hits{};
    for (const double v : x) {
      ASSERT_GE(v, 0);
      ASSERT_LT(v, 1);
      ++hits[static_cast<size_t>(v * 256)];
    }
    double chi = 0;
    for (const double h : hits) chi += (h - kMany / 256.0) * (h - kMany / 256.0) / (kMany / 256.0);
    EXPECT_LT(chi, 330) << "255 degrees of freedom: above this once in a thousand times";
    EXPECT_GT(chi, 190) << "and so below this";
    EXPECT_LT(kolmogorov(x, [](double v) { return v; }), 1.95);
    // Neighbours say nothing of one another.
    double product = 0;
    for (size_t i = 1; i < x.size(); ++i) product += (x[i] - 0.5) * (x[i - 1] - 0.5);
    EXPECT_LT(std::abs(product) * 12 / std::sqrt(double{kMany}), 3.3);
  }
}

TEST(Distribution, NormalHasItsMoments) {
  for (const char* type : {"f32", "f64"}) {
    const std::vector<double> x = numbers("random_normal", type);
    std::array<double, 5> moment{};
    double largest = 0;
    for (const double v : x) {
      for (int k = 1; k < 5; ++k) moment[static_cast<size_t>(k)] += std::pow(v, k) / kMany;
      largest = std::max(largest, std::abs(v));
    }
    const double root = std::sqrt(double{kMany});
    EXPECT_LT(std::abs(moment[1]) * root, 3.3);
    EXPECT_LT(std::abs(moment[2] - 1) * root, 3.3 * std::sqrt(2));
    EXPECT_LT(std::abs(moment[3]) * root, 3.3 * std::sqrt(15));
    EXPECT_LT(std::abs(moment[4] - 3) * root, 3.3 * std::sqrt(96));
    EXPECT_GT(largest, 4.2);
    EXPECT_LT(largest, 6.7);
    EXPECT_LT(kolmogorov(x, [](double v) { return std::erfc(-v * std::sqrt(0.5)) / 2; }), 1.95);
  }
}

}  // namespace
}  // namespace tilewright
