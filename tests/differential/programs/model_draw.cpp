#include "tests/differential/programs/model_draw.h"

#include <algorithm>

namespace tilewright {

using onnx_format::NodeProto;

bool Drawn::is_closed() const {
  return std::all_of(shape.begin(), shape.end(), [](int64_t e) { return e >= 0; });
}

ModelDraw::ModelDraw(uint64_t seed) : random_(seed) {
  model_.set_ir_version(10);
  model_.add_opset_import()->set_version(21);
  model_.mutable_graph()->set_name("main");
}

void ModelDraw::declare(onnx_format::ValueInfoProto* info, const Drawn& v) {
  info->set_name(v.name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(tilewright::info(v.dtype).onnx_code);
  type->mutable_shape();
  for (const int64_t e : v.shape) {
    auto* dim = type->mutable_shape()->add_dim();
    if (e >= 0) dim->set_dim_value(e);
  }
}
Drawn ModelDraw::add_input(DType dtype, const Shape& shape) {
  inputs_.push_back({new_name("x"), dtype, shape});
  declare(model_.mutable_graph()->add_input(), inputs_.back());
  return inputs_.back();
}
Drawn ModelDraw::constant(Scope& s, const HostTensor& t) {
  const Drawn v{new_name("c"), t.dtype, t.shape};
  auto* proto = s.graph->add_initializer();
  proto->set_name(v.name);
  proto->set_data_type(info(t.dtype).onnx_code);
  for (const int64_t e : t.shape) proto->add_dims(e);
  proto->set_raw_data(t.bytes.data(), t.bytes.size());
  return v;
}
Drawn ModelDraw::integers(Scope& s, const std::vector<int64_t>& values) {
  return constant(s, repeated(DType::kInt64, {static_cast<int64_t>(values.size())},
                              {values.begin(), values.end()}));
}
Drawn ModelDraw::scalar(Scope& s, DType dtype, double value) {
  return constant(s, repeated(dtype, {}, {value}));
}
NodeProto* ModelDraw::node(Scope& s, const std::string& op, const std::vector<Drawn>& operands) {
  NodeProto* n = s.graph->add_node();
  n->set_op_type(op);
  n->set_name(new_name(op));
  for (const Drawn& v : operands) n->add_input(v.name);
  return n;
}
Drawn ModelDraw::result(Scope& s, NodeProto* node, DType dtype, const Shape& shape) {
  s.live.push_back({new_name("v"), dtype, shape});
  node->add_output(s.live.back().name);
  return s.live.back();
}
Drawn ModelDraw::emit(Scope& s, const std::string& op, const std::vector<Drawn>& operands,
                      DType dtype, const Shape& shape) {
  return result(s, node(s, op, operands), dtype, shape);
}
Drawn ModelDraw::emit(Scope& s, const std::string& op, const std::vector<Drawn>& operands) {
  return emit(s, op, operands, operands[0].dtype, operands[0].shape);
}
void ModelDraw::set(NodeProto* node, const char* attribute, int64_t value) {
  auto* a = node->add_attribute();
  a->set_name(attribute);
  a->set_type(onnx_format::INT);
  a->set_i(value);
}
void ModelDraw::set(NodeProto* node, const char* attribute, const std::vector<int64_t>& values) {
  auto* a = node->add_attribute();
  a->set_name(attribute);
  a->set_type(onnx_format::INTS);
  for (const int64_t v : values) a->add_ints(v);
}
ModelDraw::Scope ModelDraw::subgraph(const Scope& around, NodeProto* node, const char* attribute) {
  auto* a = node->add_attribute();
  a->set_name(attribute);
  a->set_type(onnx_format::GRAPH);
  a->mutable_g()->set_name(new_name(attribute));
  return {a->mutable_g(), around.live};
}
Drawn ModelDraw::take(Scope& s, DType dtype, const Shape& shape) {
  s.live.push_back({new_name("i"), dtype, shape});
  declare(s.graph->add_input(), s.live.back());
  return s.live.back();
}

namespace {
void forget(google::protobuf::RepeatedPtrField<onnx_format::ValueInfoProto>* values) {
  for (auto& v : *values) v.mutable_type()->mutable_tensor_type()->clear_shape();
}
void forget_within(onnx_format::GraphProto* graph) {
  for (auto& node : *graph->mutable_node())
    for (auto& a : *node.mutable_attribute())
      if (a.type() == onnx_format::GRAPH) {
        forget(a.mutable_g()->mutable_input());
        forget(a.mutable_g()->mutable_output());
        forget_within(a.mutable_g());
      }
}
}  // namespace

void forget_shapes(onnx_format::ModelProto& model) {
  forget(model.mutable_graph()->mutable_output());
  forget_within(model.mutable_graph());
}

}  // namespace tilewright
