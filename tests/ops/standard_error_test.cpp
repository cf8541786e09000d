// What `--numerics standard` may be off by: layers with 3x3 windows at `exact` and at `standard`,
// both against sums in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

// As runtime/core/numerics.h states it: the largest error over a layer, in multiples of that of
// `exact`.
constexpr double kMultiple = 5;

struct Layer {
  int64_t channels, results, height, width;
};
// Of 16 to 512 channels, no more than some milliseconds of work.
Layer random_layer(std::mt19937_64& random) {
  auto pick = [&](std::initializer_list<int64_t> all) {
    return all.begin()[random() % all.size()];
  };
  Layer l{pick({16, 24, 32, 64, 96, 128, 256, 512}), pick({16, 32, 48, 64, 128, 256, 512}),
          4 + static_cast<int64_t>(random() % 60), 4 + static_cast<int64_t>(random() % 60)};
  while (l.channels * l.results * l.height * l.width > int64_t{1} << 25) {
    l.height = (l.height + 1) / 2;
    l.width = (l.width + 1) / 2;
  }
  return l;
}

HostTensor widened(const HostTensor& t) {
  HostTensor wide(DType::kFloat64, t.shape);
  for (int64_t i = 0; i < t.size(); ++i) wide.data<double>()[i] = element(t, i);
  return wide;
}
GraphCall conv(const HostTensor& x, const HostTensor& w) {
  GraphCall call;
  call.output(call.op("conv", {call.input(x), call.constant(w)},
                      {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  return call;
}
HostTensor run(const GraphCall& call, Numerics numerics) {
  CompiledForm form{true, true, true};
  form.numerics = numerics;
  auto runs = run_compiled(call.graph, call.inputs, form, {3});
  TW_CHECK(runs.ok());
  return (*runs)[0][0];
}
bool has_winograd(const GraphCall& call) {
  CompiledForm form{true, true, true};
  form.numerics = Numerics::kStandard;
  auto program = lower_graph_for(call.graph, form);
  TW_CHECK(program.ok());
  for (const ir::Kernel& k : program->kernels)
    if (k.name.find("winograd_conv") != std::string::npos) return true;
  return false;
}

TEST(StandardError, OfThreeByThreeLayers) {
  const char* asked = std::getenv("TILEWRIGHT_GRAPHS");
  const int layers = asked ? std::atoi(asked) : 24;
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  int rewritten = 0;
  double worst = 0;
  for (int n = 0; n < layers; ++n) {
    const Layer l = random_layer(random);
    HostTensor x(DType::kFloat32, {1, l.channels, l.height, l.width}),
        w(DType::kFloat32, {l.results, l.channels, 3, 3});
    for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = normal(random);
    const auto scale = static_cast<float>(1 / std::sqrt(9.0 * static_cast<double>(l.channels)));
    for (int64_t i = 0; i < w.size(); ++i) w.data<float>()[i] = normal(random) * scale;
    const GraphCall call = conv(x, w);
    if (!has_winograd(call)) continue;
    ++rewritten;
    const HostTensor expected = run(conv(widened(x), widened(w)), Numerics::kExact);
    auto error = [&](Numerics numerics) {
      const HostTensor found = run(call, numerics);
      double largest = 0;
      for (int64_t i = 0; i < found.size(); ++i)
        largest = std::max(largest, std::abs(element(found, i) - element(expected, i)));
      return largest;
    };
    const double multiple = error(Numerics::kStandard) / error(Numerics::kExact);
    EXPECT_LE(multiple, kMultiple)
        << l.channels << " channels to " << l.results << ", " << l.height << "x" << l.width;
    worst = std::max(worst, multiple);
  }
  EXPECT_GE(2 * rewritten, layers) << "too few layers are Winograd convolutions";
  std::printf("%d of %d layers, the largest multiple %.2f\n", rewritten, layers, worst);
}

}  // namespace
}  // namespace tilewright
