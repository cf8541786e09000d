#include "frontends/onnx/convert_model.h"

#include <optional>
#include <set>

#include "frontends/onnx/convert_type.h"
#include "frontends/onnx/read_model.h"

namespace tilewright {
namespace {

using namespace onnx_format;  // the messages and their enumerators

using OpsetMap = std::map<std::string, int64_t>;

// The format has two names for the domain of the standard operators.
std::string standard_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// The same error, said of a part of the model.
Error located(Error error, const std::string& what) {
  error.message = what + ": " + error.message;
  return error;
}

Result<OpsetMap> convert_opsets(
    const google::protobuf::RepeatedPtrField<OperatorSetIdProto>& imports) {
  OpsetMap opsets;
  for (const auto& import : imports) {
    std::string domain = standard_domain(import.domain());
    if (import.version() < 1)
      return invalid("opset import of domain " + quote(domain) + " has version " +
                     std::to_string(import.version()));
    auto [at, is_new] = opsets.emplace(domain, import.version());
    if (!is_new && at->second != import.version())
      return invalid("domain " + quote(domain.empty() ? "ai.onnx" : domain) +
                     " is imported in two versions, " + std::to_string(at->second) + " and " +
                     std::to_string(import.version()));
  }
  return opsets;
}

// The type of an attribute; models of the first IR versions do not write it.
int attribute_type(const AttributeProto& a) {
  if (a.type() != NO_TYPE) return a.type();
  if (a.has_f()) return FLOAT;
  if (a.has_i()) return INT;
  if (a.has_s()) return STRING;
  if (a.has_t()) return TENSOR_VALUE;
  if (a.has_g()) return GRAPH;
  if (a.floats_size()) return FLOATS;
  if (a.ints_size()) return INTS;
  if (a.strings_size()) return STRINGS;
  if (a.tensors_size()) return TENSORS;
  if (a.graphs_size()) return GRAPHS;
  return NO_TYPE;
}

// Walks messages whose nesting strip_payloads has bounded.
class Converter {
 public:
  explicit Converter(TensorSource& source) : source_(source) {}

  Status convert_graph(const GraphProto& proto, const OpsetMap& opsets, OnnxGraph& graph) {
    graph.name = proto.name();
    convert_values(proto.input(), graph.inputs);
    convert_values(proto.output(), graph.outputs);
    convert_values(proto.value_info(), graph.value_info);
    for (const auto& tensor : proto.initializer())
      TW_RETURN_IF_ERROR(
          add_initializer(tensor.name(), decode_tensor(tensor, source_), graph.initializers));
    for (const auto& sparse : proto.sparse_initializer())
      TW_RETURN_IF_ERROR(add_initializer(
          sparse.values().name(), decode_sparse_tensor(sparse, source_), graph.initializers));
    return convert_nodes(proto.node(), opsets, graph.nodes);
  }

  Status convert_function(const FunctionProto& proto, OnnxFunction& function) {
    function.domain = standard_domain(proto.domain());
    function.name = proto.name();
    function.overload = proto.overload();
    function.inputs.assign(proto.input().begin(), proto.input().end());
    function.outputs.assign(proto.output().begin(), proto.output().end());
    function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    TW_ASSIGN(OpsetMap opsets, convert_opsets(proto.opset_import()));
    for (const auto& a : proto.attribute_proto())
      TW_RETURN_IF_ERROR(add_attribute(a, opsets, function.defaults));
    return convert_nodes(proto.node(), opsets, function.nodes);
  }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

  void convert_values(const google::protobuf::RepeatedPtrField<ValueInfoProto>& protos,
                      std::vector<OnnxValueInfo>& values) {
    values.reserve(static_cast<size_t>(protos.size()));
    for (const auto& v : protos) values.push_back({v.name(), convert_type(v.type())});
  }

  // Dense and sparse ones share their names.
  Status add_initializer(const std::string& name, Result<TensorView> tensor,
                         std::map<std::string, TensorView>& initializers) {
    std::string what = "initializer " + quote(name);
    if (name.empty()) return invalid("initializer without a name");
    if (!tensor) return located(tensor.error(), what);
    if (!initializers.emplace(name, std::move(*tensor)).second)
      return invalid(what + " is given twice");
    return {};
  }

  Status convert_nodes(const Nodes& protos, const OpsetMap& opsets, std::vector<OnnxNode>& nodes) {
    nodes.resize(static_cast<size_t>(protos.size()));
    for (size_t i = 0; i < nodes.size(); ++i) {
      OnnxNode& node = nodes[i];
      const NodeProto& proto = protos[static_cast<int>(i)];
      node.op_type = proto.op_type();
      node.domain = standard_domain(proto.domain());
      node.overload = proto.overload();
      node.name = proto.name();
      node.inputs.assign(proto.input().begin(), proto.input().end());
      node.outputs.assign(proto.output().begin(), proto.output().end());
      auto opset = opsets.find(node.domain);
      if (opset != opsets.end()) node.opset = opset->second;
      if (node.op_type.empty()) return invalid("no operator", describe_node(node, i));
      for (const auto& a : proto.attribute()) {
        auto status = add_attribute(a, opsets, node.attributes);
        if (!status) return located(status.error(), describe_node(node, i));
      }
    }
    return {};
  }

  Status add_attribute(const AttributeProto& proto, const OpsetMap& opsets,
                       std::map<std::string, OnnxAttribute>& attributes) {
    std::string what = "attribute " + quote(proto.name());
    if (proto.name().empty()) return invalid("attribute without a name");
    auto value = convert_attribute(proto, opsets);
    if (!value) return located(value.error(), what);
    if (!attributes.emplace(proto.name(), std::move(*value)).second)
      return invalid(what + " is given twice");
    return {};
  }

  Result<OnnxAttribute> convert_attribute(const AttributeProto& a, const OpsetMap& opsets) {
    if (!a.ref_attr_name().empty()) return OnnxAttribute(OnnxAttributeReference{a.ref_attr_name()});
    // An absent number or string is 0 or empty: some writers leave such values out.
    switch (attribute_type(a)) {
      case FLOAT: return OnnxAttribute(a.f());
      case INT: return OnnxAttribute(int64_t{a.i()});
      case STRING: return OnnxAttribute(a.s());
      case FLOATS: return OnnxAttribute(std::vector<float>(a.floats().begin(), a.floats().end()));
      case INTS: return OnnxAttribute(std::vector<int64_t>(a.ints().begin(), a.ints().end()));
      case STRINGS:
        return OnnxAttribute(std::vector<std::string>(a.strings().begin(), a.strings().end()));
      case TYPE_PROTO: return OnnxAttribute(convert_type(a.tp()));
      case TYPE_PROTOS: {
        std::vector<OnnxType> types;
        for (const auto& t : a.type_protos()) types.push_back(convert_type(t));
        return OnnxAttribute(std::move(types));
      }
      case GRAPH:
        if (!a.has_g()) return invalid("no graph");
        return one_graph(a.g(), opsets);
      case GRAPHS: return all_graphs(a, opsets);
      default: return convert_tensors(a);
    }
  }

  Result<OnnxAttribute> convert_tensors(const AttributeProto& a) {
    std::vector<TensorView> views;
    switch (attribute_type(a)) {
      case TENSOR_VALUE: {
        if (!a.has_t()) return invalid("no tensor");
        TW_ASSIGN(TensorView view, decode_tensor(a.t(), source_));
        return OnnxAttribute(std::move(view));
      }
      case SPARSE_TENSOR_VALUE: {
        if (!a.has_sparse_tensor()) return invalid("no sparse tensor");
        TW_ASSIGN(TensorView view, decode_sparse_tensor(a.sparse_tensor(), source_));
        return OnnxAttribute(std::move(view));
      }
      case TENSORS:
        for (const auto& t : a.tensors()) {
          TW_ASSIGN(TensorView view, decode_tensor(t, source_));
          views.push_back(std::move(view));
        }
        return OnnxAttribute(std::move(views));
      case SPARSE_TENSORS:
        for (const auto& t : a.sparse_tensors()) {
          TW_ASSIGN(TensorView view, decode_sparse_tensor(t, source_));
          views.push_back(std::move(view));
        }
        return OnnxAttribute(std::move(views));
      case NO_TYPE: return invalid("no value");
      default: return unsupported("attribute type " + std::to_string(a.type()) + " is unknown");
    }
  }

  Result<OnnxAttribute> one_graph(const GraphProto& proto, const OpsetMap& opsets) {
    auto graph = std::make_shared<OnnxGraph>();
    TW_RETURN_IF_ERROR(convert_graph(proto, opsets, *graph));
    return OnnxAttribute(std::move(graph));
  }

  Result<OnnxAttribute> all_graphs(const AttributeProto& a, const OpsetMap& opsets) {
    std::vector<std::shared_ptr<OnnxGraph>> graphs;
    for (const auto& g : a.graphs()) {
      graphs.push_back(std::make_shared<OnnxGraph>());
      TW_RETURN_IF_ERROR(convert_graph(g, opsets, *graphs.back()));
    }
    return OnnxAttribute(std::move(graphs));
  }

  TensorSource& source_;
};

// A value that is listed twice is one output: callers know outputs by their names.
void drop_repeated(std::vector<OnnxValueInfo>& outputs) {
  std::set<std::string> seen;
  std::erase_if(outputs, [&](const OnnxValueInfo& o) { return !seen.insert(o.name).second; });
}

}  // namespace

Result<std::unique_ptr<OnnxModel>> convert_model(const ModelProto& proto, TensorSource& source) {
  auto model = std::make_unique<OnnxModel>();
  model->ir_version = proto.ir_version();
  if (!proto.has_ir_version()) return invalid("not an ONNX model: no IR version");
  if (proto.ir_version() < 1)
    return invalid("IR version " + std::to_string(proto.ir_version()) + " does not exist");
  if (proto.ir_version() > kMaxIrVersion)
    return unsupported("IR version " + std::to_string(proto.ir_version()) + ", at most " +
                       std::to_string(kMaxIrVersion) + " is supported");
  if (!proto.has_graph()) return invalid("the model has no graph");
  model->producer = proto.producer_name();
  if (!proto.producer_version().empty()) model->producer += " " + proto.producer_version();
  TW_ASSIGN(model->opset_imports, convert_opsets(proto.opset_import()));
  // Before IR version 3 there were no imports: the first version of the standard operators.
  if (proto.ir_version() < 3 && model->opset_imports.empty()) model->opset_imports[""] = 1;
  if (model->opset_imports.empty()) return invalid("the model imports no operator set");
  Converter converter(source);
  TW_RETURN_IF_ERROR(converter.convert_graph(proto.graph(), model->opset_imports, model->graph));
  drop_repeated(model->graph.outputs);
  for (const auto& f : proto.functions()) {
    auto status = converter.convert_function(f, model->functions.emplace_back());
    if (!status) return located(status.error(), "function " + quote(f.name()));
  }
  return model;
}

}  // namespace tilewright
