// Errors say by a field, not by their text, whether knowing more of the inputs would help, and a
// model is specialised to given values of inputs just where it does.
#include <gtest/gtest.h>

#include "frontends/compiler/compiler.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

// y = Pad(x, p), where x: [2, 2] and p are inputs; `more`: an operator that nobody knows, too.
Result<std::unique_ptr<OnnxModel>> padding_model(bool pads, bool more) {
  onnx_format::ModelProto model = small_model();
  auto* graph = model.mutable_graph();
  auto dims = [](onnx_format::ValueInfoProto* value, const std::vector<int64_t>& extents) {
    auto* shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int64_t d : extents) shape->add_dim()->set_dim_value(d);
  };
  dims(graph->mutable_input(0), {2, 2});
  add_value(graph->mutable_input(), "p");
  graph->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
  dims(graph->mutable_input(1), {4});
  graph->clear_node();
  if (more) add_node(graph->mutable_node(), "NobodyKnows", {"x"}, {"z"}, "riddle");
  if (pads)
    add_node(graph->mutable_node(), "Pad", {"x", "p"}, {"y"}, "pad");
  else
    add_node(graph->mutable_node(), "Neg", {"x"}, {"y"}, "neg");
  return parse(model);
}
Error error_of(bool pads, bool more, const Binding& binding = {}) {
  auto model = padding_model(pads, more);
  if (!model.ok()) return model.error();
  auto graph = build_graph(**model, binding);
  EXPECT_FALSE(graph.ok());
  return graph.ok() ? Error{} : graph.error();
}
Binding with_pads() {
  Binding binding;
  binding.values["p"] = ir::make_constant_of<int64_t>(DType::kInt64, {4}, {1, 0, 0, 2});
  return binding;
}

TEST(NeedsValue, ErrorsSayWhetherInputsHelp) {
  const Error needs = error_of(true, false);
  EXPECT_EQ(needs.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(needs.by_inputs, Cure::kAll) << needs.to_string();
  EXPECT_EQ(error_of(true, true).by_inputs, Cure::kSome);
  EXPECT_EQ(error_of(false, true).by_inputs, Cure::kNone);
}

TEST(NeedsValue, ModelsAreSpecialisedWhereItHelps) {
  auto model = padding_model(true, false);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  std::vector<std::string> specialised;
  auto graph = build_graph(**model, with_pads(), &specialised);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_EQ(specialised, std::vector<std::string>{"p"});
  EXPECT_EQ(to_string(graph->value(graph->outputs[0]).type), "f32[3, 4]");
  // With the value given what is left is incurable.
  EXPECT_EQ(error_of(true, true, with_pads()).by_inputs, Cure::kNone);
}

}  // namespace
}  // namespace tilewright
