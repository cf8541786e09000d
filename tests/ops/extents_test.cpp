// Extents that only the run knows, and that a node's operands must agree in: the run ends with an
// error when they do not, before anything is read.
#include <gtest/gtest.h>

#include "ir/module_text/parser_graph.h"
#include "ir/module_text/printer_graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

HostTensor floats(const Shape& shape) {
  std::mt19937_64 random(1);
  return random_tensor(DType::kFloat32, shape, random);
}
// "" or the error of running `y` with inputs x and w of these shapes.
std::string error_of(const std::string& x, const std::string& w, const std::string& y,
                     const Shape& of_x, const Shape& of_w) {
  const std::string text = "graph g {\n  input x: f32" + x + "\n  input w: f32" + w + "\n  y: f32" +
                           y + " from \"node\"\n  output y as \"y\"\n}\n";
  auto graph = ir::parse_graph(text);
  if (!graph.ok()) return "parse: " + graph.error().to_string();
  std::string first;
  bool any = false;
  for (const CompiledForm& form : {CompiledForm{}, CompiledForm{false, false}}) {
    auto runs = run_compiled(*graph, {floats(of_x), floats(of_w)}, form, {1});
    const std::string error = runs.ok() ? "" : runs.error().to_string();
    if (any) { EXPECT_EQ(error, first); }
    first = error;
    any = true;
  }
  return first;
}
std::string expected(const std::string& op, const std::string& pair, int64_t a, int64_t b) {
  return op + " 'node': extents " + pair + " are " + std::to_string(a) + " and " +
         std::to_string(b) + ", expected them to be equal";
}

TEST(Extents, OfBroadcasting) {
  const auto run = [](int64_t n, int64_t m) {
    return error_of("[n, 2]", "[m, 2]", "[m, 2] = mul(x, w)", {n, 2}, {m, 2});
  };
  EXPECT_EQ(run(3, 3), "");
  for (const auto& [n, m] : {std::pair{3, 1}, {1, 3}, {3, 2}, {0, 3}})
    EXPECT_EQ(run(n, m), expected("mul", "n and m", n, m));
  EXPECT_EQ(error_of("[n, 2]", "[3, 2]", "[3, 2] = mul(x, w)", {1, 2}, {3, 2}),
            expected("mul", "n and 3", 1, 3));
}
TEST(Extents, OfProducts) {
  const auto run = [](int64_t k, int64_t j) {
    return error_of("[2, k]", "[j, 5]", "[2, 5] = matmul(x, w)", {2, k}, {j, 5});
  };
  EXPECT_EQ(run(3, 3), "");
  EXPECT_EQ(run(3, 300), expected("matmul", "k and j", 3, 300));
  EXPECT_EQ(run(300, 3), expected("matmul", "k and j", 300, 3));
}
TEST(Extents, OfChannels) {
  const auto run = [](int64_t c) {
    return error_of("[1, c, 5, 5]", "[2, 3, 3, 3]", "[1, 2, 3, 3] = conv(x, w)", {1, c, 5, 5},
                    {2, 3, 3, 3});
  };
  EXPECT_EQ(run(3), "");
  EXPECT_EQ(run(2), expected("conv", "3 and c", 3, 2));
}
TEST(Extents, OfConcat) {
  const auto run = [](int64_t n, int64_t m) {
    return error_of("[n, 2]", "[m, 2]", "[n, 4] = concat(x, w) {axis = 1}", {n, 2}, {m, 2});
  };
  EXPECT_EQ(run(4, 4), "");
  EXPECT_EQ(run(4, 3), expected("concat", "n and m", 4, 3));
}
TEST(Extents, OfNormalisation) {
  const auto run = [](int64_t n, int64_t m) {
    return error_of("[2, n]", "[m]", "[2, n] = layer_norm(x, w)", {2, n}, {m});
  };
  EXPECT_EQ(run(4, 4), "");
  EXPECT_EQ(run(4, 3), expected("layer_norm", "m and n", 3, 4));
}
TEST(Extents, OfReshape) {
  const auto run = [](int64_t n) {
    auto graph = ir::parse_graph(
        "graph g {\n  input x: f32[n, 4]\n  const s: i64[2] = [2, 6]\n"
        "  y: f32[2, 6] = reshape(x, s) from \"node\"\n  z: f32[2, 6] = neg(y)\n"
        "  output z as \"z\"\n}\n");
    if (!graph.ok()) return "parse: " + graph.error().to_string();
    auto runs = run_compiled(*graph, {floats({n, 4})}, {}, {1});
    return runs.ok() ? std::string() : runs.error().to_string();
  };
  EXPECT_EQ(run(3), "");
  for (const int64_t n : {2, 4, 0})
    EXPECT_EQ(run(n), expected("reshape", "n * 4 and 12", 4 * n, 12));
}

// "" or the error of running a graph of one input x: f32[n].
std::string error_of(const std::string& graph_text, int64_t n) {
  auto graph = ir::parse_graph("graph g {\n  input x: f32[n]\n" + graph_text + "}\n");
  if (!graph.ok()) return "parse: " + graph.error().to_string();
  auto runs = run_compiled(*graph, {floats({n})}, {}, {1});
  return runs.ok() ? "" : runs.error().to_string();
}
// What is required of a node is required though others are computed in its place, or none is.
TEST(Extents, OfNodesThatAreGone) {
  const std::string unread =
      "  const k: i64[1] = [4]\n  v: f32[4], i: i64[4] = top_k(x, k) from \"node\"\n"
      "  y: i64[1] = shape(v)\n  output y as \"y\"\n";
  EXPECT_EQ(error_of(unread, 4), "");
  EXPECT_EQ(
      error_of(unread, 3),
      "top_k 'node': the axis must have k elements: extents 4 and n are 4 and 3, expected the "
      "first to be at most the second");
  const std::string joined =
      "  const s: i64[2] = [2, 3]\n  const t: i64[3] = [1, 6, 1]\n"
      "  a: f32[2, 3] = reshape(x, s) from \"node\"\n  y: f32[1, 6, 1] = reshape(a, t)\n"
      "  output y as \"y\"\n";
  EXPECT_EQ(error_of(joined, 6), "");
  EXPECT_EQ(error_of(joined, 5), expected("reshape", "n and 6", 5, 6));
}
// The text form of a graph holds its requirements.
TEST(Extents, OfRequirements) {
  const std::string text =
      "  require at_most[2, n] \"who: at least 2\"\n  require equals[n, floordiv(n, 3) * 3] "
      "\"whole\"\n"
      "  y: f32[n] = neg(x)\n  output y as \"y\"\n";
  EXPECT_EQ(error_of(text, 6), "");
  EXPECT_EQ(error_of(text, 0),
            "who: at least 2: extents 2 and n are 2 and 0, expected the first to be at most the "
            "second");
  EXPECT_EQ(error_of(text, 7),
            "whole: extents n and floordiv(n, 3) * 3 are 7 and 6, expected them to be equal");
  auto graph = ir::parse_graph("graph g {\n  input x: f32[n]\n" + text + "}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  auto again = ir::parse_graph(ir::to_text(*graph));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(ir::to_text(*again), ir::to_text(*graph));
}

// Values without elements, another extent of which only the run knows: they have a shape all the
// same.
TEST(Extents, OfNothing) {
  const auto shape_of = [](const std::string& text, const Tensors& inputs) {
    auto graph = ir::parse_graph("graph g {\n" + text + "  output z as \"z\"\n}\n");
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    Shape shape{-1};
    for (const CompiledForm& form : {CompiledForm{}, CompiledForm{false, false}}) {
      auto runs = run_compiled(*graph, inputs, form, {1});
      EXPECT_TRUE(runs.ok()) << runs.error().to_string();
      if (runs.ok()) shape = (*runs)[0][0].shape;
    }
    return shape;
  };
  const std::string nonzero =
      "  input x: f32[]\n  y: i64[0, k] = nonzero(x) defines(k)\n  z: i64[0, k] = neg(y)\n";
  EXPECT_EQ(shape_of(nonzero, {repeated(DType::kFloat32, {}, {3})}), (Shape{0, 1}));
  EXPECT_EQ(shape_of(nonzero, {repeated(DType::kFloat32, {}, {0})}), (Shape{0, 0}));
  const std::string compress =
      "  input x: f32[5, 0, 2]\n  input c: bool[2]\n"
      "  y: f32[5, 0, k] = compress(x, c) {axis = 2} defines(k)\n  z: f32[5, 0, k] = neg(y)\n";
  EXPECT_EQ(shape_of(compress, {floats({5, 0, 2}), repeated(DType::kBool, {2}, {1, 0})}),
            (Shape{5, 0, 1}));
}

}  // namespace
}  // namespace tilewright
