// Transposed convolutions: what nodes may be, and the operator's own loops, which are compiled where
// weights have extents that the compiler does not know.
#include "ir/graph/infer.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

using Ints = std::vector<int64_t>;

// The type of a node over operands of these types, or its error.
std::string inferred(const ir::TensorType& x, const ir::TensorType& w,
                     ir::Attributes attributes = {}) {
  ir::Graph g;
  const ir::ValueId a = g.add_value("x", x), b = g.add_value("w", w);
  g.inputs = {a, b};
  auto made = ir::add_node(g, "conv_transpose", {a, b}, std::move(attributes), 1, "y", {"layer"});
  return made.ok() ? to_string(g.value(made->at(0)).type) : made.error().to_string();
}
ir::TensorType f32(std::vector<ir::Expr> dims) { return {DType::kFloat32, std::move(dims)}; }

TEST(ConvTransposeTypes, FollowFromStridesPadsAndGroups) {
  const ir::Var n("n"), h("h"), m("m"), c("c");
  EXPECT_EQ(inferred(f32({2, 6, 5}), f32({6, 4, 3})), "f32[2, 4, 7]");
  EXPECT_EQ(inferred(f32({2, 6, 5}), f32({6, 4, 3}), {{"group", int64_t{3}}}), "f32[2, 12, 7]");
  EXPECT_EQ(inferred(f32({n, 6, h}), f32({6, 4, 4}),
                     {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"dilations", Ints{1}}}),
            "f32[n, 4, h * 2]");
  EXPECT_EQ(
      inferred(f32({1, 6, 5, 4}), f32({6, 4, 3, 2}),
               {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, -2, 0}}, {"dilations", Ints{2, 1}}}),
      "f32[1, 4, 14, 11]");
  EXPECT_EQ(inferred(f32({1, c, 5}), f32({6, m, 3}), {{"pads", ir::Extents{{h, 0}}}}),
            "f32[1, m, h * -1 + 7]");
  EXPECT_EQ(inferred({DType::kFloat16, {1, 3, 4}}, {DType::kFloat16, {3, 5, 1}}), "f16[1, 5, 4]");
  EXPECT_EQ(inferred({DType::kFloat16, {1, 3, 4}}, {DType::kFloat16, {3, 5, 1}},
                     {{"out_dtype", std::string("f32")}}),
            "f32[1, 5, 4]");
}

TEST(ConvTransposeTypes, ErrorsNameNodeTypesAndRule) {
  const ir::Var k("k"), c("c");
  const ir::TensorType x = f32({2, 6, 5}), w = f32({6, 4, 3});
  const std::pair<std::string, std::string> wrong[] = {
      {inferred(f32({2, 6}), f32({6, 4})),
       "x is f32[2, 6], w is f32[6, 4]: expected [n, c, spatial"},
      {inferred(x, f32({6, 4, 3, 3})), "w is f32[6, 4, 3, 3]: expected [n, c, spatial"},
      {inferred(x, {DType::kFloat16, {6, 4, 3}}),
       "w is f16[6, 4, 3]: expected numbers of one type"},
      {inferred({DType::kBool, {2, 6, 5}}, {DType::kBool, {6, 4, 3}}), "numbers of one type"},
      {inferred(x, w, {{"out_dtype", std::string("f33")}}), "out_dtype 'f33' is no type"},
      {inferred(x, f32({5, 4, 3})),
       "channels do not fit: x is f32[2, 6, 5], w is f32[5, 4, 3], group is 1"},
      {inferred(x, w, {{"group", int64_t{4}}}), "group is 4"},
      {inferred(x, w, {{"group", int64_t{0}}}), "group is 0"},
      {inferred(f32({2, c, 5}), f32({c, 4, 3}), {{"group", int64_t{2}}}),
       "groups of channels whose number is not known at compile time"},
      {inferred(x, f32({6, 4, k})), "kernel extents unknown at compile time"},
      {inferred(x, w, {{"strides", Ints{2, 2}}}), "do not fit 1 spatial dimensions"},
      {inferred(x, w, {{"dilations", Ints{}}}), "do not fit 1 spatial dimensions"},
      {inferred(x, w, {{"pads", Ints{1}}}), "do not fit 1 spatial dimensions"},
      {inferred(x, w, {{"strides", Ints{0}}}), "strides and dilations must be at least 1"},
      {inferred(x, f32({6, 4, 0})), "must be at least 1"},
      {inferred(x, w, {{"pads", Ints{4, 4}}}), "pads cut off more than there is: extent -1"},
      {inferred(x, w, {{"pads", Ints{INT64_MAX, INT64_MIN}}}), "pads beyond 2^40"},
      {inferred(x, w, {{"strides", Ints{INT64_MAX}}}), "beyond 2^40"},
      {inferred(x, w, {{"dilations", Ints{INT64_MAX}}}), "beyond 2^40"},
      {inferred(x, w, {{"strides", Ints{int64_t{1} << 39}}}),
       "beyond the limit of 2^31 for one extent"},
  };
  for (const auto& [text, phrase] : wrong) {
    EXPECT_NE(text.find(phrase), std::string::npos) << phrase << "\n" << text;
    EXPECT_NE(text.find("conv_transpose 'layer'"), std::string::npos) << text;
  }
}

// Weights whose number of results the run tells.
class ConvTransposeLoops : public KernelTest {
 protected:
  void check(DType t, const Shape& x, const Shape& w, ir::Attributes attributes, double terms) {
    SCOPED_TRACE(testing::Message() << name(t) << " x " << to_string(x) << ", w " << to_string(w));
    GraphCall call;
    const ir::ValueId a = call.input(random(t, x)), b = call.input(random(t, w));
    call.graph.value(b).type.dims[1] = ir::Var("m");
    const ir::ValueId y = call.op("conv_transpose", {a, b}, std::move(attributes));
    call.output(call.op("relu", {y}));
    expect_equal(call, 4 + terms, {{true, true}, {false, false}});
  }
};

TEST_P(ConvTransposeLoops, EqualInterpreted) {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    check(t, {2, 3, 7}, {3, 5, 3}, {{"strides", Ints{2}}, {"pads", Ints{1, 0}}}, 9);
    check(t, {1, 6, 5, 4}, {6, 17, 2, 3},
          {{"group", int64_t{3}}, {"strides", Ints{1, 3}}, {"pads", Ints{0, 2, 1, -1}}}, 12);
  }
  const DType t = DType::kFloat32;
  check(t, {2, 4, 9, 8}, {4, 33, 3, 3},
        {{"strides", Ints{2, 2}}, {"dilations", Ints{2, 3}}, {"pads", Ints{1, 1, 1, 1}}}, 36);
  check(t, {1, 4, 5}, {4, 1, 2}, {{"group", int64_t{4}}, {"strides", Ints{3}}}, 2);
  check(t, {1, 2, 3, 4, 2}, {2, 8, 2, 3, 1}, {{"strides", Ints{2, 1, 2}}}, 12);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ConvTransposeLoops,
                         testing::Values("x86-64", "x86-64-v3", "x86-64-v4"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
