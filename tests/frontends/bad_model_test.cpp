// Each way in which a model can break a rule of the format, and what the reader says to it.
#include <gtest/gtest.h>

#include <functional>

#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

using onnx_format::ModelProto;

struct BadCase {
  const char* what;
  ErrorKind kind;
  const char* message;  // a part of it
  std::function<void(ModelProto&)> change;
};

class BadModel : public testing::TestWithParam<BadCase> {};

// Converters write such models; the order is mended on reading.
TEST(UnsortedModel, ComesOutInOrder) {
  ModelProto proto = small_model();
  proto.mutable_graph()->mutable_node()->SwapElements(0, 1);
  auto model = parse(proto);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->graph.nodes[0].name, "add");
  EXPECT_EQ((*model)->graph.nodes[1].name, "relu");
}

TEST_P(BadModel, IsRefusedByName) {
  ModelProto proto = small_model();
  ASSERT_TRUE(parse(proto).ok());
  GetParam().change(proto);
  auto model = parse(proto);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().kind, GetParam().kind);
  EXPECT_NE(model.error().to_string().find(GetParam().message), std::string::npos)
      << model.error().to_string();
}

auto* nodes(ModelProto& m) { return m.mutable_graph()->mutable_node(); }
auto* weight(ModelProto& m) { return m.mutable_graph()->mutable_initializer(0); }

const BadCase kVersionCases[] = {
    {"no_ir_version", ErrorKind::kInvalid, "no IR version", [](auto& m) { m.clear_ir_version(); }},
    {"ir_zero", ErrorKind::kInvalid, "IR version 0", [](auto& m) { m.set_ir_version(0); }},
    {"ir_too_new", ErrorKind::kUnsupported, "IR version 15, at most 14",
     [](auto& m) { m.set_ir_version(15); }},
    {"no_graph", ErrorKind::kInvalid, "has no graph", [](auto& m) { m.clear_graph(); }},
    {"no_opset", ErrorKind::kInvalid, "imports no operator set",
     [](auto& m) { m.clear_opset_import(); }},
    {"opset_zero", ErrorKind::kInvalid, "has version 0",
     [](auto& m) { m.mutable_opset_import(0)->set_version(0); }},
    {"opset_twice", ErrorKind::kInvalid, "two versions",
     [](auto& m) { m.add_opset_import()->set_version(3); }},
    {"domain_not_imported", ErrorKind::kInvalid, "node 'relu' (x.y:Relu): domain 'x.y'",
     [](auto& m) { nodes(m)->Mutable(1)->set_domain("x.y"); }},
};

const BadCase kNameCases[] = {
    {"input_without_name", ErrorKind::kInvalid, "graph input has no name",
     [](auto& m) { add_value(m.mutable_graph()->mutable_input(), ""); }},
    {"input_twice", ErrorKind::kInvalid, "'x': the name is defined twice",
     [](auto& m) { add_value(m.mutable_graph()->mutable_input(), "x"); }},
    {"value_twice", ErrorKind::kInvalid, "node 2 (Neg) 't': the name is defined twice",
     [](auto& m) { add_node(nodes(m), "Neg", {"x"}, {"t"}); }},
    {"value_named_as_weight", ErrorKind::kInvalid, "node 2 (Neg) 'w': the name is defined twice",
     [](auto& m) { add_node(nodes(m), "Neg", {"x"}, {"w"}); }},
    {"input_undefined", ErrorKind::kInvalid, "node 'bad' (Neg): input 'nowhere' is not defined",
     [](auto& m) { add_node(nodes(m), "Neg", {"nowhere"}, {"z"}, "bad"); }},
    {"output_undefined", ErrorKind::kInvalid, "graph output 'z' is not defined",
     [](auto& m) { add_value(m.mutable_graph()->mutable_output(), "z"); }},
    {"cycle", ErrorKind::kInvalid, "node 'add' (Add): input 'y' depends on the node's own output",
     [](auto& m) { nodes(m)->Mutable(0)->set_input(0, "y"); }},
    {"own_output", ErrorKind::kInvalid,
     "node 'add' (Add): input 't' depends on the node's own output",
     [](auto& m) { nodes(m)->Mutable(0)->set_input(0, "t"); }},
    {"no_operator", ErrorKind::kInvalid, "node 'add' (): no operator",
     [](auto& m) { nodes(m)->Mutable(0)->clear_op_type(); }},
    {"reference_outside_function", ErrorKind::kInvalid, "no attribute of a function around it",
     [](auto& m) {
       auto* a = nodes(m)->Mutable(0)->add_attribute();
       a->set_name("a");
       a->set_ref_attr_name("b");
     }},
};

const BadCase kTensorCases[] = {
    {"weight_twice", ErrorKind::kInvalid, "initializer 'w' is given twice",
     [](auto& m) { *m.mutable_graph()->add_initializer() = *weight(m); }},
    {"weight_without_name", ErrorKind::kInvalid, "initializer without a name",
     [](auto& m) { weight(m)->clear_name(); }},
    {"too_few_bytes", ErrorKind::kInvalid,
     "initializer 'w': 12 bytes of data, shape [2, 2] of f32 needs 16",
     [](auto& m) { weight(m)->set_raw_data(std::string(12, 'x')); }},
    {"no_data", ErrorKind::kInvalid, "initializer 'w': 0 bytes of data",
     [](auto& m) { weight(m)->clear_raw_data(); }},
    {"dims_overflow", ErrorKind::kInvalid, "negative or too large",
     [](auto& m) {
       for (int i = 0; i < 4; ++i) weight(m)->add_dims(1 << 30);
     }},
    {"bytes_overflow", ErrorKind::kInvalid, "negative or too large",
     [](auto& m) { weight(m)->set_dims(0, int64_t{1} << 61); }},
    {"dims_negative", ErrorKind::kInvalid, "negative or too large",
     [](auto& m) { weight(m)->set_dims(0, -2); }},
    {"no_type", ErrorKind::kInvalid, "without an element type",
     [](auto& m) { weight(m)->clear_data_type(); }},
    {"unknown_type", ErrorKind::kUnsupported, "element type 99",
     [](auto& m) { weight(m)->set_data_type(99); }},
    {"wrong_typed_count", ErrorKind::kInvalid, "3 elements of data, shape [2, 2] of f32 needs 4",
     [](auto& m) {
       weight(m)->clear_raw_data();
       for (int i = 0; i < 3; ++i) weight(m)->add_float_data(1);
     }},
    {"raw_strings", ErrorKind::kInvalid, "strings cannot be raw data",
     [](auto& m) { weight(m)->set_data_type(8); }},
    {"external_in_memory", ErrorKind::kInvalid, "may have none",
     [](auto& m) { weight(m)->set_data_location(onnx_format::TensorProto::EXTERNAL); }},
    {"sparse_out_of_range", ErrorKind::kInvalid, "index 6 in shape [2, 3]",
     [](auto& m) { add_sparse(m, {1, 6}, {2}); }},
    {"sparse_unsorted", ErrorKind::kInvalid, "must be ascending",
     [](auto& m) { add_sparse(m, {1, 1}, {2}); }},
    {"sparse_wrong_indices", ErrorKind::kInvalid, "indices must be i64",
     [](auto& m) { add_sparse(m, {0, 1, 2}, {3}); }},
    {"sparse_too_large", ErrorKind::kLimit, "too large",
     [](auto& m) { add_sparse(m, {1, 5}, {2})->set_dims(0, 1 << 30); }},
    {"attribute_twice", ErrorKind::kInvalid, "node 'add' (Add): attribute 'a' is given twice",
     [](auto& m) {
       for (int i = 0; i < 2; ++i) {
         auto* a = nodes(m)->Mutable(0)->add_attribute();
         a->set_name("a");
         a->set_i(1);
       }
     }},
    {"attribute_without_value", ErrorKind::kInvalid, "attribute 'a': no value",
     [](auto& m) { nodes(m)->Mutable(0)->add_attribute()->set_name("a"); }},
    {"attribute_of_unknown_type", ErrorKind::kUnsupported, "attribute type 77 is unknown",
     [](auto& m) {
       auto* a = nodes(m)->Mutable(0)->add_attribute();
       a->set_name("a");
       a->set_type(77);
     }},
};

std::string case_name(const testing::TestParamInfo<BadCase>& info) { return info.param.what; }
INSTANTIATE_TEST_SUITE_P(Versions, BadModel, testing::ValuesIn(kVersionCases), case_name);
INSTANTIATE_TEST_SUITE_P(Names, BadModel, testing::ValuesIn(kNameCases), case_name);
INSTANTIATE_TEST_SUITE_P(Tensors, BadModel, testing::ValuesIn(kTensorCases), case_name);

}  // namespace
}  // namespace tilewright
