#include "frontends/onnx/import_graph.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "frontends/onnx/find_dropouts.h"
#include "frontends/onnx/graph_import.h"
#include "frontends/onnx/operand_shapes.h"
#include "frontends/onnx/operand_types.h"
#include "frontends/onnx/signatures.h"
#include "frontends/tensor_files/element_type.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"

namespace tilewright {
namespace onnx {

using ir::ValueId;

namespace {
// Calls visit(graph) for each graph in the attributes of the node.
template <typename Visit>
void for_each_graph(const OnnxNode& node, Visit visit) {
  for (const auto& [name, value] : node.attributes) {
    if (auto* graph = std::get_if<std::shared_ptr<OnnxGraph>>(&value)) visit(**graph);
    if (auto* graphs = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
      for (const auto& g : *graphs) visit(*g);
  }
}
void add_reads(const OnnxGraph& graph, std::unordered_set<std::string>& names) {
  for (const OnnxValueInfo& o : graph.outputs) names.insert(o.name);
  for (const OnnxNode& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for_each_graph(node, [&](const OnnxGraph& g) { add_reads(g, names); });
  }
}
}  // namespace

bool GraphImport::reads(const std::string& value) {
  auto [it, fresh] = read_in_.try_emplace(body_);
  if (fresh) add_reads(*body_, it->second);
  return it->second.count(value) != 0;
}

bool GraphImport::hangs_on_unsupported(const OnnxNode& node, ImportScope& scope) const {
  if (unsupported_.empty()) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
    return !name.empty() && scope.find(name) == ir::kNone && !scope.find_sequence(name);
  });
}
// Of a node that is not imported: the operators that are unsupported, its own and those of its graphs.
void GraphImport::name_unmapped(const OnnxNode& node, const std::string& where) {
  if (!find_mapping(node))
    unsupported_.push_back(
        unsupported("unsupported operator " + (node.domain.empty() ? "" : node.domain + ":") +
                        node.op_type + " (opset " + std::to_string(node.opset) + ")",
                    where));
  for_each_graph(node, [&](const OnnxGraph& graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      name_unmapped(graph.nodes[i], describe_node(graph.nodes[i], i));
  });
}

void GraphImport::import_node(const OnnxNode& node, size_t index, ImportScope& scope) {
  const std::string where = describe_node(node, index);
  const OpMapping* mapping = find_mapping(node);
  if (!mapping || hangs_on_unsupported(node, scope)) return name_unmapped(node, where);
  if (const std::string mismatch = signature_mismatch(node); !mismatch.empty())
    throw ImportFailure{invalid(mismatch, where)};
  auto saved = sources_;
  sources_ = {node.name.empty() ? (node.outputs.empty() ? node.op_type : node.outputs[0])
                                : node.name};
  try {
    NodeImport import(*this, node, where, mapping->form == Form::kFormula);
    if (const Signature* signature = find_signature(node)) {
      check_operand_types(import, *signature);
      check_operand_shapes(import, *signature);
    }
    mapping->import(import);
  } catch (ImportFailure& f) {
    sources_ = saved;
    if (f.error.location.empty()) f.error.location = where;
    if (f.error.kind != ErrorKind::kUnsupported) throw;
    unsupported_.push_back(std::move(f.error));
    for (Error& e : f.others) unsupported_.push_back(std::move(e));
    return;
  }
  sources_ = saved;
}

std::vector<ValueId> GraphImport::import_body(const OnnxGraph& graph, ImportScope& scope,
                                              const std::function<bool(size_t)>& is_tensor) {
  struct Restore {
    GraphImport& import;
    ImportScope* scope;
    const OnnxGraph* body;
    ~Restore() {
      import.scope_ = scope;
      import.body_ = body;
    }
  } restore{*this, scope_, body_};
  const bool nested = scope_ != nullptr;
  scope_ = &scope;
  body_ = &graph;
  import_initializers(graph, scope);
  const size_t before = unsupported_.size();
  std::map<std::string, std::string> dropouts;
  if (mode() == ImportMode::kInference) dropouts = find_dropouts(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& node = graph.nodes[i];
    const auto dropout = node.outputs.size() == 1 ? dropouts.find(node.outputs[0]) : dropouts.end();
    if (dropout == dropouts.end())
      import_node(node, i, scope);
    else
      import_node({.op_type = "Identity",
                   .opset = node.opset,
                   .name = node.name,
                   .inputs = {dropout->second},
                   .outputs = node.outputs},
                  i, scope);
  }
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    if (!is_tensor(k)) continue;
    const OnnxValueInfo& o = graph.outputs[k];
    ValueId v = scope.find(o.name);
    if (v == ir::kNone && scope.find_sequence(o.name))
      throw ImportFailure{unsupported("output '" + o.name + "' is a sequence")};
    if (v == ir::kNone && unsupported_.size() == before && unsupported_.empty())
      throw ImportFailure{invalid("output '" + o.name + "' is not defined")};
    outputs.push_back(v);
  }
  // Inside a node: that node is unsupported for these reasons.
  if (nested && unsupported_.size() > before) {
    const auto first = unsupported_.begin() + static_cast<std::ptrdiff_t>(before);
    ImportFailure failure{std::move(*first), {}};
    failure.others.assign(std::move_iterator(first + 1), std::move_iterator(unsupported_.end()));
    unsupported_.resize(before);
    throw failure;
  }
  return outputs;
}

GraphImport::Region GraphImport::import_region(const std::string& name,
                                               const std::vector<ir::Value>& inputs,
                                               const BuildRegion& build) {
  Region region{std::make_shared<ir::Graph>(), {}};
  ir::Graph &outer = *current_, &inner = *region.graph;
  inner.name = name;
  auto copy_of = [&](const ir::Value& value) {
    if (value.constant) return inner.add_constant(value.name, value.constant);
    ValueId v = inner.add_value(value.name, value.type);
    inner.value(v).known = value.known;
    inner.inputs.push_back(v);
    return v;
  };
  ImportScope scope;
  scope.parent = scope_;
  std::vector<ValueId> given;
  for (const ir::Value& v : inputs) given.push_back(copy_of(v));
  std::map<ValueId, ValueId> brought;
  scope.capture = [&](ValueId v) {
    auto [it, fresh] = brought.emplace(v, ir::kNone);
    if (!fresh) return it->second;
    it->second = copy_of(outer.value(v));
    if (!outer.value(v).constant) region.captured.push_back(v);
    return it->second;
  };
  struct Restore {
    GraphImport& import;
    ir::Graph* graph;
    ImportScope* scope;
    ~Restore() {
      import.current_ = graph;
      import.scope_ = scope;
    }
  } restore{*this, current_, scope_};
  current_ = &inner;
  scope_ = &scope;
  inner.outputs = build(scope, given);
  inner.output_names.resize(inner.outputs.size());
  return region;
}

void GraphImport::in_graph(ir::Graph& graph, const std::function<void()>& build) {
  struct Restore {
    GraphImport& import;
    ir::Graph* graph;
    ~Restore() { import.current_ = graph; }
  } restore{*this, current_};
  current_ = &graph;
  build();
}

namespace {

// Each reason once, with the first node that has it and the number of the others.
Error join_all(const std::vector<Error>& errors) {
  std::vector<std::pair<Error, size_t>> reasons;
  std::map<std::string, size_t> place;
  for (const Error& e : errors) {
    auto [it, fresh] = place.emplace(e.message, reasons.size());
    if (fresh) reasons.emplace_back(e, 0);
    ++reasons[it->second].second;
  }
  Cure cure = errors[0].by_inputs;
  for (auto& [e, nodes] : reasons) {
    if (nodes > 1)
      e.message +=
          ", also at " + std::to_string(nodes - 1) + (nodes > 2 ? " other nodes" : " other node");
    cure = join(cure, e.by_inputs);
  }
  if (reasons.size() == 1) return reasons[0].first;
  Error all = unsupported("the model needs " + std::to_string(reasons.size()) +
                          " things that are unsupported");
  all.by_inputs = cure;
  for (const auto& [e, nodes] : reasons) all.notes.push_back(e.to_string());
  return all;
}

}  // namespace

// Values that no node of the model gives.
void GraphImport::begin(ImportScope& scope) {
  const bool draws = this->draws(model_.graph);
  BoundValues bound = options_.bind ? options_.bind(graph_, draws) : BoundValues();
  if (draws && bound.key == ir::kNone)
    bound.key = ir::add_node(graph_, "run_key", {}, {}, 1, "", {}).value()[0];
  if (training()) training()->updated.clear();
  for (const auto& [name, value] : bound.initializers) {
    scope.values[name] = value;
    if (training()) training()->updated[value] = value;
  }
  scope.values[kRunKey] = bound.key;
  scope.values[kSamples] = bound.samples;
}

bool GraphImport::takes_for_equal(const ir::Expr& a, const ir::Expr& b) {
  if (!extents_.are_of_inputs(a) || !extents_.are_of_inputs(b)) return false;
  if (options_.met_in_broadcast) *options_.met_in_broadcast = true;
  return options_.broadcast == ImportOptions::Broadcast::kEqual;
}

Result<ir::Graph> GraphImport::run() {
  constexpr int64_t kNewestOpset =
      28;  // of the standard operators; a newer one may have changed any of them
  auto opset = model_.opset_imports.find("");
  if (opset != model_.opset_imports.end() && opset->second > kNewestOpset)
    return unsupported("the model uses opset " + std::to_string(opset->second) +
                       ", the newest that is known is " + std::to_string(kNewestOpset));
  graph_.name = model_.graph.name;
  ImportScope scope;
  try {
    import_inputs(model_.graph, scope);
    if (options_.bind && !unsupported_.empty()) return join_all(unsupported_);
    begin(scope);
    std::vector<ValueId> outputs = import_body(model_.graph, scope);
    if (!unsupported_.empty()) return join_all(unsupported_);
    graph_.outputs = outputs;
  } catch (ImportFailure& f) { return f.error; }
  for (size_t k = 0; k < model_.graph.outputs.size(); ++k) {
    const OnnxValueInfo& o = model_.graph.outputs[k];
    graph_.output_names.push_back(o.name);
    if (o.type.kind != OnnxTypeKind::kTensor && o.type.kind != OnnxTypeKind::kUnknown)
      return unsupported("output '" + o.name + "' is " + describe_kind(o.type.kind) +
                         ", expected a tensor");
    const DType found = graph_.value(graph_.outputs[k]).type.dtype;
    // A model that contradicts itself may be another than its author thinks.
    if (o.type.kind == OnnxTypeKind::kTensor && o.type.onnx_code != 0 &&
        dtype_from_onnx(o.type.onnx_code) != found)
      return invalid("output '" + o.name + "' is " + std::string(name(found)) +
                     ", the model declares " + onnx_element_name(o.type.onnx_code));
  }
  return std::move(graph_);
}

}  // namespace onnx
}  // namespace tilewright
