// The types of convolutions and matrix products, and what their nodes may not be.
#include "ir/graph/infer.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

using Ints = std::vector<int64_t>;

// The type of a node over operands of these types, or its error.
std::string inferred(std::string_view op, const ir::TensorType& x, const ir::TensorType& w,
                     ir::Attributes attributes = {}) {
  ir::Graph g;
  const ir::ValueId a = g.add_value("x", x), b = g.add_value("w", w);
  g.inputs = {a, b};
  auto made = ir::add_node(g, op, {a, b}, std::move(attributes), 1, "y", {"layer"});
  return made.ok() ? to_string(g.value(made->at(0)).type) : made.error().to_string();
}
ir::TensorType f32(std::vector<ir::Expr> dims) { return {DType::kFloat32, std::move(dims)}; }
ir::TensorType u8(std::vector<ir::Expr> dims) { return {DType::kUInt8, std::move(dims)}; }

TEST(ProductTypes, FollowFromOperandsAndAttributes) {
  const ir::Var n("n"), h("h");
  const ir::Attributes in_i32{{"out_dtype", std::string("i32")}};
  EXPECT_EQ(inferred("conv", f32({n, 6, h}), f32({4, 3, 3}), {{"group", int64_t{2}}}),
            "f32[n, 4, h - 2]");
  EXPECT_EQ(inferred("conv", u8({1, 3, 5}), u8({4, 3, 1}), in_i32), "i32[1, 4, 5]");
  EXPECT_EQ(inferred("matmul", f32({n, 1, 5, 4}), f32({3, 4, h})), "f32[n, 3, 5, h]");
  EXPECT_EQ(inferred("matmul", u8({5, 4}), u8({4}), in_i32), "i32[5]");
}

TEST(ProductTypes, ErrorsNameNodeTypesAndRule) {
  const ir::Attributes unknown{{"out_dtype", std::string("i33")}};
  const std::pair<std::string, std::string> wrong[] = {
      {inferred("conv", f32({1, 3, 5}), f32({4, 3, 3}), unknown), "out_dtype 'i33' is no type"},
      {inferred("conv", f32({1, 3, 5}), f32({4, 2, 3})),
       "channels do not fit: x is f32[1, 3, 5], w is f32[4, 2, 3], group is 1"},
      {inferred("conv", f32({1, 3, 5}), f32({4, 3, 7})), "larger than the padded input"},
      {inferred("conv", f32({1, 3, 5}), f32({4, 3, 3}), {{"strides", Ints{0}}}), "at least 1"},
      {inferred("matmul", f32({5, 4}), f32({4, 3}), unknown), "out_dtype 'i33' is no type"},
      {inferred("matmul", f32({5, 4}), f32({5, 3})),
       "inner dimensions differ: a is f32[5, 4], b is f32[5, 3]"},
  };
  for (const auto& [text, phrase] : wrong) {
    EXPECT_NE(text.find(phrase), std::string::npos) << phrase << "\n" << text;
    EXPECT_NE(text.find("'layer'"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tilewright
