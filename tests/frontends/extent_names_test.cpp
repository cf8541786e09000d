// Names of extents that say nothing, or that stand for extents that differ.
#include <gtest/gtest.h>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

using onnx_format::GraphProto;
using onnx_format::ModelProto;

void set_shape(onnx_format::ValueInfoProto* value, const Names& dims) {
  auto* shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& d : dims) shape->add_dim()->set_dim_param(d);
}
// Inputs a and b with these dimensions; nodes are to come.
ModelProto two_inputs(const Names& a, const Names& b) {
  ModelProto model = small_model();
  GraphProto* graph = model.mutable_graph();
  graph->clear_node();
  graph->clear_input();
  for (const char* name : {"a", "b"}) add_value(graph->mutable_input(), name);
  set_shape(graph->mutable_input(0), a);
  set_shape(graph->mutable_input(1), b);
  return model;
}
ModelProto sum_of(const Names& a, const Names& b) {
  ModelProto model = two_inputs(a, b);
  add_node(model.mutable_graph()->mutable_node(), "Add", {"a", "b"}, {"y"});
  return model;
}
// y = the elements of a behind one another and then those of b.
ModelProto joined(const std::string& a, const std::string& b) {
  ModelProto model = two_inputs({a}, {b});
  auto* node = add_node(model.mutable_graph()->mutable_node(), "Concat", {"a", "b"}, {"y"});
  auto* axis = node->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx_format::INT);
  axis->set_i(0);
  return model;
}
// y = a + v: [3], z = b + u: [4]: what is named alike differs.
ModelProto contradiction() {
  ModelProto model = two_inputs({"n"}, {"n"});
  GraphProto* graph = model.mutable_graph();
  set_floats(graph->add_initializer(), "v", {3}, {1, 2, 3});
  set_floats(graph->add_initializer(), "u", {4}, {1, 2, 3, 4});
  add_node(graph->mutable_node(), "Add", {"a", "v"}, {"y"});
  add_node(graph->mutable_node(), "Add", {"b", "u"}, {"z"});
  add_value(graph->mutable_output(), "z");
  return model;
}

struct Imported {
  std::string a, b, y;
  std::vector<std::string> notes;
};
Imported import(const ModelProto& proto, const Binding& binding = {}) {
  auto model = parse(proto);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  Imported r;
  auto graph = build_graph(**model, binding, nullptr, &r.notes);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  if (!graph.ok()) return r;
  auto text = [&](ir::ValueId v) { return to_string(graph->value(v).type); };
  r.a = text(graph->inputs[0]);
  r.b = text(graph->inputs[1]);
  r.y = text(graph->outputs[0]);
  return r;
}
// Compiled for the binding, then run with a and b of these shapes.
Status run_shapes(const ModelProto& proto, const Binding& binding, const Shape& a, const Shape& b,
                  const Shape& y) {
  auto model = parse(proto);
  TW_ASSIGN(auto executable, compile_in_memory(**model, binding, {}));
  TW_ASSIGN(auto session, Session::create(executable, {.threads = 1}));
  std::vector<Tensor> inputs, outputs;
  for (const Shape& shape : {a, b}) {
    TW_ASSIGN(Tensor t, Tensor::allocate(DType::kFloat32, shape));
    std::fill_n(static_cast<float*>(t.data()), t.bytes() / int64_t{sizeof(float)}, 1.0f);
    inputs.push_back(t);
  }
  TW_RETURN_IF_ERROR(session->run(inputs, outputs));
  EXPECT_EQ(outputs[0].shape(), y);
  return {};
}
Status run(const ModelProto& proto, const Binding& binding, int64_t a, int64_t b, int64_t y) {
  return run_shapes(proto, binding, Shape{a}, Shape{b}, Shape{y});
}

TEST(ExtentNames, ThatSayNothingAreSymbolsOfTheirOwn) {
  for (const char* name : {"?", "None", "-1", "2 n", "n + 1"}) {
    const Imported r = import(sum_of({name, name}, {name, name}));
    // The sum needs them equal in pairs, not all alike.
    EXPECT_EQ(r.a, "f32[a.0, a.1]") << name;
    EXPECT_EQ(r.b, r.a) << name;
    ASSERT_EQ(r.notes.size(), 1u) << name;
    EXPECT_NE(r.notes[0].find("extent 1 of input 'b'"), std::string::npos) << r.notes[0];
  }
  EXPECT_EQ(import(sum_of({"unk__12"}, {"unk__12"})).a, "f32[unk__12]");
  EXPECT_TRUE(import(sum_of({"unk__12"}, {"unk__12"})).notes.empty());
}

TEST(ExtentNames, JoinWhatNothingSpeaksAgainst) {
  EXPECT_EQ(import(joined("n", "n")).y, "f32[n * 2]");
  EXPECT_EQ(import(joined("n", "m")).y, "f32[n + m]");
  EXPECT_EQ(import(joined("n", "n"), {.names_apart = true}).y, "f32[a.0 + b.0]");
}

TEST(ExtentNames, OfAKernelAreWhatKernelShapeSays) {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    ModelProto model = two_inputs({"one", "two", "n"}, {"two", "two", "m"});
    auto* dims = model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type();
    for (int d : {0, 1}) dims->mutable_shape()->mutable_dim(d)->set_dim_value(2);
    auto* attribute =
        add_node(model.mutable_graph()->mutable_node(), op, {"a", "b"}, {"y"})->add_attribute();
    attribute->set_name("kernel_shape");
    attribute->set_type(onnx_format::INTS);
    attribute->add_ints(4);
    const int64_t length = std::string(op) == "Conv" ? 7 : 13;
    const Status status = run_shapes(model, {}, {1, 2, 10}, {2, 2, 4}, {1, 2, length});
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_FALSE(run_shapes(model, {}, {1, 2, 10}, {2, 2, 3}, {1, 2, length}).ok());
  }
}

TEST(ExtentNames, OfOutputsAreHints) {
  ModelProto model = joined("n", "n");
  set_shape(model.mutable_graph()->mutable_output(0), {"n"});
  EXPECT_EQ(import(model).y, "f32[n * 2]");
}

TEST(ExtentNames, ThatTheGraphContradictsAreTakenApart) {
  const Imported r = import(contradiction());
  EXPECT_EQ(r.a, "f32[3]");
  EXPECT_EQ(r.b, "f32[4]");
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("'n'"), std::string::npos);
  EXPECT_TRUE(run(contradiction(), {}, 3, 4, 3).ok());
}

TEST(ExtentNames, ThatGivenShapesContradictAreTakenApart) {
  const Imported r = import(joined("n", "n"), {.shapes = {{"a", {3}}, {"b", {5}}}});
  EXPECT_EQ(r.y, "f32[8]");
  EXPECT_EQ(r.notes.size(), 1u);
}

TEST(ExtentNames, AreHeldToByARunUnlessTheyAreApart) {
  EXPECT_TRUE(run(joined("n", "n"), {}, 3, 3, 6).ok());
  const Status refused = run(joined("n", "n"), {}, 3, 5, 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().to_string().find("--shape apart"), std::string::npos);
  EXPECT_TRUE(run(joined("n", "n"), {.names_apart = true}, 3, 5, 8).ok());
}

// What a kernel would read beyond its operands is refused before it runs.
TEST(ExtentNames, ThatDifferAreEqualWhereOperatorsNeedIt) {
  EXPECT_TRUE(run(sum_of({"n"}, {"m"}), {}, 5, 5, 5).ok());
  EXPECT_FALSE(run(sum_of({"n"}, {"m"}), {}, 5, 2, 5).ok());
  EXPECT_FALSE(run(sum_of({"n"}, {"n"}), {.names_apart = true}, 2, 5, 5).ok());
}
// Extents of inputs that meet in broadcasting: one variant where they are equal, one for the others.
TEST(ExtentNames, ThatMeetInBroadcastingMayBeOne) {
  const auto graphs_of = [](const ModelProto& proto) {
    auto model = parse(proto);
    auto graphs = build_graphs(**model, {});
    EXPECT_TRUE(graphs.ok()) << graphs.error().to_string();
    return graphs.ok() ? graphs->size() : 0;
  };
  EXPECT_EQ(graphs_of(sum_of({"n"}, {"n"})), 1u);
  EXPECT_EQ(graphs_of(sum_of({"n"}, {"m"})), 2u);
  EXPECT_EQ(graphs_of(joined("n", "m")), 1u);
  const ModelProto sum = sum_of({"n", "k"}, {"m", "l"});
  for (const int64_t n : {0, 1, 3})
    for (const int64_t m : {0, 1, 3})
      for (const int64_t l : {1, 33}) {
        const bool fits = n == m || n == 1 || m == 1;
        const Status s = run_shapes(sum, {}, {n, 33}, {m, l}, {n == 1 ? m : n, 33});
        EXPECT_EQ(s.ok(), fits) << n << ", " << m << (s.ok() ? "" : ": " + s.error().to_string());
        if (fits || s.ok()) continue;
        EXPECT_NE(s.error().to_string().find("expected them to be equal or one of them to be 1"),
                  std::string::npos)
            << s.error().to_string();
      }
}
// a: [n] is added to three elements and to four: it has one.
TEST(ExtentNames, ThatCannotBeEqualAreOne) {
  ModelProto model = two_inputs({"n"}, {"m"});
  GraphProto* graph = model.mutable_graph();
  set_floats(graph->add_initializer(), "v", {3}, {1, 2, 3});
  set_floats(graph->add_initializer(), "u", {4}, {1, 2, 3, 4});
  add_node(graph->mutable_node(), "Add", {"a", "v"}, {"y"});
  add_node(graph->mutable_node(), "Add", {"a", "u"}, {"x"});
  add_node(graph->mutable_node(), "Concat", {"x", "b"}, {"z"});
  auto* axis = graph->mutable_node(2)->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx_format::INT);
  axis->set_i(0);
  add_value(graph->mutable_output(), "z");
  EXPECT_TRUE(run(model, {}, 1, 2, 3).ok());
  for (const int64_t n : {0, 2, 3, 4}) EXPECT_FALSE(run(model, {}, n, 2, 3).ok()) << n;
}

TEST(ExtentNames, ThatOperatorsJoinAreSaid) {
  ModelProto model = sum_of({"n"}, {"m"});
  model.mutable_graph()->mutable_node(0)->set_op_type("MatMul");
  const Imported r = import(model);
  EXPECT_EQ(r.a, r.b);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("is taken for"), std::string::npos) << r.notes[0];
  EXPECT_TRUE(import(sum_of({"n"}, {"n"})).notes.empty());
}

// mask: [total] is added to past and new elements, joined.
TEST(ExtentNames, GiveWayToSums) {
  ModelProto model = joined("past", "fresh");
  GraphProto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "mask");
  set_shape(graph->mutable_input(2), {"total"});
  graph->mutable_node(0)->set_output(0, "all");
  add_node(graph->mutable_node(), "Add", {"all", "mask"}, {"y"});
  auto parsed = parse(model);
  auto imported = build_graph(**parsed, {});
  ASSERT_TRUE(imported.ok()) << imported.error().to_string();
  EXPECT_EQ(to_string(imported->value(imported->inputs[2]).type), "f32[past + fresh]");
}

}  // namespace
}  // namespace tilewright
