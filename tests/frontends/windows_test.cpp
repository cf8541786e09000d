// auto_pad of convolutions and poolings: the paddings that the standard defines, for extents known
// when compiling and for symbolic ones, and an error for words that are no mode.
#include <cmath>
#include <random>

#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

struct Window {
  const char* mode;
  int64_t kernel, stride, dilation;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  bool valid() const { return std::string(mode) == "VALID"; }
  int64_t out(int64_t in) const {
    return valid() ? (in - reach()) / stride + 1 : (in + stride - 1) / stride;
  }
  int64_t begin(int64_t in) const {
    if (valid()) return 0;
    const int64_t total = std::max<int64_t>((out(in) - 1) * stride + reach() - in, 0);
    return std::string(mode) == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
};
void PrintTo(const Window& w, std::ostream* out) {
  *out << w.mode << " kernel " << w.kernel << " stride " << w.stride << " dilation " << w.dilation;
}
std::vector<Window> windows() {
  std::vector<Window> all;
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER", "VALID"})
    for (const auto& [kernel, stride, dilation] :
         {std::tuple{3, 1, 1}, {4, 1, 1}, {2, 2, 1}, {3, 2, 1}, {4, 3, 2}, {1, 2, 1}, {2, 3, 1}})
      all.push_back({mode, kernel, stride, dilation});
  return all;
}

class AutoPad : public testing::TestWithParam<Window> {
 protected:
  NodeAttributes attributes() const {
    const Window& w = GetParam();
    return {{"auto_pad", std::string(w.mode)},
            {"kernel_shape", std::vector<int64_t>{w.kernel}},
            {"strides", std::vector<int64_t>{w.stride}},
            {"dilations", std::vector<int64_t>{w.dilation}}};
  }
  // One node over x: f32[1, 1, in], its extent given or a symbol; the same operands with both.
  static std::vector<double> run(const std::string& op, const NodeAttributes& attributes,
                                 const std::vector<double>& x, const std::vector<double>& w,
                                 bool symbolic) {
    NodeModel m;
    Names in{m.operand({tensor_of(DType::kFloat32, {1, 1, static_cast<int64_t>(x.size())}, x)})};
    if (!w.empty())
      in.push_back(
          m.operand({tensor_of(DType::kFloat32, {1, 1, static_cast<int64_t>(w.size())}, w), true}));
    if (symbolic) {
      auto* type = m.proto.mutable_graph()->mutable_input(0)->mutable_type();
      auto* dim = type->mutable_tensor_type()->mutable_shape()->mutable_dim(2);
      dim->clear_dim_value();
      dim->set_dim_param("length");
    }
    m.node(op, in, {"y"}, attributes);
    m.output("y");
    const std::vector<Tensor> y = m.run();
    return y.empty() ? std::vector<double>{} : numbers_of(y[0]);
  }
  // `first` with each element of the window that lies in x, by `step(result, element, its number)`.
  template <typename Step>
  static std::vector<double> expected(const std::vector<double>& x, double first, Step step) {
    const Window& w = GetParam();
    const auto in = static_cast<int64_t>(x.size());
    std::vector<double> y(static_cast<size_t>(w.out(in)), first);
    for (size_t i = 0; i < y.size(); ++i)
      for (int64_t k = 0; k < w.kernel; ++k) {
        const int64_t at = static_cast<int64_t>(i) * w.stride + k * w.dilation - w.begin(in);
        if (at >= 0 && at < in) y[i] = step(y[i], x[static_cast<size_t>(at)], k);
      }
    return y;
  }
  template <typename Step>
  void check(const std::string& op, const std::vector<double>& weights, double first, Step step) {
    std::mt19937 random(7);
    for (int64_t in : {7, 8, 9, 12, 17}) {
      std::vector<double> x(static_cast<size_t>(in));
      for (double& e : x) e = static_cast<int>(random() % 17) - 8;
      const std::vector<double> wanted = expected(x, first, step);
      for (bool symbolic : {false, true}) {
        SCOPED_TRACE(op + " of " + std::to_string(in) + (symbolic ? ", symbolic" : ""));
        EXPECT_EQ(run(op, attributes(), x, weights, symbolic), wanted);
      }
    }
  }
};

TEST_P(AutoPad, OfConv) {
  std::vector<double> weights;
  for (int64_t k = 0; k < GetParam().kernel; ++k) weights.push_back(static_cast<double>(2 * k - 3));
  check("Conv", weights, 0,
        [&](double y, double x, int64_t k) { return y + x * weights[static_cast<size_t>(k)]; });
}
TEST_P(AutoPad, OfMaxPool) {
  check("MaxPool", {}, std::numeric_limits<float>::lowest(),
        [](double y, double x, int64_t) { return std::max(y, x); });
}
INSTANTIATE_TEST_SUITE_P(Windows, AutoPad, testing::ValuesIn(windows()));

// Each result is a window of its own; so many are wanted, and so many of them are cropped before.
TEST(AutoPadOfConvTranspose, CropsAsTheStandardSays) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER", "VALID"})
    for (bool symbolic : {false, true}) {
      const int64_t in = 5, stride = 2, kernel = 3;
      NodeModel m;
      std::vector<double> x, w{1, 10, 100};
      for (int64_t i = 0; i < in; ++i) x.push_back(static_cast<double>(i + 1));
      Names names{m.operand({tensor_of(DType::kFloat32, {1, 1, in}, x)}),
                  m.operand({tensor_of(DType::kFloat32, {1, 1, kernel}, w), true})};
      if (symbolic)
        m.proto.mutable_graph()
            ->mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(2)
            ->set_dim_param("length");
      m.node("ConvTranspose", names, {"y"},
             {{"auto_pad", std::string(mode)}, {"strides", std::vector<int64_t>{stride}}});
      m.output("y");
      const std::string name = mode;
      const int64_t full = (in - 1) * stride + kernel, out = name == "VALID" ? full : in * stride,
                    total = full - out,
                    begin = name == "SAME_UPPER" ? total / 2 : total - total / 2;
      std::vector<double> wanted(static_cast<size_t>(out));
      for (int64_t i = 0; i < in; ++i)
        for (int64_t k = 0; k < kernel; ++k)
          if (const int64_t at = i * stride + k - begin; at >= 0 && at < out)
            wanted[static_cast<size_t>(at)] +=
                x[static_cast<size_t>(i)] * w[static_cast<size_t>(k)];
      const std::vector<Tensor> y = m.run();
      ASSERT_EQ(y.size(), 1u) << mode;
      EXPECT_EQ(numbers_of(y[0]), wanted) << mode << symbolic;
    }
}

TEST(AutoPadWords, OthersAreRefused) {
  const Operand x{tensor_of(DType::kFloat32, {1, 1, 8}, {1})},
      w{tensor_of(DType::kFloat32, {1, 1, 2}, {1}), true},
      bytes{tensor_of(DType::kUInt8, {1, 1, 8}, {1})},
      small{tensor_of(DType::kUInt8, {1, 1, 2}, {1}), true};
  for (const auto& [op, operands] : {std::pair<std::string, std::vector<Operand>>{"Conv", {x, w}},
                                     {"ConvTranspose", {x, w}},
                                     {"MaxPool", {x}},
                                     {"AveragePool", {x}},
                                     {"LpPool", {x}},
                                     {"ConvInteger", {bytes, small}}})
    for (const char* word : {"SAME", "same_upper", "valid", ""}) {
      NodeModel m;
      Names in;
      for (const Operand& o : operands) in.push_back(m.operand(o));
      m.node(op, in, {"y"},
             {{"auto_pad", std::string(word)}, {"kernel_shape", std::vector<int64_t>{2}}});
      m.output("y");
      const auto session = m.session();
      ASSERT_FALSE(session.ok()) << op << " " << word;
      const std::string text = session.error().to_string();
      for (const std::string& part : {std::string("'node'"), "'" + std::string(word) + "'",
                                      std::string("NOTSET, SAME_UPPER, SAME_LOWER or VALID")})
        EXPECT_NE(text.find(part), std::string::npos) << op << " " << part << "\n" << text;
    }
}

}  // namespace
}  // namespace tilewright
