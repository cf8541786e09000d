#include "frontends/onnx/import_graph.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "frontends/onnx/graph_import.h"
#include "frontends/onnx/signatures.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"

namespace tilewright {
namespace onnx {

using ir::ValueId;

// The bytes stay where the model file is mapped, aligned or not: readers of constants copy
// elements.
ir::ConstantRef to_constant(const TensorView& t) {
  return std::make_shared<const ir::Constant>(
      ir::Constant{*t.dtype(), t.shape, t.data, t.bytes, t.owner});
}

ir::TensorType GraphImport::input_type(const OnnxValueInfo& info) {
  auto fail = [&](const std::string& what) {
    throw ImportFailure{unsupported("input '" + info.name + "': " + what)};
  };
  if (info.type.kind != OnnxTypeKind::kTensor) fail("is no tensor");
  auto dtype = dtype_from_onnx(info.type.onnx_code);
  if (!dtype) fail("element type " + std::to_string(info.type.onnx_code));
  ir::TensorType type{*dtype, {}};
  auto given = options_.input_shapes.find(info.name);
  if (!info.type.shape) {
    if (given == options_.input_shapes.end())
      throw ImportFailure{
          needs_value("input '" + info.name + "': rank is unknown: give its shape")};
    for (int64_t d : given->second) type.dims.push_back(ir::Expr(d));
    return type;
  }
  const auto& dims = *info.type.shape;
  if (given != options_.input_shapes.end() && given->second.size() != dims.size())
    throw ImportFailure{invalid("input '" + info.name + "': shape " + to_string(given->second) +
                                " has rank " + std::to_string(given->second.size()) +
                                ", the model declares rank " + std::to_string(dims.size()))};
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t* fixed = std::get_if<int64_t>(&dims[d]);
    if (given != options_.input_shapes.end()) {
      const int64_t want = given->second[d];
      if (fixed && *fixed != want)
        throw ImportFailure{invalid("input '" + info.name + "': extent " + std::to_string(d) +
                                    " is " + std::to_string(want) + ", expected " +
                                    std::to_string(*fixed))};
      type.dims.push_back(ir::Expr(want));
    } else {
      type.dims.push_back(extents_.extent(info.name, d, dims[d]));
    }
  }
  return type;
}

void GraphImport::import_inputs(const OnnxGraph& graph, ImportScope& scope) {
  for (const OnnxValueInfo& info : graph.inputs) {
    if (graph.initializers.count(info.name)) continue;  // a constant with a declaration
    ValueId v = graph_.add_value(info.name, input_type(info));
    graph_.inputs.push_back(v);
    scope.values[info.name] = v;
    auto value = options_.input_values.find(info.name);
    if (value == options_.input_values.end()) continue;
    std::vector<ir::Expr> elements;
    const ir::Constant& c = *value->second;
    for (int64_t i = 0; i < element_count(c.shape).value_or(0); ++i)
      elements.push_back(is_float(c.dtype) ? ir::float_imm(ir::number_at(c, i), c.dtype)
                                           : ir::int_imm(ir::integer_at(c, i), c.dtype));
    graph_.value(v).known = std::move(elements);
  }
}

void GraphImport::import_initializers(const OnnxGraph& graph, ImportScope& scope) {
  for (const auto& [name, tensor] : graph.initializers) {
    if (!tensor.dtype()) {
      unsupported_.push_back(unsupported("initializer '" + name + "': element type " +
                                         std::to_string(tensor.onnx_code)));
      continue;
    }
    if (scope.values.count(name) && current_ == &graph_ && !scope.parent) continue;  // bound
    scope.values[name] = current_->add_constant(name, to_constant(tensor));
  }
}

void GraphImport::import_node(const OnnxNode& node, size_t index, ImportScope& scope) {
  // What hangs on something unsupported is passed over; the cause is reported already.
  if (!unsupported_.empty())
    for (const std::string& name : node.inputs)
      if (!name.empty() && scope.find(name) == ir::kNone && !scope.find_sequence(name)) return;
  const std::string where = describe_node(node, index);
  const OpMapping* mapping = find_mapping(node);
  if (!mapping) {
    unsupported_.push_back(
        unsupported("unsupported operator " + (node.domain.empty() ? "" : node.domain + ":") +
                        node.op_type + " (opset " + std::to_string(node.opset) + ")",
                    where));
    return;
  }
  if (const std::string mismatch = signature_mismatch(node); !mismatch.empty())
    throw ImportFailure{invalid(mismatch, where)};
  auto saved = sources_;
  sources_ = {node.name.empty() ? (node.outputs.empty() ? node.op_type : node.outputs[0])
                                : node.name};
  try {
    NodeImport import(*this, node, where, mapping->form == Form::kFormula);
    mapping->import(import);
  } catch (ImportFailure& f) {
    sources_ = saved;
    if (f.error.location.empty()) f.error.location = where;
    if (f.error.kind != ErrorKind::kUnsupported) throw;
    unsupported_.push_back(f.error);
    return;
  }
  sources_ = saved;
}

std::vector<ValueId> GraphImport::import_body(const OnnxGraph& graph, ImportScope& scope) {
  ImportScope* saved = scope_;
  scope_ = &scope;
  import_initializers(graph, scope);
  const size_t before = unsupported_.size();
  for (size_t i = 0; i < graph.nodes.size(); ++i) import_node(graph.nodes[i], i, scope);
  std::vector<ValueId> outputs;
  for (const OnnxValueInfo& o : graph.outputs) {
    ValueId v = scope.find(o.name);
    if (v == ir::kNone && scope.find_sequence(o.name))
      throw ImportFailure{unsupported("output '" + o.name + "' is a sequence")};
    if (v == ir::kNone && unsupported_.size() == before && unsupported_.empty())
      throw ImportFailure{invalid("output '" + o.name + "' is not defined")};
    outputs.push_back(v);
  }
  scope_ = saved;
  if (saved &&
      unsupported_.size() > before) {  // inside a node: that node is unsupported for this reason
    Error first = unsupported_[before];
    for (size_t i = before + 1; i < unsupported_.size(); ++i) {
      first.notes.push_back(unsupported_[i].to_string());
      first.by_inputs = join(first.by_inputs, unsupported_[i].by_inputs);
    }
    unsupported_.resize(before);
    throw ImportFailure{first};
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
  inner.outputs = build(scope, given);
  inner.output_names.resize(inner.outputs.size());
  return region;
}

namespace {

Error join_all(const std::vector<Error>& errors) {
  if (errors.size() == 1) return errors[0];
  Error all = unsupported("the model needs " + std::to_string(errors.size()) +
                          " things that are unsupported");
  std::set<std::string> seen;
  all.by_inputs = errors[0].by_inputs;
  for (const Error& e : errors) all.by_inputs = join(all.by_inputs, e.by_inputs);
  for (const Error& e : errors)
    if (seen.insert(e.message).second) all.notes.push_back(e.to_string());
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
    begin(scope);
    std::vector<ValueId> outputs = import_body(model_.graph, scope);
    if (!unsupported_.empty()) return join_all(unsupported_);
    graph_.outputs = outputs;
  } catch (ImportFailure& f) { return f.error; }
  for (const OnnxValueInfo& o : model_.graph.outputs) {
    graph_.output_names.push_back(o.name);
    if (o.type.kind != OnnxTypeKind::kTensor && o.type.kind != OnnxTypeKind::kUnknown)
      return unsupported("output '" + o.name + "' is no tensor");
  }
  return std::move(graph_);
}

}  // namespace onnx

// What an import finds out about extents goes into the next one, until nothing is new.
Result<ir::Graph> import_graph(const OnnxModel& model, const ImportOptions& options) {
  onnx::ExtentNames extents(model, options);
  std::optional<Error> first;
  for (;;) {
    onnx::GraphImport import(model, options, extents);
    Result<ir::Graph> graph = import.run();
    if (!graph.ok()) {
      // Names that join what differs may be the reason.
      if (first) return *first;
      if (graph.error().kind != ErrorKind::kInvalid || !extents.take_apart()) return graph;
      first = graph.error();
    } else if (!extents.learn(*graph)) {
      if (options.notes) *options.notes = extents.notes();
      return graph;
    }
  }
}

}  // namespace tilewright
