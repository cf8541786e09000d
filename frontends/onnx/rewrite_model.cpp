#include "frontends/onnx/rewrite_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "frontends/onnx/decode_tensor.h"
#include "frontends/onnx/find_dropouts.h"

namespace tilewright {

namespace {

using namespace onnx_format;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;
using Tensors = google::protobuf::RepeatedPtrField<TensorProto>;
using Names = std::set<std::string>;

bool is_standard(const NodeProto& node, const char* op) {
  return node.op_type() == op && (node.domain().empty() || node.domain() == "ai.onnx");
}

// --- external data
// ------------------------------------------------------------------------------------------------------

class Embed {
 public:
  Embed(const std::filesystem::path& folder, size_t most) : external_(folder), left_(most) {}

  Status graph(GraphProto& g) {
    for (TensorProto& t : *g.mutable_initializer()) TW_RETURN_IF_ERROR(tensor(t));
    for (SparseTensorProto& s : *g.mutable_sparse_initializer()) {
      TW_RETURN_IF_ERROR(tensor(*s.mutable_values()));
      TW_RETURN_IF_ERROR(tensor(*s.mutable_indices()));
    }
    return nodes(*g.mutable_node());
  }
  Status nodes(Nodes& all) {
    for (NodeProto& node : all)
      for (AttributeProto& a : *node.mutable_attribute()) {
        if (a.has_t()) TW_RETURN_IF_ERROR(tensor(*a.mutable_t()));
        for (TensorProto& t : *a.mutable_tensors()) TW_RETURN_IF_ERROR(tensor(t));
        if (a.has_g()) TW_RETURN_IF_ERROR(graph(*a.mutable_g()));
        for (GraphProto& g : *a.mutable_graphs()) TW_RETURN_IF_ERROR(graph(g));
      }
    return {};
  }

 private:
  Status tensor(TensorProto& t) {
    if (t.data_location() != TensorProto::EXTERNAL) return {};
    TW_ASSIGN(const ExternalRange range, external_range(t));
    TW_ASSIGN(const MappedRange mapped, external_.map(range));
    if (mapped.bytes.size() > left_)
      return limit_error("a model with its constants would be of more than 2 GiB");
    left_ -= mapped.bytes.size();
    t.clear_external_data();
    t.clear_data_location();
    t.set_raw_data(mapped.bytes.data(), mapped.bytes.size());
    return {};
  }
  ExternalData external_;
  size_t left_;
};

// --- inference mode
// ------------------------------------------------------------------------------------------------------

NodeProto identity(const std::string& from, const std::string& to) {
  NodeProto node;
  node.set_op_type("Identity");
  node.add_input(from);
  node.add_output(to);
  return node;
}

void remove_attribute(NodeProto& node, const char* name) {
  auto& attributes = *node.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;)
    if (attributes[i].name() == name) attributes.DeleteSubrange(i, 1);
}

// Outputs 1 to 4 are means and variances in turn. `copies` gives those that have names their values.
void infer_by_running(NodeProto& node, std::vector<NodeProto>& copies) {
  remove_attribute(node, "training_mode");
  for (int i = 1; i < node.output_size() && node.input_size() == 5; ++i)
    if (!node.output(i).empty())
      copies.push_back(identity(node.input(i % 2 == 1 ? 3 : 4), node.output(i)));
  if (node.output_size() > 1) node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
}

// Adds the names that a node and the graphs in its attributes read. Values defined in these graphs are
// included, which only keeps more nodes.
void add_names(const NodeProto& node, Names& names) {
  names.insert(node.input().begin(), node.input().end());
  const auto add_graph = [&](const GraphProto& g) {
    for (const ValueInfoProto& o : g.output()) names.insert(o.name());
    for (const NodeProto& n : g.node()) add_names(n, names);
  };
  for (const AttributeProto& a : node.attribute()) {
    if (a.has_g()) add_graph(a.g());
    for (const GraphProto& g : a.graphs()) add_graph(g);
  }
}

// Replaces dropouts that are written out by their operand, and removes the masks that nothing reads then.
// `outputs` lists the values that are read outside of these nodes.
void remove_dropouts(Nodes& nodes, const Tensors& initializers, const Names& outputs) {
  Names unread;  // results of nodes that may go
  for (const auto& [result, x] : onnx::find_dropouts(nodes, initializers))
    for (NodeProto& node : nodes) {
      if (node.output_size() != 1 || node.output(0) != result) continue;
      for (const std::string& operand : node.input())
        if (operand != x) unread.insert(operand);
      node = identity(x, result);
    }
  while (!unread.empty()) {
    Names read = outputs, next;
    for (const NodeProto& node : nodes) add_names(node, read);
    for (int i = nodes.size(); i-- > 0;) {
      const NodeProto& node = nodes[i];
      if (node.output_size() != 1 || !unread.count(node.output(0)) || read.count(node.output(0)))
        continue;
      next.insert(node.input().begin(), node.input().end());
      nodes.DeleteSubrange(i, 1);
    }
    unread = std::move(next);
  }
}

void set_inference_mode(Nodes& nodes, const Tensors& initializers, const Names& outputs);
void set_inference_mode(GraphProto& graph) {
  Names outputs;
  for (const ValueInfoProto& o : graph.output()) outputs.insert(o.name());
  set_inference_mode(*graph.mutable_node(), graph.initializer(), outputs);
}
void set_inference_mode(Nodes& nodes, const Tensors& initializers, const Names& outputs) {
  remove_dropouts(nodes, initializers, outputs);
  std::vector<NodeProto> all;
  bool more = false;
  for (NodeProto& node : nodes) {
    for (AttributeProto& a : *node.mutable_attribute()) {
      if (a.has_g()) set_inference_mode(*a.mutable_g());
      for (GraphProto& g : *a.mutable_graphs()) set_inference_mode(g);
    }
    std::vector<NodeProto> copies;
    if (is_standard(node, "Dropout") && node.input_size() > 2)
      node.mutable_input()->DeleteSubrange(2, node.input_size() - 2);
    if (is_standard(node, "BatchNormalization")) infer_by_running(node, copies);
    all.push_back(node);
    more |= !copies.empty();
    for (NodeProto& copy : copies) all.push_back(std::move(copy));
  }
  if (more) nodes.Assign(all.begin(), all.end());
}

// --- chosen outputs
// ------------------------------------------------------------------------------------------------------

template <typename Field, typename NameOf>
void keep_only(Field& field, const Names& names, NameOf name_of) {
  for (int i = field.size(); i-- > 0;)
    if (!names.count(name_of(field[i]))) field.DeleteSubrange(i, 1);
}

void remove_unused(GraphProto& graph) {
  Names used;
  for (const ValueInfoProto& o : graph.output()) used.insert(o.name());
  std::vector<bool> keeps(static_cast<size_t>(graph.node_size()), false);
  for (bool more = true; more;) {  // a file may have its nodes in any order
    more = false;
    for (int i = graph.node_size(); i-- > 0;) {
      const NodeProto& node = graph.node(i);
      const bool wanted = std::any_of(node.output().begin(), node.output().end(),
                                      [&](const std::string& o) { return used.count(o) != 0; });
      if (!wanted || keeps[static_cast<size_t>(i)]) continue;
      more = keeps[static_cast<size_t>(i)] = true;
      add_names(node, used);
    }
  }
  Nodes kept;
  for (int i = 0; i < graph.node_size(); ++i)
    if (keeps[static_cast<size_t>(i)]) *kept.Add() = std::move(*graph.mutable_node(i));
  graph.mutable_node()->Swap(&kept);
  const auto name = [](const auto& message) { return message.name(); };
  keep_only(*graph.mutable_initializer(), used, name);
  keep_only(*graph.mutable_sparse_initializer(), used,
            [](const SparseTensorProto& s) { return s.values().name(); });
  keep_only(*graph.mutable_input(), used, name);
  keep_only(*graph.mutable_value_info(), used, name);
}

ValueInfoProto value_info(const OnnxValueInfo& value) {
  ValueInfoProto info;
  info.set_name(value.name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(value.type.onnx_code);
  if (!value.type.shape) return info;
  type.mutable_shape();
  for (const OnnxDimension& d : *value.type.shape) {
    auto& dim = *type.mutable_shape()->add_dim();
    if (const auto* extent = std::get_if<int64_t>(&d)) dim.set_dim_value(*extent);
    if (const auto* symbol = std::get_if<std::string>(&d)) dim.set_dim_param(*symbol);
  }
  return info;
}

}  // namespace

Status embed_external(ModelProto& model, const std::filesystem::path& folder, size_t most) {
  Embed embed(folder, most);
  TW_RETURN_IF_ERROR(embed.graph(*model.mutable_graph()));
  for (FunctionProto& f : *model.mutable_functions())
    TW_RETURN_IF_ERROR(embed.nodes(*f.mutable_node()));
  return {};
}

void set_inference_mode(ModelProto& model) {
  set_inference_mode(*model.mutable_graph());
  for (FunctionProto& f : *model.mutable_functions())
    set_inference_mode(*f.mutable_node(), {}, {f.output().begin(), f.output().end()});
}

Status choose_outputs(GraphProto& graph, const std::vector<std::string>& names,
                      const std::vector<OnnxValueInfo>& types) {
  std::map<std::string, ValueInfoProto> known;
  for (const OnnxValueInfo& v : types) known[v.name] = value_info(v);
  for (const auto* field : {&graph.value_info(), &graph.input(), &graph.output()})
    for (const ValueInfoProto& v : *field)
      if (v.has_type()) known[v.name()] = v;
  Names there;
  for (const NodeProto& node : graph.node())
    there.insert(node.output().begin(), node.output().end());
  Names given;
  std::vector<ValueInfoProto> outputs;
  for (const std::string& name : names) {
    if (name.empty() || !there.count(name)) {
      std::string own;
      for (const ValueInfoProto& o : graph.output())
        own += (own.empty() ? "" : ", ") + quote(o.name());
      return invalid("no node of the model gives " + quote(name) + "; its outputs are " + own);
    }
    if (!given.insert(name).second) return invalid("output " + quote(name) + " is given twice");
    ValueInfoProto info = known[name];
    info.set_name(name);
    outputs.push_back(std::move(info));
  }
  graph.mutable_output()->Assign(outputs.begin(), outputs.end());
  remove_unused(graph);
  return {};
}

}  // namespace tilewright
