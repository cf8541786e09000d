// ConvTranspose models against the sums that define the operator.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

using Ints = std::vector<int64_t>;

// Two spatial dimensions; pads: begins, then ends.
struct Layer {
  const char* name;
  Ints in{1, 1};
  int64_t channels = 1, group = 1, results = 1;  // results: of all groups
  Ints kernel{1, 1}, strides{1, 1}, pads{0, 0, 0, 0}, dilations{1, 1}, more{0, 0};
  int64_t out(size_t d) const {
    return (in[d] - 1) * strides[d] + dilations[d] * (kernel[d] - 1) + 1 + more[d] - pads[d] -
           pads[d + 2];
  }
};
void PrintTo(const Layer& l, std::ostream* out) { *out << l.name; }

const Layer kLayers[] = {
    {"phases_of_their_own", {5, 7}, 3, 1, 17, {4, 4}, {2, 2}, {1, 1, 1, 1}},
    {"phases_of_unequal_windows", {5, 7}, 4, 1, 16, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
    {"few_channels", {9, 4}, 5, 1, 3, {4, 4}, {2, 2}, {1, 1, 1, 1}},
    {"no_overlap", {6, 5}, 4, 1, 16, {2, 2}, {2, 2}},
    {"an_odd_extent", {5, 6}, 4, 1, 16, {3, 3}, {2, 2}, {1, 1, 1, 1}},
    {"stride_one", {5, 6}, 4, 1, 16, {3, 5}, {1, 1}, {1, 2, 1, 2}},
    {"groups", {5, 6}, 6, 3, 48, {4, 3}, {2, 1}, {1, 1, 1, 1}},
    {"dilated", {5, 6}, 4, 1, 16, {3, 3}, {2, 2}, {2, 2, 2, 2}, {2, 2}, {1, 1}},
    {"cropped_beyond_a_stride", {7, 6}, 4, 1, 16, {6, 6}, {2, 2}, {3, 4, 3, 4}},
    {"cropped_beyond_the_window", {9, 9}, 4, 1, 16, {2, 2}, {2, 2}, {4, 2, 2, 4}},
    {"longer_than_the_window", {5, 6}, 4, 1, 16, {2, 3}, {3, 3}, {0, 0, 0, 0}, {1, 1}, {1, 2}},
    {"many_phases", {5, 6}, 4, 1, 16, {8, 8}, {4, 4}, {2, 2, 2, 2}},
    {"one_element", {1, 1}, 7, 1, 19, {4, 4}, {1, 1}},
};

int64_t count(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
std::vector<float> random(int64_t n, std::mt19937& engine) {
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = values(engine);
  return v;
}

// y = Relu(ConvTranspose(x, w, b)), x: [1, channels, in...], its batch named
std::string model_of(const Layer& l, const std::vector<float>& w, const std::vector<float>& b) {
  onnx_format::ModelProto model = small_model();
  auto* graph = model.mutable_graph();
  graph->clear_initializer();
  graph->clear_node();
  auto* shape = graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->add_dim()->set_dim_param("batch");
  for (int64_t d : {l.channels, l.in[0], l.in[1]}) shape->add_dim()->set_dim_value(d);
  set_floats(graph->add_initializer(), "w",
             {l.channels, l.results / l.group, l.kernel[0], l.kernel[1]}, w);
  set_floats(graph->add_initializer(), "b", {l.results}, b);
  auto* node = add_node(graph->mutable_node(), "ConvTranspose", {"x", "w", "b"}, {"t"}, "deconv");
  const auto add = [&](const char* name, const Ints& values) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx_format::INTS);
    for (int64_t v : values) attribute->add_ints(v);
  };
  add("strides", l.strides);
  add("pads", l.pads);
  add("dilations", l.dilations);
  add("output_padding", l.more);
  auto* group = node->add_attribute();
  group->set_name("group");
  group->set_type(onnx_format::INT);
  group->set_i(l.group);
  add_node(graph->mutable_node(), "Relu", {"t"}, {"y"}, "relu");
  return model.SerializeAsString();
}

std::vector<double> sums(const Layer& l, int64_t batch, const std::vector<float>& x,
                         const std::vector<float>& w, const std::vector<float>& b) {
  const int64_t oh = l.out(0), ow = l.out(1), each = l.results / l.group,
                of_group = l.channels / l.group;
  std::vector<double> y(static_cast<size_t>(batch * l.results * oh * ow));
  const auto at = [](const auto& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  };
  for (int64_t i = 0; i < batch * l.results * oh * ow; ++i)
    y[static_cast<size_t>(i)] = at(b, i / (oh * ow) % l.results);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < l.channels; ++c)
      for (int64_t h = 0; h < l.in[0]; ++h)
        for (int64_t v = 0; v < l.in[1]; ++v)
          for (int64_t m = 0; m < each; ++m)
            for (int64_t kh = 0; kh < l.kernel[0]; ++kh)
              for (int64_t kv = 0; kv < l.kernel[1]; ++kv) {
                const int64_t r = h * l.strides[0] + kh * l.dilations[0] - l.pads[0],
                              s = v * l.strides[1] + kv * l.dilations[1] - l.pads[1];
                if (r < 0 || r >= oh || s < 0 || s >= ow) continue;
                const int64_t out = ((n * l.results + c / of_group * each + m) * oh + r) * ow + s;
                y[static_cast<size_t>(out)] +=
                    at(x, ((n * l.channels + c) * l.in[0] + h) * l.in[1] + v) *
                    at(w, ((c * each + m) * l.kernel[0] + kh) * l.kernel[1] + kv);
              }
  for (double& v : y) v = std::max(v, 0.0);
  return y;
}

class ConvTranspose : public testing::TestWithParam<Layer> {};

TEST_P(ConvTranspose, EqualsItsSums) {
  const Layer& l = GetParam();
  constexpr int64_t kBatch = 2;
  std::mt19937 engine(7);
  const std::vector<float> w = random(l.channels * l.results / l.group * count(l.kernel), engine),
                           b = random(l.results, engine),
                           x = random(kBatch * l.channels * count(l.in), engine);
  auto model = parse(model_of(l, w, b));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  auto executable = compile_in_memory(**model, {}, {});
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  auto session = Session::create(*executable, {});
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  Tensor in = Tensor::allocate(DType::kFloat32, {kBatch, l.channels, l.in[0], l.in[1]}).value();
  std::copy(x.begin(), x.end(), in.data_as<float>());
  std::vector<Tensor> outputs;
  auto status = (*session)->run(std::vector{in}, outputs);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(outputs[0].shape(), (Shape{kBatch, l.results, l.out(0), l.out(1)}));
  const std::vector<double> expected = sums(l, kBatch, x, w, b);
  ASSERT_EQ(outputs[0].element_count(), static_cast<int64_t>(expected.size()));
  const double terms = static_cast<double>(l.channels / l.group * count(l.kernel) + 1);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(outputs[0].data_as<float>()[i], expected[i], terms * terms * 0x1p-24) << i;
}

INSTANTIATE_TEST_SUITE_P(Layers, ConvTranspose, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilewright
