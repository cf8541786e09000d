// Winograd convolutions against sums of products in f64, over sizes that leave parts of tiles,
// vectors and panels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/schedule/rules/choose_trace.h"
#include "tests/ops/graph_oracle.h"
#include "tests/ops/winograd_layers.h"

namespace tilewright {
namespace {

// The convolution from its definition, in f64, and how far Winograd's form in f32 may be from it.
class Reference {
 public:
  Reference(const Layer& l, int64_t m, const HostTensor& x, const HostTensor& w)
      : l_(l), m_(m), t_(matrices(m)), x_{l, x}, w_(w) {}
  double weight(int64_t o, int64_t c, int64_t i, int64_t j) const {
    return element(w_, ((o * l_.c + c) * 3 + i) * 3 + j);
  }
  double result(int64_t n, int64_t o, int64_t y, int64_t x) const {
    double sum = 0;
    for (int64_t c = 0; c < l_.c; ++c)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 3; ++j) sum += x_.at(n, c, y + i, x + j) * weight(o, c, i, j);
    return sum;
  }
  // How far a rounded result may be off. Each term A G w G B d B A of the sum that Winograd's form
  // makes of a result passes `roundings` roundings; those of different terms are independent, so
  // that the errors add up as their squares do. Six times the deviation is never seen.
  double tolerance(int64_t n, int64_t o, int64_t y, int64_t x) const {
    // Along a path: 5 operations in each of two transforms of the input and of two of the products,
    // one rounding of the weights, the product and at most c sums.
    const double roundings = 5 * 4 + 1 + 1 + static_cast<double>(l_.c);
    double variance = 0;
    for (size_t a = 0; a < t_.b.size(); ++a)
      for (size_t b = 0; b < t_.b.size(); ++b) {
        const double out = t_.a[at(y % m_)][a] * t_.a[at(x % m_)][b];
        if (out == 0) continue;
        for (int64_t c = 0; c < l_.c; ++c)
          variance += out * out * weight_squares(o, c, a, b) *
                      x_.squares(t_, n, c, y / m_ * m_, x / m_ * m_, a, b);
      }
    return 6 * 0x1p-24 * std::sqrt(roundings * variance) + 1e-30;
  }

 private:
  double weight_squares(int64_t o, int64_t c, size_t a, size_t b) const {
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j)
        sum += std::pow(t_.g[a][at(i)] * t_.g[b][at(j)] * weight(o, c, i, j), 2);
    return sum;
  }
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  const Layer& l_;
  const int64_t m_;
  const Matrices& t_;
  const LayerInput x_;
  const HostTensor& w_;
};

class Winograd : public testing::TestWithParam<std::tuple<Layer, int64_t>> {
 protected:
  const Layer& layer() const { return std::get<0>(GetParam()); }
  int64_t tile() const { return std::get<1>(GetParam()); }
  void SetUp() override {
    const Layer& l = layer();
    x_ = random_tensor(DType::kFloat32, {l.n, l.c, l.h, l.w}, random_);
    w_ = random_tensor(DType::kFloat32, {l.o, l.c, 3, 3}, random_);
  }
  // The layer's own result; between layers it has channels innermost.
  ir::ValueId conv(GraphCall& call, bool between, bool known_at_run = false) {
    const ir::ValueId x = call.input(x_), w = known_at_run ? call.input(w_) : call.constant(w_);
    const auto& p = layer().pads;
    return call.op("winograd_conv",
                   {between ? between_layers(call, x) : x,
                    call.op("winograd_weights", {w}, {{"tile", tile()}})},
                   {{"pads", std::vector<int64_t>(p.begin(), p.end())}});
  }
  void expect_results(const HostTensor& found) {
    const Layer& l = layer();
    const Reference reference(l, tile(), x_, w_);
    ASSERT_EQ(found.shape, (Shape{l.n, l.o, l.out_h(), l.out_w()}));
    for (int64_t i = 0; i < l.n * l.o * l.out_h() * l.out_w(); i += step()) {
      const int64_t x = i % l.out_w(), y = i / l.out_w() % l.out_h(),
                    o = i / (l.out_w() * l.out_h()) % l.o, n = i / (l.out_w() * l.out_h() * l.o);
      ASSERT_NEAR(element(found, i), reference.result(n, o, y, x), reference.tolerance(n, o, y, x))
          << n << ", " << o << ", " << y << ", " << x;
    }
  }
  // Large layers are looked at here and there: the step shares no factor with their extents.
  int64_t step() const { return is_small(layer()) ? 1 : 103; }
  std::mt19937_64 random_{1};
  HostTensor x_, w_;
};

class SmallWinograd : public Winograd {};  // small enough for the interpreter
TEST_P(SmallWinograd, InterpretedEqualsThePlainSums) {
  GraphCall call;
  call.output(conv(call, false));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  expect_results(oracle->outputs[0]);
}

// The same bits on any number of threads.
TEST_P(Winograd, CompiledEqualsThePlainSums) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3", "x86-64"})
    for (const bool between : {true, false}) {
      if (!runs_here(cpu)) continue;
      SCOPED_TRACE(std::string(cpu) + (between ? ", between layers" : ", alone"));
      GraphCall call;
      const ir::ValueId y = conv(call, between);
      call.output(between ? between_layers(call, y) : y);
      auto runs = run_compiled(call.graph, call.inputs, {true, true, true, cpu}, {1, 3});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      expect_results((*runs)[0][0]);
      EXPECT_EQ((*runs)[0][0].bytes, (*runs)[1][0].bytes) << "depends on the number of threads";
      if (HasFailure()) return;
    }
}

// Weights that only the run knows are transformed there, into the panels that the product reads.
TEST_P(Winograd, WeightsOfTheRunEqualThePlainSums) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3", "x86-64"}) {
    if (!runs_here(cpu)) continue;
    SCOPED_TRACE(cpu);
    GraphCall call;
    call.output(between_layers(call, conv(call, true, true)));
    const CompiledForm form{true, true, true, cpu};
    const auto decisions = graph_decisions(call.graph, form);
    ASSERT_TRUE(decisions.ok());
    EXPECT_TRUE(std::any_of(decisions->begin(), decisions->end(), [](const passes::Decision& d) {
      return !d.labels.empty() && d.labels[static_cast<size_t>(d.answer)] == "by_panels";
    }));
    auto runs = run_compiled(call.graph, call.inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    expect_results((*runs)[0][0]);
    EXPECT_EQ((*runs)[0][0].bytes, (*runs)[1][0].bytes) << "depends on the number of threads";
    if (HasFailure()) return;
  }
}

// Tiles in whole blocks where height and width are not known until the run.
TEST_P(Winograd, BlocksEqualThePlainSums) {
  const auto& p = layer().pads;
  for (const std::array<int64_t, 2>& block : {std::array<int64_t, 2>{1, 2}, {2, 4}, {1, 8}}) {
    SCOPED_TRACE(testing::Message() << "blocks of " << block[0] << " x " << block[1]);
    GraphCall call;
    const ir::ValueId x = call.input(x_), w = call.constant(w_);
    for (size_t d : {0, 2, 3}) call.graph.value(x).type.dims[d] = ir::Var("s" + std::to_string(d));
    const ir::ValueId u = call.op("winograd_weights", {w}, {{"tile", tile()}});
    call.output(call.op(
        "relu", {call.op("neg", {call.op("winograd_conv", {x, u},
                                         {{"pads", std::vector<int64_t>(p.begin(), p.end())}})})}));
    call.output(call.graph.nodes[1].outputs[0]);
    CompiledForm form{true, true, true};
    form.find_schedule =
        [block, machine = machine_for(form)](
            const ir::Kernel& k,
            const std::set<std::string>& constants) -> std::optional<passes::Trace> {
      if (k.name.find("winograd_conv") == std::string::npos) return std::nullopt;
      auto choice = passes::choose_trace(k, {.machine = &machine,
                                             .constants = constants,
                                             .answers = {{"winograd_product.down", block[0]},
                                                         {"winograd_product.across", block[1]}}});
      EXPECT_TRUE(choice.ok()) << choice.error().to_string();
      return choice.ok() ? std::optional(choice->trace) : std::nullopt;
    };
    auto runs = run_compiled(call.graph, call.inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    expect_results((*runs)[0][1]);
    for (size_t k : {0, 1}) EXPECT_EQ((*runs)[0][k].bytes, (*runs)[1][k].bytes);
    for (int64_t i = 0; i < *element_count((*runs)[0][1].shape); ++i)
      ASSERT_EQ(element((*runs)[0][0], i), std::max(-element((*runs)[0][1], i), 0.0)) << i;
    if (HasFailure()) return;
  }
}

// Tiles of several images in one task, with all blocks of an image and with some.
TEST_P(Winograd, ImagesOfATaskEqualThePlainSums) {
  const Layer& l = layer();
  for (const int64_t down : {int64_t{1}, (l.out_h() + tile() - 1) / tile()}) {
    GraphCall call;
    call.output(between_layers(call, conv(call, true)));
    CompiledForm form{true, true, true};
    form.find_schedule =
        [&, machine = machine_for(form)](
            const ir::Kernel& k,
            const std::set<std::string>& constants) -> std::optional<passes::Trace> {
      if (k.name.find("winograd_conv") == std::string::npos) return std::nullopt;
      auto choice = passes::choose_trace(
          k, {.machine = &machine,
              .constants = constants,
              .answers = {{"winograd_product.images", l.n}, {"winograd_product.down", down}}});
      EXPECT_TRUE(choice.ok()) << choice.error().to_string();
      return choice.ok() ? std::optional(choice->trace) : std::nullopt;
    };
    auto runs = run_compiled(call.graph, call.inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    expect_results((*runs)[0][0]);
    EXPECT_EQ((*runs)[0][0].bytes, (*runs)[1][0].bytes) << "depends on the number of threads";
    if (HasFailure()) return;
  }
}

// What comes after joins the kernel, and a result that is read twice is written once.
TEST_P(Winograd, EpilogueIsExact) {
  const Layer& l = layer();
  GraphCall call;
  const ir::ValueId y = conv(call, true);
  const ir::ValueId residual =
      call.input(random_tensor(DType::kFloat32, {l.n, l.o, l.out_h(), l.out_w()}, random_));
  const ir::ValueId sum = call.op("add", {y, between_layers(call, residual)});
  const ir::ValueId activated = call.op("relu", {sum});
  call.output(between_layers(call, activated));
  call.output(between_layers(call, y));
  call.output(between_layers(call, call.op("tanh", {sum})));
  for (const bool fuse : {true, false}) {
    auto runs = run_compiled(call.graph, call.inputs, {fuse, true, true}, {2});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    const Tensors& found = (*runs)[0];
    expect_results(found[1]);
    for (int64_t i = 0; i < l.n * l.o * l.out_h() * l.out_w(); ++i) {
      const auto exact =
          static_cast<float>(element(found[1], i)) + static_cast<float>(element(call.inputs[1], i));
      ASSERT_EQ(element(found[0], i), exact < 0 ? 0 : exact) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, Winograd,
                         testing::Combine(testing::ValuesIn(kLayers), testing::ValuesIn(kTiles)));
INSTANTIATE_TEST_SUITE_P(Layers, SmallWinograd,
                         testing::Combine(testing::ValuesIn(small_layers()),
                                          testing::ValuesIn(kTiles)));

}  // namespace
}  // namespace tilewright
