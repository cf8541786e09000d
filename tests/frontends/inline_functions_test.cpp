// Inlining of model-local functions: which nodes come out under which names, and what is refused.
#include "frontends/onnx/inline_functions.h"

#include <gtest/gtest.h>

#include "frontends/onnx/check_model.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

using onnx_format::FunctionProto;
using onnx_format::ModelProto;

// A function of domain "f", whose body uses opset 18 of the standard operators.
FunctionProto* add_function(ModelProto& model, const std::string& name, const Names& inputs,
                            const Names& outputs) {
  FunctionProto* f = model.add_functions();
  f->set_domain("f");
  f->set_name(name);
  for (const auto& in : inputs) f->add_input(in);
  for (const auto& out : outputs) f->add_output(out);
  f->add_opset_import()->set_version(18);
  return f;
}

// y = f:outer(x), with nothing else in the graph.
ModelProto calling_model() {
  ModelProto model = small_model();
  auto* graph = model.mutable_graph();
  graph->clear_node();
  add_node(graph->mutable_node(), "outer", {"x"}, {"y"}, "call", "f");
  return model;
}

std::unique_ptr<OnnxModel> inlined(const ModelProto& proto) {
  auto model = parse(proto);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return nullptr;
  auto status = inline_functions(**model);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  if (!status.ok()) return nullptr;
  EXPECT_TRUE((*model)->functions.empty());
  EXPECT_TRUE(check_model(**model).ok());
  return std::move(*model);
}

// The error of reading or of inlining, whichever finds it.
Error refused(const ModelProto& proto) {
  auto model = parse(proto);
  if (!model.ok()) return model.error();
  auto status = inline_functions(**model);
  return status.ok() ? Error{ErrorKind::kInternal, "inlined"} : status.error();
}

// "Neg(x)->call/t" for each node.
Names lines(const std::vector<OnnxNode>& nodes) {
  Names all;
  for (const OnnxNode& n : nodes) {
    std::string line = n.op_type + "(";
    for (const auto& in : n.inputs) line += (line.back() == '(' ? "" : ",") + in;
    line += ")->";
    for (const auto& out : n.outputs) line += (line.back() == '>' ? "" : ",") + out;
    all.push_back(line);
  }
  return all;
}

// Two calls of one name, and functions whose values have the same names: all must stay apart.
TEST(InlineFunctions, NestedCallsBecomeNodesWithNamesOfTheirOwn) {
  ModelProto proto = calling_model();
  auto* graph = proto.mutable_graph();
  add_node(graph->mutable_node(), "outer", {"y"}, {"z"}, "call", "f");  // the same name again
  auto* outer = add_function(proto, "outer", {"a"}, {"b"});
  add_node(outer->mutable_node(), "inner", {"a"}, {"t"}, "", "f");
  add_node(outer->mutable_node(), "Neg", {"t"}, {"b"}, "neg");
  auto* inner = add_function(proto, "inner", {"a"}, {"b"});
  add_node(inner->mutable_node(), "Exp", {"a"}, {"t"});
  add_node(inner->mutable_node(), "Log", {"t"}, {"b"});
  auto model = inlined(proto);
  ASSERT_TRUE(model);
  const auto& nodes = model->graph.nodes;
  EXPECT_EQ(lines(nodes),
            (Names{"Exp(x)->call/t_2", "Log(call/t_2)->call/t", "Neg(call/t)->y",
                   "Exp(y)->call/t_4", "Log(call/t_4)->call/t_3", "Neg(call/t_3)->z"}));
  EXPECT_EQ(nodes[2].name, "call/neg");
  EXPECT_EQ(nodes[2].opset, 18);
}

// And one that is neither: the node that refers to it does without.
TEST(InlineFunctions, AttributesAreGivenByTheCallOrByDefault) {
  ModelProto proto = calling_model();
  auto* given = proto.mutable_graph()->mutable_node(0)->add_attribute();
  given->set_name("alpha");
  given->set_type(onnx_format::FLOAT);
  given->set_f(0.25f);
  auto* outer = add_function(proto, "outer", {"a"}, {"b"});
  outer->add_attribute("alpha");
  outer->add_attribute("absent");
  auto* beta = outer->add_attribute_proto();
  beta->set_name("beta");
  beta->set_type(onnx_format::INT);
  beta->set_i(3);
  auto* node = add_node(outer->mutable_node(), "Op", {"a"}, {"b"});
  for (const char* name : {"alpha", "beta", "absent"}) {
    auto* a = node->add_attribute();
    a->set_name(std::string("my_") + name);
    a->set_ref_attr_name(name);
    a->set_type(onnx_format::FLOAT);
  }
  auto model = inlined(proto);
  ASSERT_TRUE(model);
  auto& attributes = model->graph.nodes[0].attributes;
  EXPECT_EQ(std::get<float>(attributes.at("my_alpha")), 0.25f);
  EXPECT_EQ(std::get<int64_t>(attributes.at("my_beta")), 3);
  EXPECT_FALSE(attributes.contains("my_absent"));
}

TEST(InlineFunctions, LeftOutInputsAndOutputsStayOut) {
  ModelProto proto = calling_model();
  auto* outer = add_function(proto, "outer", {"a", "optional"}, {"b", "unused"});
  add_node(outer->mutable_node(), "Clip", {"a", "optional", "a"}, {"b"});
  add_node(outer->mutable_node(), "Neg", {"a"}, {"unused"});
  auto model = inlined(proto);
  ASSERT_TRUE(model);
  EXPECT_EQ(lines(model->graph.nodes), (Names{"Clip(x,,x)->y", "Neg(x)->call/unused"}));
}

// A body without nodes; the caller still needs values under its own names.
TEST(InlineFunctions, OutputsThatAreInputsAreCopied) {
  ModelProto proto = calling_model();
  proto.mutable_graph()->mutable_node(0)->add_output("z");
  add_function(proto, "outer", {"a"}, {"a", "a"});
  auto model = inlined(proto);
  ASSERT_TRUE(model);
  EXPECT_EQ(lines(model->graph.nodes), (Names{"Identity(x)->y", "Identity(x)->z"}));
}

// Calls within a branch, which sees the function's values and hides one.
TEST(InlineFunctions, InnerGraphsAreRenamedAndExpanded) {
  ModelProto proto = calling_model();
  auto* outer = add_function(proto, "outer", {"a"}, {"b"});
  auto* branch = add_node(outer->mutable_node(), "If", {"a"}, {"b"})->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(onnx_format::GRAPH);
  auto* graph = branch->mutable_g();
  add_node(graph->mutable_node(), "leaf", {"a"}, {"b"}, "", "f");  // hides the outer b
  set_floats(graph->add_initializer(), "c", {1}, {1});
  add_node(graph->mutable_node(), "Add", {"b", "c"}, {"d"});
  add_value(graph->mutable_output(), "d");
  auto* leaf = add_function(proto, "leaf", {"p"}, {"q"});
  add_node(leaf->mutable_node(), "Exp", {"p"}, {"q"});
  auto model = inlined(proto);
  ASSERT_TRUE(model);
  EXPECT_EQ(lines(model->graph.nodes), (Names{"If(x)->y"}));
  auto inner =
      std::get<std::shared_ptr<OnnxGraph>>(model->graph.nodes[0].attributes["then_branch"]);
  EXPECT_EQ(lines(inner->nodes), (Names{"Exp(x)->call/b", "Add(call/b,call/c)->call/d"}));
  EXPECT_TRUE(inner->initializers.contains("call/c"));
  EXPECT_EQ(inner->outputs[0].name, "call/d");
}

TEST(InlineFunctions, RefusesRecursionAndWrongCalls) {
  ModelProto recursive = calling_model();
  auto* outer = add_function(recursive, "outer", {"a"}, {"b"});
  add_node(outer->mutable_node(), "again", {"a"}, {"b"}, "", "f");
  auto* again = add_function(recursive, "again", {"a"}, {"b"});
  add_node(again->mutable_node(), "outer", {"a"}, {"b"}, "", "f");
  EXPECT_EQ(refused(recursive).message, "function 'outer' calls itself");

  ModelProto wide = calling_model();
  wide.mutable_graph()->mutable_node(0)->add_input("x");
  add_node(add_function(wide, "outer", {"a"}, {"b"})->mutable_node(), "Neg", {"a"}, {"b"});
  EXPECT_EQ(
      refused(wide).to_string(),
      "node 'call' (f:outer): function 'outer' has 1 inputs and 1 outputs, the call has 2 and 1");

  ModelProto stranger = calling_model();
  auto* a = stranger.mutable_graph()->mutable_node(0)->add_attribute();
  a->set_name("gamma");
  a->set_i(1);
  add_node(add_function(stranger, "outer", {"a"}, {"b"})->mutable_node(), "Neg", {"a"}, {"b"});
  EXPECT_EQ(refused(stranger).message, "function 'outer' has no attribute 'gamma'");

  ModelProto absent = calling_model();
  absent.mutable_graph()->mutable_node(0)->clear_input();
  add_function(absent, "outer", {"a"}, {"a"});
  EXPECT_NE(refused(absent).message.find("which the call leaves out"), std::string::npos);
}

TEST(InlineFunctions, BoundsGrowth) {
  // Each function calls the next twice: 2^40 nodes from 40 functions.
  ModelProto proto = calling_model();
  for (int i = 0; i < 40; ++i) {
    std::string next = "f" + std::to_string(i + 1);
    auto* f = add_function(proto, i ? "f" + std::to_string(i) : "outer", {"a"}, {"b"});
    add_node(f->mutable_node(), next, {"a"}, {"t"}, "", "f");
    add_node(f->mutable_node(), next, {"t"}, {"b"}, "", "f");
  }
  add_node(add_function(proto, "f40", {"a"}, {"b"})->mutable_node(), "Neg", {"a"}, {"b"});
  EXPECT_EQ(refused(proto).kind, ErrorKind::kLimit);
  ModelProto chain = calling_model();
  for (int i = 0; i < 100; ++i) {
    auto* f = add_function(chain, i ? "f" + std::to_string(i) : "outer", {"a"}, {"b"});
    add_node(f->mutable_node(), "f" + std::to_string(i + 1), {"a"}, {"b"}, "", "f");
  }
  add_node(add_function(chain, "f100", {"a"}, {"b"})->mutable_node(), "Neg", {"a"}, {"b"});
  EXPECT_EQ(refused(chain).kind, ErrorKind::kLimit);
}

// A function sees nothing of the graph that calls it.
TEST(InlineFunctions, BodiesAreCheckedAsGraphsAre) {
  ModelProto proto = calling_model();
  auto* outer = add_function(proto, "outer", {"a"}, {"b"});
  add_node(outer->mutable_node(), "Add", {"a", "x"}, {"b"});  // x belongs to the main graph
  EXPECT_EQ(refused(proto).to_string(), "function 'outer', node 0 (Add): input 'x' is not defined");
  outer->mutable_node(0)->set_input(1, "a");
  *proto.add_functions() = *outer;
  EXPECT_EQ(refused(proto).message, "function 'outer' is given twice");
}

}  // namespace
}  // namespace tilewright
