// ONNX nodes that draw random numbers: how they are distributed, which runs and nodes draw the same
// ones, and which draw others.
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "runtime/c_api.h"
#include "tests/frontends/run_model.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

using Numbers = std::vector<double>;
constexpr int64_t kMany = 100000;

double mean(const Numbers& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
// Results of the runs of one session, output after output.
std::vector<Numbers> runs_of(const NodeModel& m, int runs, const SessionOptions& options = {}) {
  std::vector<Numbers> all;
  auto session = m.session({}, options);
  if (!session.ok()) {
    ADD_FAILURE() << session.error().to_string();
    return all;
  }
  for (int k = 0; k < runs; ++k) {
    std::vector<Tensor> outputs;
    Status s = (*session)->run(m.inputs, outputs);
    if (!s.ok()) ADD_FAILURE() << s.error().to_string();
    for (const Tensor& t : outputs) all.push_back(numbers_of(t));
  }
  return all;
}
SessionOptions with_seed(uint64_t seed, int threads = 1) {
  SessionOptions o;
  o.seed = seed;
  o.threads = threads;
  return o;
}
Tensor zeros(const Shape& shape) {
  return tensor_of(DType::kFloat32, shape,
                   Numbers(static_cast<size_t>(element_count(shape).value()), 0));
}

// Two nodes alike over one operand.
NodeModel two_alike(const std::string& op, const NodeAttributes& attributes) {
  NodeModel m(22);
  const std::string x = m.operand({zeros({37, 30})});
  for (const char* y : {"y", "z"}) {
    m.node(op, {x}, {y}, attributes);
    m.output(y);
  }
  return m;
}

TEST(RandomNodes, WithoutSeedDrawTheirOwnEachRun) {
  for (const char* op : {"RandomNormalLike", "RandomUniformLike"}) {
    const NodeModel m = two_alike(op, {});
    const auto a = runs_of(m, 2, with_seed(7, 1)), b = runs_of(m, 2, with_seed(7, 3)),
               c = runs_of(m, 1, with_seed(8)), d = runs_of(m, 1), e = runs_of(m, 1);
    ASSERT_EQ(a.size(), 4u);
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < i; ++j) EXPECT_NE(a[i], a[j]) << op;
    EXPECT_EQ(a, b) << "run k of a session is run k of another with its seed";
    EXPECT_NE(a[0], c[0]);
    EXPECT_NE(d[0], e[0]) << "seeds of the system differ";
  }
}
TEST(RandomNodes, WithSeedDrawTheSame) {
  const NodeModel m = two_alike("RandomNormalLike", {{"seed", 3.0}}),
                  other = two_alike("RandomNormalLike", {{"seed", 4.0}});
  const auto a = runs_of(m, 2), b = runs_of(m, 1, with_seed(9)), c = runs_of(other, 1);
  for (const Numbers& x : a) EXPECT_EQ(x, a[0]);
  EXPECT_EQ(b[0], a[0]);
  EXPECT_NE(c[0], a[0]);
}

TEST(RandomNodes, HaveTheirRangeAndType) {
  const std::vector<int64_t> shape{100, 1000};
  for (const int64_t type : {int64_t{1}, int64_t{11}}) {
    const auto u = run_node("RandomUniform", {},
                            {{"shape", shape}, {"dtype", type}, {"low", -2.0}, {"high", 6.0}});
    ASSERT_EQ(u.size(), 1u);
    EXPECT_EQ(u[0].dtype(), type == 1 ? DType::kFloat32 : DType::kFloat64);
    EXPECT_EQ(u[0].shape(), (Shape{100, 1000}));
    const Numbers x = numbers_of(u[0]);
    EXPECT_NEAR(mean(x), 2, 8 / std::sqrt(12.0 * kMany) * 4);
    EXPECT_GE(*std::min_element(x.begin(), x.end()), -2);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 6);
    const auto n = run_node("RandomNormal", {},
                            {{"shape", shape}, {"dtype", type}, {"mean", 5.0}, {"scale", 3.0}});
    ASSERT_EQ(n.size(), 1u);
    Numbers y = numbers_of(n[0]);
    EXPECT_NEAR(mean(y), 5, 3 / std::sqrt(1.0 * kMany) * 4);
    for (double& v : y) v = (v - 5) * (v - 5);
    EXPECT_NEAR(mean(y), 9, 9 * std::sqrt(2.0 / kMany) * 4);
  }
  // Halves have fewer bits: none of their numbers becomes 1.
  for (const int64_t half : {int64_t{10}, int64_t{16}}) {
    NodeModel m(22);
    m.node("RandomUniform", {}, {"h"}, {{"shape", shape}, {"dtype", half}});
    m.node("Cast", {"h"}, {"y"}, {{"to", int64_t{1}}});
    m.output("y");
    const Numbers x = numbers_of(m.run().at(0));
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
    EXPECT_NEAR(mean(x), 0.5, half == 10 ? 0.005 : 0.01);
  }
}

TEST(RandomNodes, BernoulliHasItsProbability) {
  Numbers p(kMany, 0.3);
  p[0] = 0;
  p[1] = 1;
  p[2] = NAN;
  for (const DType t : {DType::kFloat32, DType::kFloat64}) {
    NodeModel m(22);
    const std::string x = m.operand({tensor_of(t, {kMany}, p)});
    m.node("Bernoulli", {x}, {"y"}, {{"dtype", int64_t{9}}});
    m.node("Bernoulli", {x}, {"z"});
    m.output("y");
    m.output("z");
    double sum = 0;
    for (const Numbers& y : runs_of(m, 8, with_seed(5))) {
      EXPECT_EQ(y[0], 0);
      EXPECT_EQ(y[1], 1);
      EXPECT_EQ(y[2], 0);
      for (const double v : y) EXPECT_TRUE(v == 0 || v == 1);
      sum += mean(y);
    }
    EXPECT_NEAR(sum / 16, 0.3, std::sqrt(0.21 / (16 * kMany)) * 4);
  }
}

TEST(RandomNodes, MultinomialHasItsProbabilities) {
  const Numbers p{0.1, 0, 0.45, 0.05, 0.4, 0};
  Numbers logs;
  for (const double shift : {0.0, 50.0})  // only differences of logarithms matter
    for (const double v : p) logs.push_back(std::log(v) + shift);
  for (const int64_t type : {int64_t{6}, int64_t{7}}) {
    const auto y = run_node("Multinomial", {{tensor_of(DType::kFloat32, {2, 6}, logs)}},
                            {{"sample_size", kMany}, {"dtype", type}, {"seed", 1.5}});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_EQ(y[0].dtype(), type == 6 ? DType::kInt32 : DType::kInt64);
    ASSERT_EQ(y[0].shape(), (Shape{2, kMany}));
    const Numbers drawn = numbers_of(y[0]);
    for (size_t row = 0; row < 2; ++row) {
      std::array<double, 6> hits{};
      for (size_t i = 0; i < kMany; ++i) {
        const double c = drawn[row * kMany + i];
        ASSERT_TRUE(c >= 0 && c < 6);
        ++hits[static_cast<size_t>(c)];
      }
      double chi = 0;
      for (size_t c = 0; c < 6; ++c) {
        if (p[c] == 0)
          EXPECT_EQ(hits[c], 0);
        else
          chi += std::pow(hits[c] - p[c] * kMany, 2) / (p[c] * kMany);
      }
      EXPECT_LT(chi, 16.3) << "3 degrees of freedom: above this once in a thousand times";
    }
  }
}

struct DropoutRun {
  Numbers y, mask;
};
DropoutRun dropout(const Tensor& x, const Operand& ratio, const Operand& training, int64_t opset) {
  const auto out = run_node("Dropout", {{x}, ratio, training}, {}, opset, 2);
  if (out.size() != 2) return {};
  EXPECT_EQ(out[1].dtype(), DType::kBool);
  return {numbers_of(out[0]), numbers_of(out[1])};
}
Operand flag(bool value, bool known) {
  Tensor t = Tensor::allocate(DType::kBool, {}).value();
  *t.data_as<uint8_t>() = value;
  return {t, known};
}

TEST(RandomNodes, DropoutKeepsTheExpectation) {
  Numbers x(kMany);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1 + static_cast<double>(i % 7);
  const Tensor in = tensor_of(DType::kFloat32, {kMany}, x);
  for (const int64_t opset : {12, 13, 22})
    for (const bool known : {true, false}) {
      const Operand ratio{tensor_of(DType::kFloat32, {}, {0.25}), known};
      const DropoutRun r = dropout(in, ratio, flag(true, known), opset);
      ASSERT_EQ(r.y.size(), x.size());
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(r.y[i], r.mask[i] ? static_cast<float>(x[i]) * (1 / 0.75f) : 0) << i;
      EXPECT_NEAR(mean(r.mask), 0.75, std::sqrt(0.1875 / kMany) * 4);
      EXPECT_NEAR(mean(r.y), mean(x), 0.06);
      const DropoutRun off = dropout(in, ratio, flag(false, known), opset);
      EXPECT_EQ(off.y, x);
      EXPECT_EQ(mean(off.mask), 1);
    }
  const DropoutRun all = dropout(in, {}, flag(true, true), 22);
  EXPECT_NEAR(mean(all.mask), 0.5, std::sqrt(0.25 / kMany) * 4) << "the ratio without one";
  const DropoutRun none =
      dropout(in, {tensor_of(DType::kFloat32, {}, {0}), true}, flag(true, true), 22);
  EXPECT_EQ(none.y, x);
}

TEST(RandomNodes, DropoutWithSeedDropsTheSame) {
  const Operand x{tensor_of(DType::kFloat32, {1000}, Numbers(1000, 1))};
  auto of = [&](int64_t seed) {
    return numbers_of(run_node("Dropout", {x, {}, flag(true, true)}, {{"seed", seed}}, 22).at(0));
  };
  EXPECT_EQ(of(3), of(3));
  EXPECT_NE(of(3), of(4));
}

// Each iteration draws its own; a seed fixes them all. Also where a loop stands in another.
TEST(RandomNodes, IterationsDrawTheirOwn) {
  for (const bool seeded : {true, false})
    for (const bool nested : {false, true}) {
      NodeModel m(22);
      const std::string trips = m.operand({tensor_of(DType::kInt64, {}, {4}), true});
      auto loop_around = [&](onnx_format::GraphProto* body, const std::string& tag) {
        body->set_name(tag);
        for (const char* in : {"i", "c"}) add_value(body->mutable_input(), tag + in);
        body->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
        body->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(9);
        for (const char* out : {"k", "y"}) add_value(body->mutable_output(), tag + out);
        add_node(body->mutable_node(), "Identity", {tag + "c"}, {tag + "k"});
      };
      auto draw = [&](onnx_format::GraphProto* body, const std::string& to) {
        auto* node = add_node(body->mutable_node(), "RandomUniform", {}, {to});
        auto* shape = node->add_attribute();
        shape->set_name("shape");
        shape->set_type(onnx_format::INTS);
        shape->add_ints(5);
        if (!seeded) return;
        auto* seed = node->add_attribute();
        seed->set_name("seed");
        seed->set_type(onnx_format::FLOAT);
        seed->set_f(2);
      };
      auto* outer = m.node("Loop", {trips, ""}, {"y"})->add_attribute();
      outer->set_name("body");
      outer->set_type(onnx_format::GRAPH);
      loop_around(outer->mutable_g(), "a");
      if (nested) {
        auto* inner = add_node(outer->mutable_g()->mutable_node(), "Loop", {trips, ""}, {"ay"})
                          ->add_attribute();
        inner->set_name("body");
        inner->set_type(onnx_format::GRAPH);
        loop_around(inner->mutable_g(), "b");
        draw(inner->mutable_g(), "by");
      } else {
        draw(outer->mutable_g(), "ay");
      }
      m.output("y");
      const auto runs = runs_of(m, 2, with_seed(3));
      ASSERT_EQ(runs.size(), 2u);
      EXPECT_EQ(runs[0] == runs[1], seeded);
      std::set<double> different(runs[0].begin(), runs[0].end());
      EXPECT_EQ(different.size(), nested ? 80u : 20u);
    }
}

// A branch draws from the key of the run too.
TEST(RandomNodes, BranchesDraw) {
  NodeModel m(22);
  const std::string on = m.operand(flag(true, false)), x = m.operand({zeros({8})});
  auto* node = m.node("If", {on}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* a = node->add_attribute();
    a->set_name(name);
    a->set_type(onnx_format::GRAPH);
    a->mutable_g()->set_name(name);
    const std::string y = std::string(name) + "_y";
    add_node(a->mutable_g()->mutable_node(), "RandomNormalLike", {x}, {y});
    add_value(a->mutable_g()->mutable_output(), y);
  }
  m.output("y");
  const auto a = runs_of(m, 2, with_seed(3)), b = runs_of(m, 1, with_seed(3));
  EXPECT_NE(a[0], a[1]);
  EXPECT_EQ(a[0], b[0]);
}

// As many numbers as only the run knows.
TEST(RandomNodes, ExtentsThatTheRunDefines) {
  NodeModel m(22);
  m.node("NonZero", {m.operand({tensor_of(DType::kFloat32, {5}, {1, 0, 2, 3, 0})})}, {"places"});
  m.node("Transpose", {"places"}, {"rows"});
  m.node("Cast", {"rows"}, {"logs"}, {{"to", int64_t{1}}});
  m.node("RandomUniformLike", {"logs"}, {"u"});
  m.node("Multinomial", {"logs"}, {"c"}, {{"sample_size", int64_t{4}}});
  for (const char* y : {"u", "c"}) m.output(y);
  const auto out = m.run();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].shape(), (Shape{3, 1}));
  EXPECT_EQ(out[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(numbers_of(out[1]), Numbers(12, 0)) << "there is one class";
}

TEST(RandomNodes, WrongOnesAreRefused) {
  const Operand x{zeros({2, 3})};
  auto error = [&](const std::string& op, const NodeAttributes& a) {
    NodeModel m(22);
    m.node(op, {m.operand(x)}, {"y"}, a);
    m.output("y");
    auto session = m.session();
    return session.ok() ? std::string() : session.error().to_string();
  };
  EXPECT_NE(error("RandomUniformLike", {{"dtype", int64_t{7}}}).find("i64"), std::string::npos);
  EXPECT_NE(error("Multinomial", {{"sample_size", int64_t{0}}}).find("'sample_size', found 0"),
            std::string::npos);
  EXPECT_NE(error("Multinomial", {{"dtype", int64_t{1}}}).find("f32"), std::string::npos);
}

// A batch of training: y, and running statistics with the variance of the population.
TEST(TrainingNodes, BatchNormalization) {
  const int64_t n = 3, c = 2, s = 5;
  Numbers x;
  for (int64_t i = 0; i < n * c * s; ++i) x.push_back(std::sin(static_cast<double>(i) * 1.7) * 3);
  const Numbers scale{1.5, -0.5}, bias{0.25, 2}, old_mean{1, -1}, old_var{2, 0.5};
  auto vector = [](const Numbers& v) { return Operand{tensor_of(DType::kFloat32, {2}, v)}; };
  for (const int64_t opset : {14, 15, 22}) {
    const auto out =
        run_node("BatchNormalization",
                 {{tensor_of(DType::kFloat32, {n, c, s}, x)},
                  vector(scale),
                  vector(bias),
                  vector(old_mean),
                  vector(old_var)},
                 {{"training_mode", int64_t{1}}, {"momentum", 0.8}, {"epsilon", 0.01}}, opset, 3);
    ASSERT_EQ(out.size(), 3u);
    for (int64_t k = 0; k < c; ++k) {
      Numbers channel;
      for (int64_t i = 0; i < n * s; ++i)
        channel.push_back(static_cast<float>(x[static_cast<size_t>((i / s * c + k) * s + i % s)]));
      const double m = mean(channel);
      Numbers squares;
      for (const double v : channel) squares.push_back((v - m) * (v - m));
      const auto at = static_cast<size_t>(k);
      const double var = mean(squares);
      EXPECT_NEAR(numbers_of(out[1])[at], old_mean[at] * 0.8 + m * 0.2, 1e-5);
      EXPECT_NEAR(numbers_of(out[2])[at], old_var[at] * 0.8 + var * 0.2, 1e-5);
      for (int64_t i = 0; i < n * s; ++i)
        EXPECT_NEAR(
            numbers_of(out[0])[static_cast<size_t>((i / s * c + k) * s + i % s)],
            scale[at] * (channel[static_cast<size_t>(i)] - m) / std::sqrt(var + 0.01) + bias[at],
            1e-5);
    }
  }
}

// Through the C interface, from a file: the seed of the options, and of callers who know none.
TEST(RandomNodes, SeedsOfTheCInterface) {
  const NodeModel m = two_alike("RandomNormalLike", {});
  auto model = parse(m.proto);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const ScratchFolder folder;
  const std::string path = (folder.path() / "model.so").string();
  const Status compiled = compile_to_file(**model, {{}}, {}, path);
  ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
  tw_model* loaded = nullptr;
  ASSERT_EQ(tw_model_load(path.c_str(), &loaded), TW_OK) << tw_last_error();
  EXPECT_EQ(tw_model_input_count(loaded), 1u) << "the key of the run is no input";
  auto runs = [&](const tw_session_options* options) {
    std::vector<Numbers> all;
    tw_session* session = nullptr;
    EXPECT_EQ(tw_session_create(loaded, options, &session), TW_OK) << tw_last_error();
    std::vector<float> zero(37 * 30);
    int64_t shape[] = {37, 30};
    DLTensor x{};
    x.data = zero.data();
    x.device = {kDLCPU, 0};
    x.ndim = 2;
    x.dtype = {kDLFloat, 32, 1};
    x.shape = shape;
    const DLTensor* inputs[] = {&x};
    for (int k = 0; k < 2; ++k) {
      DLTensor* outputs[] = {nullptr, nullptr};
      EXPECT_EQ(tw_session_run(session, inputs, 1, outputs, 2), TW_OK) << tw_last_error();
      const auto* data = static_cast<const float*>(outputs[0]->data);
      all.emplace_back(data, data + zero.size());
    }
    tw_session_free(session);
    return all;
  };
  tw_session_options options{};
  options.struct_size = sizeof options;
  options.seed = 11;
  const auto a = runs(&options), b = runs(&options), drawn = runs(nullptr);
  EXPECT_EQ(a, b);
  EXPECT_NE(a[0], a[1]);
  EXPECT_NE(a[0], drawn[0]);
  options.struct_size = offsetof(tw_session_options, seed);
  EXPECT_NE(runs(&options)[0], a[0]) << "a field behind the caller's structure is not read";
  tw_model_free(loaded);
}

}  // namespace
}  // namespace tilewright
