// Small ONNX models for tests, built as messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontends/onnx/onnx.pb.h"
#include "frontends/onnx/read_model.h"

namespace tilewright {

// Of inputs or outputs of a node; "" leaves one out.
using Names = std::vector<std::string>;

// Appended to the nodes of a graph or function; the result takes attributes.
inline onnx_format::NodeProto* add_node(
    google::protobuf::RepeatedPtrField<onnx_format::NodeProto>* to, const std::string& op,
    const Names& inputs, const Names& outputs, const std::string& name = {},
    const std::string& domain = {}) {
  onnx_format::NodeProto* node = to->Add();
  node->set_op_type(op);
  if (!name.empty()) node->set_name(name);
  if (!domain.empty()) node->set_domain(domain);
  for (const auto& in : inputs) node->add_input(in);
  for (const auto& out : outputs) node->add_output(out);
  return node;
}

// An input or output of type f32 and of unknown shape.
inline void add_value(google::protobuf::RepeatedPtrField<onnx_format::ValueInfoProto>* to,
                      const std::string& name) {
  auto* value = to->Add();
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(1);
}

// A f32 tensor whose data are in raw_data.
inline void set_floats(onnx_format::TensorProto* tensor, const std::string& name,
                       const std::vector<int64_t>& dims, const std::vector<float>& data) {
  tensor->set_name(name);
  tensor->set_data_type(1);
  for (int64_t d : dims) tensor->add_dims(d);
  tensor->set_raw_data(data.data(), data.size() * sizeof(float));
}

// y = Relu(x + w), w: [2, 2]
inline onnx_format::ModelProto small_model() {
  onnx_format::ModelProto model;
  model.set_ir_version(10);
  model.set_producer_name("test");
  model.set_producer_version("1.0");
  auto* opset = model.add_opset_import();
  opset->set_domain("ai.onnx");
  opset->set_version(21);
  auto* graph = model.mutable_graph();
  graph->set_name("main");
  add_value(graph->mutable_input(), "x");
  add_value(graph->mutable_output(), "y");
  set_floats(graph->add_initializer(), "w", {2, 2}, {1, 2, 3, 4});
  add_node(graph->mutable_node(), "Add", {"x", "w"}, {"t"}, "add");
  add_node(graph->mutable_node(), "Relu", {"t"}, {"y"}, "relu");
  return model;
}

// Adds s: [2, 3] with the values 5 and 6.
inline onnx_format::SparseTensorProto* add_sparse(onnx_format::ModelProto& proto,
                                                  std::vector<int64_t> indices,
                                                  std::vector<int64_t> index_dims) {
  auto* sparse = proto.mutable_graph()->add_sparse_initializer();
  set_floats(sparse->mutable_values(), "s", {2}, {5, 6});
  sparse->mutable_indices()->set_data_type(7);
  for (int64_t d : index_dims) sparse->mutable_indices()->add_dims(d);
  for (int64_t i : indices) sparse->mutable_indices()->add_int64_data(i);
  sparse->add_dims(2);
  sparse->add_dims(3);
  return sparse;
}

// What read_model does, without a file; external data lie in `folder`.
inline Result<std::unique_ptr<OnnxModel>> parse(const std::string& bytes,
                                                const std::filesystem::path& folder = {}) {
  auto owner = std::make_shared<std::string>(bytes);
  return parse_model({reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}, owner,
                     folder);
}

// The same of a message.
inline Result<std::unique_ptr<OnnxModel>> parse(const onnx_format::ModelProto& model,
                                                const std::filesystem::path& folder = {}) {
  return parse(model.SerializeAsString(), folder);
}

}  // namespace tilewright
