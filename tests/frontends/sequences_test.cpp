// Sequences of tensors, whose number and positions an import knows.
#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

using Elements = std::vector<double>;

class Sequences : public testing::Test {
 protected:
  std::string ints(const std::vector<double>& values, bool scalar = false) {
    const Shape shape = scalar ? Shape{} : Shape{static_cast<int64_t>(values.size())};
    return m.operand({tensor_of(DType::kInt64, shape, values), true});
  }
  // x: [rows, columns], elements 0, 1, 2, ...
  std::string matrix(int64_t rows, int64_t columns) {
    Elements elements;
    for (int64_t i = 0; i < rows * columns; ++i) elements.push_back(static_cast<double>(i));
    return m.operand({tensor_of(DType::kFloat32, {rows, columns}, elements)});
  }
  // Element i of a sequence as a result.
  void at(const std::string& sequence, double i) {
    const std::string name = sequence + " at " + std::to_string(results_++);
    m.node("SequenceAt", {sequence, ints({i}, true)}, {name});
    m.output(name);
  }
  void expect(const std::vector<Tensor>& found, size_t i, const Shape& shape,
              const Elements& elements) {
    ASSERT_LT(i, found.size());
    EXPECT_EQ(found[i].shape(), shape) << "result " << i;
    EXPECT_EQ(numbers_of(found[i]), elements) << "result " << i;
  }
  std::string error() {
    auto made = m.session();
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().to_string();
  }

  NodeModel m;
  int results_ = 0;
};

TEST_F(Sequences, SplitIntoSinglesWithAndWithoutTheirAxis) {
  const std::string x = matrix(2, 3);
  m.node("SplitToSequence", {x}, {"kept"}, {{"axis", int64_t{1}}});
  m.node("SplitToSequence", {x}, {"dropped"}, {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}});
  at("kept", 2);
  at("dropped", -3);
  const auto found = m.run();
  expect(found, 0, {2, 1}, {2, 5});
  expect(found, 1, {2}, {0, 3});
}

TEST_F(Sequences, SplitByALengthAndByLengths) {
  const std::string x = matrix(5, 1);
  m.node("SplitToSequence", {x, ints({2}, true)}, {"equal"}, {{"keepdims", int64_t{0}}});
  m.node("SplitToSequence", {x, ints({1, 0, 4})}, {"given"});
  m.node("SequenceLength", {"equal"}, {"length"});
  m.output("length");
  at("equal", -1);
  at("given", 1);
  at("given", 2);
  const auto found = m.run();
  expect(found, 0, {}, {3});
  expect(found, 1, {1, 1}, {4});
  expect(found, 2, {0, 1}, {});
  expect(found, 3, {4, 1}, {1, 2, 3, 4});
}

TEST_F(Sequences, BuiltAndTakenApart) {
  const std::string a = matrix(1, 2), b = matrix(2, 1), c = matrix(1, 1);
  m.node("SequenceConstruct", {a, b}, {"two"});
  m.node("SequenceInsert", {"two", c}, {"last"});
  m.node("SequenceInsert", {"last", a, ints({-1}, true)}, {"inner"});  // a b a c
  m.node("Identity", {"inner"}, {"same"});
  m.node("SequenceErase", {"same", ints({1}, true)}, {"less"});  // a a c
  m.node("SequenceErase", {"less"}, {"least"});                  // a a
  m.node("ConcatFromSequence", {"least"}, {"joined"}, {{"axis", int64_t{-1}}});
  m.node("ConcatFromSequence", {"least"}, {"stacked"},
         {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}});
  m.output("joined");
  m.output("stacked");
  at("inner", 3);
  const auto found = m.run();
  expect(found, 0, {1, 4}, {0, 1, 0, 1});
  expect(found, 1, {1, 2, 2}, {0, 0, 1, 1});
  expect(found, 2, {1, 1}, {0});
}

TEST_F(Sequences, GrownFromNothing) {
  m.node("SequenceEmpty", {}, {"none"});
  m.node("SequenceInsert", {"none", matrix(2, 2)}, {"one"});
  m.node("ConcatFromSequence", {"one"}, {"y"}, {{"axis", int64_t{0}}});
  m.output("y");
  expect(m.run(), 0, {2, 2}, {0, 1, 2, 3});
}

// Branches see the sequences around them.
TEST_F(Sequences, BranchesTakeElements) {
  const std::string x = matrix(2, 2);
  const std::string which = m.operand({tensor_of(DType::kBool, {}, {0})});
  m.node("SplitToSequence", {x}, {"rows"});
  auto* choice = m.node("If", {which}, {"y"});
  for (const int64_t i : {0, 1}) {
    auto* branch = choice->add_attribute();
    branch->set_name(i == 0 ? "then_branch" : "else_branch");
    branch->set_type(onnx_format::GRAPH);
    auto* graph = branch->mutable_g();
    graph->set_name("branch");
    add_node(graph->mutable_node(), "SequenceAt", {"rows", ints({static_cast<double>(i)}, true)},
             {"row"});
    add_value(graph->mutable_output(), "row");
  }
  m.output("y");
  expect(m.run(), 0, {1, 2}, {2, 3});
}

// Loops that append x * i to what there is, carry a tensor beside it, and scan another one out: as often as the first
// operand says, or as long as the carried number is below a bound.
TEST_F(Sequences, LoopsAppend) {
  for (const bool counted : {true, false})
    for (const int64_t trips : {1, 2, 7}) {
      m = NodeModel();
      const std::string x = matrix(1, 2), one = ints({1}, true),
                        bound = ints({static_cast<double>(trips)}, true), zero = ints({0}, true);
      m.node("SequenceEmpty", {}, {"none"});
      auto* loop =
          m.node("Loop", {counted ? bound : "", "", "none", zero}, {"all", "count", "scan"});
      auto* attribute = loop->add_attribute();
      attribute->set_name("body");
      attribute->set_type(onnx_format::GRAPH);
      auto* body = attribute->mutable_g();
      body->set_name("body");
      for (const char* input : {"i", "go", "so_far", "n"}) add_value(body->mutable_input(), input);
      for (const auto& [k, dtype] : {std::pair{0, DType::kInt64}, {1, DType::kBool}})
        body->mutable_input(k)->mutable_type()->mutable_tensor_type()->set_elem_type(
            info(dtype).onnx_code);
      auto* nodes = body->mutable_node();
      add_node(nodes, "CastLike", {"i", x}, {"factor"}, "");
      add_node(nodes, "Mul", {x, "factor"}, {"row"}, "");
      add_node(nodes, "SequenceInsert", {"so_far", "row"}, {"more"}, "");
      add_node(nodes, "Add", {"n", one}, {"next"}, "");
      add_node(nodes, counted ? "LessOrEqual" : "Less", {"next", bound}, {"on"}, "");
      add_node(nodes, "Neg", {"row"}, {"negative"}, "");
      for (const char* output : {"on", "more", "next", "negative"})
        add_value(body->mutable_output(), output);
      m.node("ConcatFromSequence", {"all"}, {"y"}, {{"axis", int64_t{0}}});
      for (const char* output : {"y", "count", "scan"}) m.output(output);
      Elements rows, negative;
      for (int64_t i = 0; i < trips; ++i)
        for (const int64_t k : {0, 1}) {
          rows.push_back(static_cast<double>(i * k));
          negative.push_back(-static_cast<double>(i * k));
        }
      const auto found = m.run();
      expect(found, 0, {trips, 2}, rows);
      expect(found, 1, {}, {static_cast<double>(trips)});
      expect(found, 2, {trips, 1, 2}, negative);
    }
}

TEST_F(Sequences, ErrorsNameTheRule) {
  const std::string x = matrix(4, 2), four = ints({4}, true), none = ints({0}, true),
                    two = ints({2}, true), parts = ints({1, 2}), negative = ints({5, -1});
  const std::string open = m.operand({tensor_of(DType::kInt64, {}, {1})});
  const std::string many = matrix(20'001, 1);
  m.node("SplitToSequence", {x}, {"rows"});
  m.node("SequenceEmpty", {}, {"nothing"});
  const onnx_format::ModelProto start = m.proto;
  const auto expect_error = [&](const std::string& op, const Names& in, const std::string& what,
                                const NodeAttributes& attributes = {}) {
    m.proto = start;
    m.node(op, in, {"y"}, attributes);
    m.output("y");
    const std::string found = error();
    EXPECT_NE(found.find(what), std::string::npos) << op << ": " << found;
  };
  expect_error("SequenceAt", {"rows", four}, "position [4] is outside a sequence of 4 tensors");
  expect_error("SequenceAt", {"rows", open}, "position is not known at compile time");
  expect_error("SequenceAt", {"nothing", four}, "the sequence is empty");
  expect_error("SequenceErase", {"nothing"}, "the sequence is empty");
  expect_error("SequenceAt", {x, four}, "operand 'input_sequence' is f32[4, 2], expected a sequence");
  expect_error("Neg", {"rows"}, "operand 'X' is a sequence, expected");
  expect_error("Identity", {"rows"}, "output 'y' is a sequence");
  expect_error("SplitToSequence", {many, two}, "a sequence of more than 10000 tensors");
  expect_error("SplitToSequence", {x, none}, "split is 0");
  expect_error(
      "SplitToSequence", {x, parts},
      "the parts must add up to dimension 0: extents are 3 and 4, expected them to be equal");
  expect_error("SplitToSequence", {x, negative}, "parts are [5, -1]");
  expect_error("SequenceConstruct", {x, four}, "operand 0 is f32[4, 2] and operand 1 is i64[], expected one type");
  expect_error("ConcatFromSequence", {"rows"}, "axis 2 is outside rank 2", {{"axis", int64_t{2}}});
}

}  // namespace
}  // namespace tilewright
