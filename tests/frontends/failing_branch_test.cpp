// An If whose condition only the run knows, with a branch that breaks a rule for the shapes given.
#include <gtest/gtest.h>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

using onnx_format::GraphProto;
using onnx_format::ModelProto;

void add_branch(onnx_format::NodeProto* node, const std::string& name, const std::string& other) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx_format::GRAPH);
  GraphProto* graph = attribute->mutable_g();
  graph->set_name(name);
  add_node(graph->mutable_node(), "Add", {"x", other}, {"sum"}, "add_" + other);
  add_value(graph->mutable_output(), "sum");
}
void add_dims(onnx_format::ValueInfoProto* value, const std::vector<int64_t>& dims) {
  auto* shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int64_t d : dims) shape->add_dim()->set_dim_value(d);
}
// y = c ? x + w : x + v, where x: [2, 2] and w: [2, 2]; v: [3] fits nothing.
ModelProto model_with_branches(const std::string& then_operand, const std::string& else_operand) {
  ModelProto model = small_model();
  GraphProto* graph = model.mutable_graph();
  add_dims(graph->mutable_input(0), {2, 2});
  add_value(graph->mutable_input(), "c");
  graph->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(9);
  add_dims(graph->mutable_input(1), {});
  graph->mutable_input(1)->mutable_type()->mutable_tensor_type()->mutable_shape();
  set_floats(graph->add_initializer(), "v", {3}, {1, 2, 3});
  graph->clear_node();
  auto* node = add_node(graph->mutable_node(), "If", {"c"}, {"y"}, "choice");
  add_branch(node, "then_branch", then_operand);
  add_branch(node, "else_branch", else_operand);
  return model;
}
Status run(Session& session, bool condition, std::vector<float>& y) {
  Tensor x = Tensor::allocate(DType::kFloat32, {2, 2}).value();
  Tensor c = Tensor::allocate(DType::kBool, {}).value();
  for (int i = 0; i < 4; ++i) static_cast<float*>(x.data())[i] = 10.0f * static_cast<float>(i);
  *static_cast<bool*>(c.data()) = condition;
  std::vector<Tensor> outputs;
  TW_RETURN_IF_ERROR(session.run(std::vector{x, c}, outputs));
  const auto* data = static_cast<const float*>(outputs[0].data());
  y.assign(data, data + 4);
  return {};
}

TEST(FailingBranch, FailsOnlyWhenItIsTaken) {
  auto model = parse(model_with_branches("w", "v"));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  auto executable = compile_in_memory(**model, {}, {});
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  auto session = Session::create(*executable, {});
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  std::vector<float> y;
  Status good = run(**session, true, y);
  ASSERT_TRUE(good.ok()) << good.error().to_string();
  EXPECT_EQ(y, (std::vector<float>{1, 12, 23, 34}));
  Status bad = run(**session, false, y);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().to_string().find("add_v"), std::string::npos) << bad.error().to_string();
  EXPECT_TRUE(run(**session, true, y).ok());
}

TEST(FailingBranch, TwoOfThemAreAnError) {
  auto model = parse(model_with_branches("v", "v"));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  auto executable = compile_in_memory(**model, {}, {});
  ASSERT_FALSE(executable.ok());
  EXPECT_NE(executable.error().to_string().find("add_v"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
