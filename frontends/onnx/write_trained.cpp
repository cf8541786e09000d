// Fields that onnx.proto does not name (documentation, metadata) are kept by protobuf as they came.
#include "frontends/onnx/write_trained.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "frontends/onnx/export_metadata.h"
#include "frontends/onnx/onnx.pb.h"
#include "frontends/onnx/rewrite_model.h"
#include "frontends/tensor_files/mapped_file.h"
#include "runtime/core/write_file.h"

namespace tilewright {

namespace {

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;  // of a protobuf message

Status put(const HostTensor& value, onnx_format::TensorProto& tensor, const std::string& name) {
  const auto dtype = dtype_from_onnx(tensor.data_type());
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  if (!dtype || *dtype != value.dtype || shape != value.shape)
    return invalid("initialiser '" + name + "' is " + to_string(shape) + ", its new value " +
                   std::string(tilewright::name(value.dtype)) + to_string(value.shape));
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(value.bytes.data(), value.bytes.size());
  return {};
}

// Before version 4 of the format each initialiser is the default of an input.
void add_default(const onnx_format::TensorProto& tensor, onnx_format::GraphProto& graph) {
  onnx_format::ValueInfoProto& input = *graph.add_input();
  input.set_name(tensor.name());
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.data_type());
  type.mutable_shape();
  for (const int64_t d : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(d);
}

using Left = std::map<std::string, const HostTensor*>;

// Initialisers that the file has as nodes (lift_constants.h): values of Constants are exchanged,
// copies of initialisers become initialisers.
Status put_nodes(onnx_format::ModelProto& model, Left& left) {
  onnx_format::GraphProto& graph = *model.mutable_graph();
  for (int i = graph.node_size(); i-- > 0;) {
    onnx_format::NodeProto& node = *graph.mutable_node(i);
    const auto it = node.output_size() == 1 ? left.find(node.output(0)) : left.end();
    if (it == left.end()) continue;
    if (node.op_type() == "Constant") {
      for (onnx_format::AttributeProto& attribute : *node.mutable_attribute())
        if (attribute.name() == "value")
          TW_RETURN_IF_ERROR(put(*it->second, *attribute.mutable_t(), it->first));
    } else if (node.op_type() == "Identity") {
      onnx_format::TensorProto& tensor = *graph.add_initializer();
      tensor.set_name(it->first);
      tensor.set_data_type(info(it->second->dtype).onnx_code);
      for (const int64_t d : it->second->shape) tensor.add_dims(d);
      TW_RETURN_IF_ERROR(put(*it->second, tensor, it->first));
      if (model.ir_version() < 4) add_default(tensor, graph);
      graph.mutable_node()->DeleteSubrange(i, 1);
    } else {
      continue;
    }
    left.erase(it);
  }
  return {};
}

}  // namespace

static Result<onnx_format::ModelProto> read_whole(const std::filesystem::path& from) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(from));
  const auto bytes = file->bytes();
  onnx_format::ModelProto model;
  if (bytes.size() > kMostBytes ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return invalid("is no ONNX model of at most 2 GiB", from.string());
  return model;
}

Status check_outputs(const std::filesystem::path& from, const WrittenOutputs& outputs) {
  if (outputs.names.empty()) return {};
  TW_ASSIGN(onnx_format::ModelProto model, read_whole(from));
  const Status chosen = choose_outputs(*model.mutable_graph(), outputs.names, outputs.types);
  return chosen.ok() ? Status() : invalid(chosen.error().message, from.string());
}

Status write_trained(const std::filesystem::path& from, const NamedTensors& values,
                     const WrittenOutputs& outputs, const std::filesystem::path& to) {
  TW_ASSIGN(onnx_format::ModelProto model, read_whole(from));
  onnx_format::GraphProto& graph = *model.mutable_graph();
  std::vector<std::string> separated = separate_merged(graph);
  Left left;
  size_t added = 0;
  for (const auto& [name, value] : values) left[name] = &value, added += value.bytes.size();
  const size_t bytes = model.ByteSizeLong();
  if (added > kMostBytes - std::min(bytes, kMostBytes))
    return limit_error("a model with its constants would be of more than 2 GiB", to.string());
  for (onnx_format::TensorProto& tensor : *graph.mutable_initializer()) {
    const auto it = left.find(tensor.name());
    if (it == left.end()) continue;
    TW_RETURN_IF_ERROR(put(*it->second, tensor, tensor.name()));
    left.erase(it);
  }
  if (model.ir_version() < 4)
    for (const onnx_format::TensorProto& tensor : graph.initializer())
      if (std::find(separated.begin(), separated.end(), tensor.name()) != separated.end())
        add_default(tensor, graph);
  TW_RETURN_IF_ERROR(put_nodes(model, left));
  if (!left.empty())
    return invalid("there is no initialiser '" + left.begin()->first + "'", from.string());
  set_inference_mode(model);
  if (!outputs.names.empty())
    TW_RETURN_IF_ERROR(choose_outputs(graph, outputs.names, outputs.types));
  const std::filesystem::path folder = from.has_parent_path() ? from.parent_path() : ".";
  TW_RETURN_IF_ERROR(
      embed_external(model, folder, kMostBytes - std::min(model.ByteSizeLong(), kMostBytes)));
  std::string out;
  if (!model.SerializeToString(&out)) return internal_error("the model cannot be serialised");
  return write_file(to.string(), out);
}

}  // namespace tilewright
