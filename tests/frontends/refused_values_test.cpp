// Operands whose elements have a range: those outside end the run, or compiling where they are known, with an error
// that names the node and the element.
#include <gtest/gtest.h>

#include "tests/frontends/open_extents.h"

namespace tilewright {
namespace {

struct Row {
  std::string op;
  std::vector<Operand> inputs;  // undefined: left out
  size_t operand;               // whose elements are judged
  std::vector<double> wrong;
  NodeAttributes attributes = {};
  int64_t opset = 24;
};
void PrintTo(const Row& r, std::ostream* out) { *out << r.op; }

Operand floats(Shape shape) { return {tensor_of(DType::kFloat32, shape, {0.5, -0.25, 1})}; }
Operand integers(Shape shape, std::vector<double> values, DType dtype = DType::kInt64) {
  return {tensor_of(dtype, shape, values)};
}
const Operand kAbsent{};

class RefusedValues : public testing::TestWithParam<Row> {};

Result<Tensors> run_with(const Row& row, std::optional<double> wrong, bool known) {
  NodeModel m(row.opset);
  Names in;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    Operand o = row.inputs[i];
    if (i == row.operand) {
      std::vector<double> values = numbers_of(o.tensor);
      if (wrong) values.back() = *wrong;
      o = {tensor_of(o.tensor.dtype(), o.tensor.shape(), values), known};
    }
    in.push_back(m.operand(o));
  }
  m.output("y");
  m.node(row.op, in, {"y"}, row.attributes);
  TW_ASSIGN(std::unique_ptr<OnnxModel> model, parse(m.proto));
  TW_ASSIGN(auto executable, compile_in_memory(*model, {}, {}));
  Tensors inputs;
  for (const Tensor& t : m.inputs) inputs.push_back(to_host(t));
  return run(executable, inputs, 1);
}

TEST_P(RefusedValues, AreErrorsOfTheNode) {
  const Row& row = GetParam();
  for (const bool known : {false, true}) {
    const auto right = run_with(row, std::nullopt, known);
    EXPECT_TRUE(right.ok()) << right.error().to_string();
    for (const double wrong : row.wrong) {
      const auto found = run_with(row, wrong, known);
      ASSERT_FALSE(found.ok()) << wrong;
      EXPECT_EQ(found.error().kind, ErrorKind::kInvalid);
      const std::string text = found.error().to_string();
      EXPECT_NE(text.find(row.op), std::string::npos) << text;
      EXPECT_NE(text.find(" is " + std::to_string(static_cast<int64_t>(wrong)) + ", expected 0 to"),
                std::string::npos)
          << text;
    }
  }
}

const Operand lengths = integers({2}, {3, 0}, DType::kInt32);
const std::vector<Row> kRows{
    {"ReverseSequence", {floats({4, 3}), integers({3}, {2, 0, 4})}, 1, {5, -1, 1e15}},
    {"RNN",
     {floats({3, 2, 4}), floats({1, 5, 4}), floats({1, 5, 5}), kAbsent, lengths},
     4,
     {4, -1},
     {{"hidden_size", int64_t{5}}}},
    {"GRU",
     {floats({3, 2, 4}), floats({1, 6, 4}), floats({1, 6, 2}), kAbsent, lengths},
     4,
     {9, -5},
     {{"hidden_size", int64_t{2}}}},
    {"LSTM",
     {floats({3, 2, 4}), floats({1, 8, 4}), floats({1, 8, 2}), kAbsent, lengths},
     4,
     {4, -2},
     {{"hidden_size", int64_t{2}}}},
    {"NegativeLogLikelihoodLoss", {floats({4, 5}), integers({4}, {0, 4, 2, 1})}, 1, {5, -1, 9}},
    {"NegativeLogLikelihoodLoss",
     {floats({4, 5}), integers({4}, {0, -1, 2, 1}), floats({5})},
     1,
     {5, -2},
     {{"ignore_index", int64_t{-1}}}},
    {"SoftmaxCrossEntropyLoss",
     {floats({2, 3, 2}), integers({2, 2}, {0, 1, 2, 1}, DType::kInt32)},
     1,
     {3, -3}},
    {"MaxUnpool",
     {floats({1, 1, 2, 2}), integers({1, 1, 2, 2}, {0, 3, 10, 15})},
     1,
     {16, -1},
     {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}},
    {"TensorScatter", {floats({2, 4, 3}), floats({2, 3, 3}), integers({2}, {1, 0})}, 2, {2, -1}},
    {"Attention",
     {floats({2, 2, 3, 4}), floats({2, 2, 5, 4}), floats({2, 2, 5, 4}), kAbsent, kAbsent, kAbsent,
      integers({2}, {5, 1})},
     6,
     {6, -1}},
};
INSTANTIATE_TEST_SUITE_P(All, RefusedValues, testing::ValuesIn(kRows), [](const auto& info) {
  return info.param.op + "_" + std::to_string(info.index);
});

// Elements that shapes of results are made of, given or known: those that do not fit are errors of the node.
class RefusedShapes : public testing::TestWithParam<Row> {};

TEST_P(RefusedShapes, AreErrorsOfTheNode) {
  const Row& row = GetParam();
  for (const bool known : {false, true}) {
    const auto right = run_with(row, std::nullopt, known);
    EXPECT_TRUE(right.ok()) << right.error().to_string();
    for (const double wrong : row.wrong) {
      const auto found = run_with(row, wrong, known);
      ASSERT_FALSE(found.ok()) << wrong << (known ? ", known" : "");
      EXPECT_EQ(found.error().kind, ErrorKind::kInvalid) << found.error().to_string();
      EXPECT_NE(found.error().to_string().find("'node'"), std::string::npos)
          << found.error().to_string();
    }
  }
}

const std::vector<Row> kShapes{
    {"Expand", {floats({4, 5}), integers({2}, {4, 5})}, 1, {3, 0, -1}},
    {"Expand", {floats({4, 5}), integers({2}, {1, 1})}, 1, {4, -5}},
    {"Expand", {floats({4, 1}), integers({2}, {4, 5})}, 1, {-2}},
    {"Expand", {floats({3}), integers({3}, {2, 4, 3})}, 1, {2, -1}},
    {"Reshape", {floats({4, 3}), integers({2}, {6, 2})}, 1, {3, 1, -2}},
    {"Reshape", {floats({0, 3}), integers({2}, {7, 0})}, 1, {2}, {{"allowzero", int64_t{1}}}},
    {"Range", {integers({}, {1}), integers({}, {9}), integers({}, {2})}, 2, {0}},
    {"Range", {floats({}), {tensor_of(DType::kFloat32, {}, {9})}, floats({})}, 2, {0}},
    {"TopK", {floats({2, 5}), integers({1}, {3})}, 1, {6, -1}},
};

INSTANTIATE_TEST_SUITE_P(Rows, RefusedShapes, testing::ValuesIn(kShapes), [](const auto& info) {
  return info.param.op + std::to_string(info.index);
});

}  // namespace
}  // namespace tilewright
