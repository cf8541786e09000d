// Gradients of weights by Winograd's form against sums of products in f64, over the layers of
// winograd_test.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/graph_oracle.h"
#include "tests/ops/winograd_layers.h"

namespace tilewright {
namespace {

// The gradient from its definition, in f64, and how far Winograd's form in f32 may be from it.
class Reference {
 public:
  Reference(const Layer& l, int64_t m, const HostTensor& dy, const HostTensor& x)
      : l_(l), m_(m), t_(matrices(m)), dy_(dy), x_{l, x} {}
  double result(int64_t o, int64_t c, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t n = 0; n < l_.n; ++n)
      for (int64_t y = 0; y < l_.out_h(); ++y)
        for (int64_t x = 0; x < l_.out_w(); ++x)
          sum += slope(n, o, y, x) * x_.at(n, c, y + i, x + j);
    return sum;
  }
  // As in winograd_test: roundings of independent terms, of which no sum is farther off than six
  // times the deviation.
  double tolerance(int64_t o, int64_t c, int64_t i, int64_t j) const {
    const int64_t down = (l_.out_h() + m_ - 1) / m_, across = (l_.out_w() + m_ - 1) / m_;
    // Along a path: 5 operations in each of two transforms of either operand and of the sums, the
    // product and a sum a tile.
    const double roundings = 5 * 6 + 1 + static_cast<double>(l_.n * down * across);
    double variance = 0;
    for (size_t a = 0; a < t_.b.size(); ++a)
      for (size_t b = 0; b < t_.b.size(); ++b) {
        const double out = t_.g[a][at(i)] * t_.g[b][at(j)];
        if (out == 0) continue;
        for (int64_t n = 0; n < l_.n; ++n)
          for (int64_t ty = 0; ty < down; ++ty)
            for (int64_t tx = 0; tx < across; ++tx)
              variance += out * out * slope_squares(n, o, ty * m_, tx * m_, a, b) *
                          x_.squares(t_, n, c, ty * m_, tx * m_, a, b);
      }
    return 6 * 0x1p-24 * std::sqrt(roundings * variance) + 1e-30;
  }

 private:
  double slope(int64_t n, int64_t o, int64_t y, int64_t x) const {
    if (y >= l_.out_h() || x >= l_.out_w()) return 0;
    return element(dy_, ((n * l_.o + o) * l_.out_h() + y) * l_.out_w() + x);
  }
  double slope_squares(int64_t n, int64_t o, int64_t y, int64_t x, size_t a, size_t b) const {
    double sum = 0;
    for (int64_t i = 0; i < m_; ++i)
      for (int64_t j = 0; j < m_; ++j)
        sum += std::pow(t_.a[at(i)][a] * t_.a[at(j)][b] * slope(n, o, y + i, x + j), 2);
    return sum;
  }
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  const Layer& l_;
  const int64_t m_;
  const Matrices& t_;
  const HostTensor& dy_;
  const LayerInput x_;
};

class WinogradGradient : public testing::TestWithParam<std::tuple<Layer, int64_t>> {
 protected:
  const Layer& layer() const { return std::get<0>(GetParam()); }
  int64_t tile() const { return std::get<1>(GetParam()); }
  void SetUp() override {
    const Layer& l = layer();
    std::mt19937_64 random(1);
    dy_ = random_tensor(DType::kFloat32, {l.n, l.o, l.out_h(), l.out_w()}, random);
    x_ = random_tensor(DType::kFloat32, {l.n, l.c, l.h, l.w}, random);
  }
  GraphCall gradient(bool between) const {
    GraphCall call;
    ir::ValueId dy = call.input(dy_), x = call.input(x_);
    if (between) dy = between_layers(call, dy), x = between_layers(call, x);
    const auto& p = layer().pads;
    call.output(call.op("winograd_weights_gradient", {dy, x},
                        {{"tile", tile()}, {"pads", std::vector<int64_t>(p.begin(), p.end())}}));
    return call;
  }
  void expect_results(const HostTensor& found) const {
    const Layer& l = layer();
    const Reference reference(l, tile(), dy_, x_);
    ASSERT_EQ(found.shape, (Shape{l.o, l.c, 3, 3}));
    // Large layers are looked at here and there: the step shares no factor with their extents.
    const int64_t step = is_small(l) ? 1 : 1009;
    for (int64_t k = 0; k < l.o * l.c * 9; k += step) {
      const int64_t j = k % 3, i = k / 3 % 3, c = k / 9 % l.c, o = k / 9 / l.c;
      ASSERT_NEAR(element(found, k), reference.result(o, c, i, j), reference.tolerance(o, c, i, j))
          << o << ", " << c << ", " << i << ", " << j;
    }
  }
  HostTensor dy_, x_;
};

class SmallWinogradGradient : public WinogradGradient {};  // small enough for the interpreter
TEST_P(SmallWinogradGradient, InterpretedEqualsThePlainSums) {
  const GraphCall call = gradient(false);
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  expect_results(oracle->outputs[0]);
}

// The same bits on any number of threads.
TEST_P(WinogradGradient, CompiledEqualsThePlainSums) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3", "x86-64"})
    for (const bool between : {true, false}) {
      if (!runs_here(cpu)) continue;
      SCOPED_TRACE(std::string(cpu) + (between ? ", between layers" : ", alone"));
      const GraphCall call = gradient(between);
      auto runs = run_compiled(call.graph, call.inputs, {true, true, true, cpu}, {1, 3});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      expect_results((*runs)[0][0]);
      EXPECT_EQ((*runs)[0][0].bytes, (*runs)[1][0].bytes) << "depends on the number of threads";
      if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Layers, WinogradGradient,
                         testing::Combine(testing::ValuesIn(kLayers), testing::ValuesIn(kTiles)));
INSTANTIATE_TEST_SUITE_P(Layers, SmallWinogradGradient,
                         testing::Combine(testing::ValuesIn(small_layers()),
                                          testing::ValuesIn(kTiles)));

}  // namespace
}  // namespace tilewright
