// The stages of reading: tensors' data are cut out, protobuf parses the rest, messages become plain
// structs whose tensors are views into the file, nodes are sorted, and all is checked. What comes
// after may rely on the rules of model.h.
#include "frontends/onnx/read_model.h"

#include <google/protobuf/io/coded_stream.h>

#include <climits>

#include "frontends/onnx/check_model.h"
#include "frontends/onnx/convert_model.h"
#include "frontends/onnx/export_metadata.h"
#include "frontends/onnx/sort_nodes.h"
#include "frontends/onnx/strip_payloads.h"
#include "frontends/tensor_files/mapped_file.h"

namespace tilewright {
namespace {

// Each graph within a graph is three messages deep: node, attribute, graph. Types may add some.
constexpr int kMaxMessageDepth = 3 * (kMaxGraphDepth + 1) + 50;

Status parse_structure(const std::string& text, onnx_format::ModelProto& proto) {
  if (text.size() > INT_MAX) return limit_error("the structure of the model exceeds 2 GiB");
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(text.data()),
                                            static_cast<int>(text.size()));
  in.SetRecursionLimit(kMaxMessageDepth);
  if (!proto.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
    return invalid("not an ONNX model, or damaged");
  return {};
}

}  // namespace

Result<std::unique_ptr<OnnxModel>> parse_model(std::span<const uint8_t> bytes,
                                               std::shared_ptr<const void> owner,
                                               const std::filesystem::path& folder, ModelUse use) {
  if (bytes.empty()) return invalid("the file is empty");
  onnx_format::ModelProto proto;
  {
    TW_ASSIGN(std::string structure, strip_payloads(bytes, use == ModelUse::kTraining));
    TW_RETURN_IF_ERROR(parse_structure(structure, proto));
  }
  if (use == ModelUse::kTraining) separate_merged(*proto.mutable_graph());
  TensorSource source{bytes, std::move(owner), ExternalData(folder)};
  TW_ASSIGN(auto model, convert_model(proto, source));
  if (use == ModelUse::kTraining) model->graph.roles = exported_roles(proto.graph());
  model->sources.push_back({bytes, source.owner});
  for (const auto& [path, file] : source.external.files())
    model->sources.push_back({file->bytes(), file});
  sort_nodes(model->graph);
  TW_RETURN_IF_ERROR(check_model(*model));
  return model;
}

Result<std::unique_ptr<OnnxModel>> read_model(const std::filesystem::path& path, ModelUse use) {
  TW_ASSIGN(auto file, MappedFile::open(path));
  std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  auto model = parse_model(file->bytes(), file, folder, use);
  if (!model) {
    std::string& location = model.error().location;
    location = path.string() + (location.empty() ? "" : ": " + location);
  }
  return model;
}

}  // namespace tilewright
