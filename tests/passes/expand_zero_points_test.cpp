// Products of bytes with zero points: what is left for the machine to multiply, and that the sums
// are the same in i32.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

enum class Form {
  kBytes,      // the operands are u8 and i8
  kSubtracted  // zero points, if any, are subtracted in i32 first
};

// Expects the same results, and products of that form without zero points.
void expect_expanded(const std::string& lines, const std::vector<ir::ConstantRef>& constants,
                     Form form) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants);
  ASSERT_FALSE(before.nodes.empty());
  const ir::Graph after = expand_zero_points(before);
  expect_same_graph_results(before, after);
  for (const ir::Node& n : after.nodes) {
    if (n.op->name != "matmul" && n.op->name != "conv") continue;
    for (size_t i : {2u, 3u}) EXPECT_TRUE(n.inputs.size() <= i || n.inputs[i] == ir::kNone);
    const DType a = after.value(n.inputs[0]).type.dtype, b = after.value(n.inputs[1]).type.dtype;
    if (form == Form::kBytes) {
      EXPECT_EQ(a, DType::kUInt8) << ir::to_text(after);
      EXPECT_EQ(b, DType::kInt8) << ir::to_text(after);
    } else {
      EXPECT_FALSE(a == DType::kUInt8 && b == DType::kInt8) << ir::to_text(after);
    }
  }
}

// An operand of a node: its definition, and its name; absent: "" and "_".
struct Operand {
  std::string definition, name = "_";
};
Operand defined(const std::string& kind, const std::string& name, const std::string& type,
                const std::string& value = "") {
  return {"  " + kind + " " + name + ": " + type + value + "\n", name};
}
std::string product(const std::string& op, const std::vector<Operand>& operands,
                    const std::string& result, const std::string& attributes = "") {
  std::string lines, names;
  for (const Operand& o : operands) {
    lines += o.definition;
    names += (names.empty() ? "" : ", ") + o.name;
  }
  return lines + "  y: " + result + " = " + op + "(" + names + ") {" + attributes +
         "out_dtype = \"i32\"}\n  output y as \"y\"\n";
}
DType dtype_of(const std::string& name) { return *dtype_from_name(name); }

TEST(ExpandZeroPoints, MatmulOfAllTypesAndZeroPoints) {
  for (const std::string a : {"u8", "i8"})
    for (const std::string b : {"u8", "i8"})
      for (const bool transposed : {false, true}) {
        const Operand x = defined("input", "x", a + "[3, 5, 12]"),
                      w = defined("const", "w", b + (transposed ? "[7, 12]" : "[12, 7]"), " = #0");
        const Operand zeros_of_a[] = {{},
                                      defined("const", "za", a + "[]", " = #1"),
                                      defined("input", "za", a + "[]"),
                                      defined("input", "za", a + "[1, 1]"),
                                      defined("input", "za", a + "[3, 5, 1]"),
                                      defined("input", "za", a + "[1, 5, 1]")};
        const Operand zeros_of_b[] = {
            {},
            defined("const", "zb", b + "[]", " = #2"),
            defined("const", "zb", b + (transposed ? "[7, 1]" : "[1, 7]"), " = #3")};
        const std::vector<ir::ConstantRef> constants{
            random_bytes(dtype_of(b), transposed ? Shape{7, 12} : Shape{12, 7}, 1),
            random_bytes(dtype_of(a), {}, 2), random_bytes(dtype_of(b), {}, 3),
            random_bytes(dtype_of(b), transposed ? Shape{7, 1} : Shape{1, 7}, 4)};
        for (const Operand& za : zeros_of_a)
          for (const Operand& zb : zeros_of_b)
            expect_expanded(product("matmul", {x, w, za, zb}, "i32[3, 5, 7]",
                                    transposed ? "trans_b = 1, " : ""),
                            constants, Form::kBytes);
      }
}

// Enough rows pay for packing an operand that is known at run time alone; terms are rounded up.
TEST(ExpandZeroPoints, MatmulOfTwoInputs) {
  for (const std::string a : {"u8", "i8"})
    for (const std::string b : {"u8", "i8"}) {
      const Operand x = defined("input", "x", a + "[2, 3, 18]"),
                    za = defined("input", "za", a + "[2, 3, 1]"),
                    zb = defined("input", "zb", b + "[]");
      const std::string result = "i32[2, 3, 7]";
      for (const Operand& zero : {Operand{}, za})
        for (const Operand& zero_b : {Operand{}, zb}) {
          expect_expanded(
              product("matmul", {x, defined("input", "w", b + "[18, 7]"), zero, zero_b}, result),
              {}, Form::kBytes);
          expect_expanded(product("matmul", {x, defined("input", "w", b + "[7, 18]"), zero, zero_b},
                                  result, "trans_b = 1, "),
                          {}, Form::kBytes);
        }
      const Operand per_matrix = defined("input", "x", a + "[2, 6, 18]");
      expect_expanded(
          product("matmul",
                  {per_matrix, defined("input", "w", b + "[2, 18, 7]"),
                   defined("input", "za", a + "[]"), defined("input", "zb", b + "[2, 1, 7]")},
                  "i32[2, 6, 7]"),
          {}, Form::kBytes);
      expect_expanded(product("matmul",
                              {per_matrix, defined("input", "w", b + "[2, 7, 18]"),
                               defined("input", "za", a + "[2, 6, 1]"), zb},
                              "i32[2, 6, 7]", "trans_b = 1, "),
                      {}, Form::kBytes);
      expect_expanded(
          product("matmul", {x, defined("const", "w", b + "[18, 7]", " = #0"), za}, result),
          {random_bytes(dtype_of(b), {18, 7}, 1)}, Form::kBytes);
      // Each matrix has too few rows of its own.
      expect_expanded(product("matmul", {x, defined("input", "w", b + "[2, 18, 7]"), za}, result),
                      {}, Form::kSubtracted);
    }
}

TEST(ExpandZeroPoints, MatmulThatIsNoDotProduct) {
  const std::vector<ir::ConstantRef> constants{
      random_bytes(DType::kInt8, {6, 6}, 1), random_bytes(DType::kInt8, {8, 8}, 2),
      random_bytes(DType::kInt8, {8}, 3), random_bytes(DType::kInt8, {8, 1}, 4)};
  const Operand x = defined("input", "x", "u8[5, 8]"), z = defined("input", "z", "u8[]"),
                w = defined("const", "w", "i8[8, 8]", " = #1");
  // Terms that are no multiple of four.
  expect_expanded(
      product("matmul",
              {defined("input", "x", "u8[5, 6]"), defined("const", "w", "i8[6, 6]", " = #0"), z},
              "i32[5, 6]"),
      constants, Form::kSubtracted);
  // Weights, or their zero point, that are known at run time alone.
  expect_expanded(product("matmul", {x, defined("input", "w", "i8[8, 8]"), z}, "i32[5, 8]"),
                  constants, Form::kSubtracted);
  expect_expanded(product("matmul", {x, w, z, defined("input", "zb", "i8[]")}, "i32[5, 8]"),
                  constants, Form::kSubtracted);
  // Zero points that change along the sum.
  expect_expanded(product("matmul", {x, w, defined("input", "za", "u8[8]")}, "i32[5, 8]"),
                  constants, Form::kSubtracted);
  expect_expanded(
      product("matmul", {x, w, z, defined("const", "zb", "i8[8, 1]", " = #3")}, "i32[5, 8]"),
      constants, Form::kSubtracted);
  expect_expanded(product("matmul", {x, w, {}, defined("const", "zb", "i8[8]", " = #2")},
                          "i32[5, 8]", "trans_b = 1, "),
                  constants, Form::kSubtracted);
  expect_expanded(
      product("matmul", {defined("input", "x", "u8[8, 5]"), w, z}, "i32[5, 8]", "trans_a = 1, "),
      constants, Form::kSubtracted);
  expect_expanded(product("matmul", {defined("input", "x", "u8[8]"), w, z}, "i32[8]"), constants,
                  Form::kSubtracted);
}

const std::string kWindow = "pads = [1, 0, 2, 1], strides = [2, 1], ";

TEST(ExpandZeroPoints, ConvOfAllTypesAndZeroPoints) {
  for (const std::string a : {"u8", "i8"})
    for (const std::string b : {"u8", "i8"}) {
      const std::vector<ir::ConstantRef> constants{
          random_bytes(dtype_of(b), {3, 4, 3, 2}, 1), random_bytes(dtype_of(a), {}, 2),
          random_bytes(dtype_of(b), {3, 1, 1, 1}, 3), bytes(DType::kUInt8, {}, {128}),
          bytes(DType::kInt8, {3, 1, 1, 1}, {0, 0, 0})};
      const Operand x = defined("input", "x", a + "[2, 4, 6, 5]"),
                    w = defined("const", "w", b + "[3, 4, 3, 2]", " = #0"),
                    middle = b == "u8" ? defined("const", "zb", "u8[]", " = #3")
                                       : defined("const", "zb", "i8[3, 1, 1, 1]", " = #4"),
                    uneven = defined("const", "zb", b + "[3, 1, 1, 1]", " = #2");
      const Operand zeros_of_a[] = {{},
                                    defined("const", "za", a + "[]", " = #1"),
                                    defined("input", "za", a + "[]"),
                                    defined("input", "za", a + "[1, 1, 1, 1]")};
      for (const Operand& za : zeros_of_a) {
        auto conv = [&](const Operand& zb) {
          return product("conv", {x, w, za, zb}, "i32[2, 3, 4, 5]", kWindow);
        };
        expect_expanded(conv(middle), constants, Form::kBytes);
        expect_expanded(conv(uneven), constants, Form::kSubtracted);
        expect_expanded(conv({}), constants, b == "i8" ? Form::kBytes : Form::kSubtracted);
      }
    }
}

TEST(ExpandZeroPoints, ConvThatIsNoDotProduct) {
  const std::vector<ir::ConstantRef> constants{random_bytes(DType::kInt8, {4, 4, 3, 2}, 1),
                                               random_bytes(DType::kInt8, {4, 3, 3, 2}, 2)};
  const Operand z = defined("input", "z", "u8[]");
  expect_expanded(product("conv",
                          {defined("input", "x", "u8[1, 8, 6, 5]"),
                           defined("const", "w", "i8[4, 4, 3, 2]", " = #0"), z},
                          "i32[1, 4, 4, 5]", "group = 2, " + kWindow),
                  constants, Form::kSubtracted);
  expect_expanded(product("conv",
                          {defined("input", "x", "u8[1, 3, 6, 5]"),
                           defined("const", "w", "i8[4, 3, 3, 2]", " = #1"), z},
                          "i32[1, 4, 4, 5]", kWindow),
                  constants, Form::kSubtracted);
  expect_expanded(
      product("conv",
              {defined("input", "x", "u8[1, 4, 6, 5]"), defined("input", "w", "i8[4, 4, 3, 2]"), z},
              "i32[1, 4, 4, 5]", kWindow),
      constants, Form::kSubtracted);
}

// What stands around x is no zero point: it stays, moved as x is.
TEST(ExpandZeroPoints, ConvKeepsItsPadding) {
  const Operand z = defined("input", "z", "i8[]"), around = defined("input", "p", "i8[]"),
                x = defined("input", "x", "i8[2, 4, 6, 5]");
  for (const bool is_constant : {true, false})
    for (const Operand& zero : {Operand{}, z}) {
      const std::string lines = product("conv",
                                        {x,
                                         defined(is_constant ? "const" : "input", "w",
                                                 "i8[3, 4, 3, 2]", is_constant ? " = #0" : ""),
                                         zero,
                                         {},
                                         around},
                                        "i32[2, 3, 4, 5]", kWindow);
      SCOPED_TRACE(lines);
      const ir::Graph before = parsed_graph(lines, {random_bytes(DType::kInt8, {3, 4, 3, 2}, 1)});
      expect_same_graph_results(before, expand_zero_points(before));
    }
}

TEST(ExpandZeroPoints, LeavesOtherProductsAlone) {
  const std::string lines = R"(  input x: f32[3, 4]
  input w: f32[4, 5]
  input a: i32[3, 4]
  input b: i32[4, 5]
  y: f32[3, 5] = matmul(x, w)
  s: i32[3, 5] = matmul(a, b)
  output y as "y"
  output s as "s"
)";
  expect_graph(parsed_graph(lines), expand_zero_points(parsed_graph(lines)), lines);
}

}  // namespace
}  // namespace tilewright::passes
