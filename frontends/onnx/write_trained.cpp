// Fields that onnx.proto does not name (documentation, metadata) are kept by protobuf as they came.
#include "frontends/onnx/write_trained.h"

#include <cstring>
#include <fstream>
#include <map>

#include "frontends/onnx/onnx.pb.h"
#include "frontends/tensor_files/mapped_file.h"

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

Status write_whole(const std::string& bytes, const std::filesystem::path& to) {
  std::filesystem::path partial = to;
  partial += ".partial";
  {
    std::ofstream out(partial, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.flush();
    if (!out) return io_error("cannot be written", partial.string());
  }
  std::error_code error;
  std::filesystem::rename(partial, to, error);
  return error ? io_error("cannot be written: " + error.message(), to.string()) : Status();
}

}  // namespace

Status write_with_initializers(const std::filesystem::path& from, const NamedTensors& values,
                               const std::filesystem::path& to) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(from));
  const auto bytes = file->bytes();
  onnx_format::ModelProto model;
  if (bytes.size() > kMostBytes ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return invalid("is no ONNX model of at most 2 GiB", from.string());
  std::map<std::string, const HostTensor*> left;
  size_t added = 0;
  for (const auto& [name, value] : values) left[name] = &value, added += value.bytes.size();
  if (added > kMostBytes - std::min(bytes.size(), kMostBytes))
    return limit_error("a model with its constants would be of more than 2 GiB", to.string());
  for (onnx_format::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    const auto it = left.find(tensor.name());
    if (it == left.end()) continue;
    TW_RETURN_IF_ERROR(put(*it->second, tensor, tensor.name()));
    left.erase(it);
  }
  // Weights that are nodes: lift_constants.h.
  for (onnx_format::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    const auto it = node.op_type() == "Constant" && node.output_size() == 1
                        ? left.find(node.output(0))
                        : left.end();
    if (it == left.end()) continue;
    for (onnx_format::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.name() == "value")
        TW_RETURN_IF_ERROR(put(*it->second, *attribute.mutable_t(), node.output(0)));
    left.erase(it);
  }
  if (!left.empty())
    return invalid("there is no initialiser '" + left.begin()->first + "'", from.string());
  std::string out;
  if (!model.SerializeToString(&out)) return internal_error("the model cannot be serialised");
  return write_whole(out, to);
}

}  // namespace tilewright
