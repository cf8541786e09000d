// Operands, attributes and results of one node. Halves are widened here rather than in each
// formula: `in` gives a formula its f16 and bf16 operands as f32 and `out` rounds its results,
// once.
#include "frontends/onnx/node_import.h"

#include "frontends/onnx/broadcasting_ops.h"
#include "frontends/onnx/graph_import.h"
#include "frontends/tensor_files/element_type.h"
#include "ir/formula/expand_operands.h"
#include "ir/graph/broadcast.h"
#include "ir/graph/op.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::onnx {

using ir::ValueId;

ValueId ImportScope::find(const std::string& name) {
  auto it = values.find(name);
  if (it != values.end()) return it->second;
  ValueId v = parent ? parent->find(name) : ir::kNone;
  return v == ir::kNone || !capture ? v : values[name] = capture(v);
}

std::optional<std::vector<ValueId>> ImportScope::find_sequence(const std::string& name) {
  auto it = sequences.find(name);
  if (it != sequences.end()) return it->second;
  std::optional<std::vector<ValueId>> elements;
  if (parent && !values.count(name)) elements = parent->find_sequence(name);
  if (!elements || !capture) return elements;
  for (ValueId& v : *elements) v = capture(v);
  return sequences[name] = *elements;
}

ir::Graph& NodeImport::graph() { return owner_.graph(); }
const ir::Graph& NodeImport::graph() const { return owner_.graph(); }

namespace {
bool is_half(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }
}  // namespace

ValueId NodeImport::stored(int i) const {
  if (!has(i)) return ir::kNone;
  ValueId v = owner_.scope()->find(node.inputs[static_cast<size_t>(i)]);
  if (v == ir::kNone && is_sequence(i)) unsupported("a sequence as operand " + std::to_string(i));
  if (v == ir::kNone)
    fail("input '" + node.inputs[static_cast<size_t>(i)] + "' depends on something unsupported");
  return v;
}
bool NodeImport::is_sequence(int i) const {
  return has(i) && owner_.scope()->find_sequence(node.inputs[static_cast<size_t>(i)]);
}
std::vector<ValueId> NodeImport::sequence(int i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  auto elements = owner_.scope()->find_sequence(node.inputs[static_cast<size_t>(i)]);
  if (!elements) {
    stored(i);
    fail("operand " + std::to_string(i) + " is a tensor, expected a sequence");
  }
  return *elements;
}
ValueId NodeImport::in(int i) { return widened(stored(i)); }
ValueId NodeImport::widened(ValueId v) {
  if (!formula_ || v == ir::kNone || !is_half(dtype(v))) return v;
  auto [it, fresh] = widened_.emplace(v, ir::kNone);
  if (fresh) it->second = cast(v, DType::kFloat32);
  return it->second;
}
ValueId NodeImport::required(int i) {
  required_stored(i);
  return in(i);
}
ValueId NodeImport::required_stored(int i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  return stored(i);
}
std::vector<ValueId> NodeImport::all_inputs() {
  std::vector<ValueId> r;
  for (int i = 0; i < num_inputs(); ++i) r.push_back(in(i));
  return r;
}

bool NodeImport::is_read(int output) const {
  return wants(output) && owner_.reads(node.outputs[static_cast<size_t>(output)]);
}

std::vector<int64_t> NodeImport::must_know_ints(ValueId v, const char* what) const {
  auto r = known_ints(v);
  if (!r) needs_value(std::string(what) + " is not known at compile time");
  return *r;
}
std::optional<std::vector<double>> NodeImport::known_floats(ValueId v) const {
  auto elements = known(v);
  if (!elements) return std::nullopt;
  std::vector<double> r;
  for (const ir::Expr& e : *elements) {
    if (const auto* f = e.as<ir::FloatImm>())
      r.push_back(f->value);
    else if (auto i = ir::as_int(e))
      r.push_back(static_cast<double>(*i));
    else
      return std::nullopt;
  }
  return r;
}

namespace {
// Null when it is absent; of another kind than the operator's: the model breaks a rule.
template <typename T>
const T* attribute(const OnnxNode& node, const std::string& name) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value) throw ImportFailure{invalid("attribute '" + name + "' is of the wrong kind")};
  return value;
}
}  // namespace

int64_t NodeImport::int_attr(const std::string& name, int64_t fallback) const {
  const auto* v = attribute<int64_t>(node, name);
  return v ? *v : fallback;
}
double NodeImport::float_attr(const std::string& name, double fallback) const {
  const auto* v = attribute<float>(node, name);
  return v ? static_cast<double>(*v) : static_cast<double>(static_cast<float>(fallback));
}
std::string NodeImport::string_attr(const std::string& name, const std::string& fallback) const {
  const auto* v = attribute<std::string>(node, name);
  return v ? *v : fallback;
}
std::vector<int64_t> NodeImport::ints_attr(const std::string& name,
                                           std::vector<int64_t> fallback) const {
  const auto* v = attribute<std::vector<int64_t>>(node, name);
  return v ? *v : std::move(fallback);
}
std::vector<double> NodeImport::floats_attr(const std::string& name,
                                            std::vector<double> fallback) const {
  const auto* v = attribute<std::vector<float>>(node, name);
  return v ? std::vector<double>(v->begin(), v->end()) : std::move(fallback);
}
std::vector<std::string> NodeImport::strings_attr(const std::string& name) const {
  const auto* v = attribute<std::vector<std::string>>(node, name);
  return v ? *v : std::vector<std::string>{};
}
// In import_graph.cpp: a constant of the graph that shares the bytes of the model's file.
ir::ConstantRef to_constant(const TensorView& t);
ir::ConstantRef NodeImport::tensor_attr(const std::string& name) const {
  const auto* v = attribute<TensorView>(node, name);
  if (!v) return nullptr;
  if (!v->dtype())
    unsupported("attribute '" + name + "' has element type " + onnx_element_name(v->onnx_code));
  return to_constant(*v);
}
const OnnxGraph* NodeImport::graph_attr(const std::string& name) const {
  const auto* v = attribute<std::shared_ptr<OnnxGraph>>(node, name);
  return v ? v->get() : nullptr;
}
std::optional<std::vector<int64_t>> NodeImport::axes(int input, int64_t input_since) const {
  if (opset() >= input_since) {
    if (!has(input)) return std::nullopt;
    return must_know_ints(stored(input), "axes");
  }
  if (!has_attr("axes")) return std::nullopt;
  return ints_attr("axes");
}

bool NodeImport::takes_for_equal(const ir::Expr& a, const ir::Expr& b) {
  return !broadcasts(node) || owner_.takes_for_equal(a, b);
}
ir::Expr NodeImport::joined(const ir::Expr& a, const ir::Expr& b) {
  const bool open = !ir::is_one(a) && !ir::is_one(b) && !can_prove_equal(a, b);
  if (open && takes_for_equal(a, b)) return ir::as_int(b) ? b : a;
  const auto both = ir::broadcast_extent(a, b);
  if (!both) fail("extents " + to_text(a) + " and " + to_text(b) + " do not broadcast");
  return *both;
}
void NodeImport::require_broadcasts(ValueId v, const std::vector<ir::Expr>& dims) {
  if (static_cast<size_t>(rank(v)) > dims.size())
    fail("an operand is " + to_string(type(v)) + ", expected at most " +
         std::to_string(dims.size()) + " dimensions");
  for (int d = 0; d < rank(v); ++d) {
    const ir::Expr have = dim(v, d), to = dims[dims.size() - static_cast<size_t>(rank(v) - d)];
    const bool open = !ir::as_int(have) || !ir::as_int(to);
    if (can_prove_equal(have, to) || (open && owner_.takes_for_equal(have, to))) continue;
    const auto both = ir::broadcast_extent(have, to);
    if (!both) fail("extents " + to_text(have) + " and " + to_text(to) + " do not broadcast");
    require_equal(*both, to, "an operand broadcasts to the shape of the first");
  }
}
ValueId NodeImport::expanded_to(ValueId v, std::vector<ir::Expr> dims) {
  if (v == ir::kNone) return v;
  require_broadcasts(v, dims);
  dims.erase(dims.begin(), dims.end() - rank(v));
  bool repeats = false;
  for (int d = 0; d < rank(v); ++d) {
    ir::Expr& to = dims[static_cast<size_t>(d)];
    if (ir::may_repeat(dim(v, d), to) && !owner_.takes_for_equal(dim(v, d), to))
      repeats = true;
    else
      to = dim(v, d);
  }
  return repeats ? op("expand", {v, this->dims(dims)}) : v;
}

std::vector<ValueId> NodeImport::ops(std::string_view name, std::vector<ValueId> inputs,
                                     ir::Attributes attributes, int outputs) {
  return control(name, std::move(inputs), std::move(attributes), outputs, {});
}
// Nodes are called after the first result of the model's node, so that later messages and the text
// form speak of what the user knows.
std::vector<ValueId> NodeImport::control(std::string_view name, std::vector<ValueId> inputs,
                                         ir::Attributes attributes, int outputs,
                                         std::vector<std::shared_ptr<const ir::Graph>> regions) {
  std::string label = where_;
  for (const std::string& o : node.outputs)
    if (!o.empty()) {
      label = o;
      break;
    }
  inputs = ir::expand_operands(
      *this, name, std::move(inputs),
      [&](const ir::Expr& a, const ir::Expr& b) { return takes_for_equal(a, b); });
  auto r = ir::add_node(graph(), name, std::move(inputs), std::move(attributes), outputs, label,
                        owner_.sources(), std::move(regions));
  if (!r.ok()) throw ImportFailure{std::move(r.error())};
  return std::move(r).value();
}
ValueId NodeImport::product(std::string_view name, std::vector<ValueId> inputs,
                            ir::Attributes attributes) {
  if (formula_ && is_half(dtype(inputs[0]))) attributes["out_dtype"] = std::string("f32");
  return op(name, std::move(inputs), std::move(attributes));
}
// A value keeps the first name it gets; further results of the same value are only entered in the
// scope.
void NodeImport::out(int i, ValueId v, int like) {
  if (!wants(i)) return;
  if (formula_ && dtype(v) == DType::kFloat32 && has(like) && is_half(dtype(stored(like))))
    v = cast(v, dtype(stored(like)));
  const std::string& name = node.outputs[static_cast<size_t>(i)];
  owner_.scope()->values[name] = v;
  ir::Value& value = graph().value(v);
  if (value.name.empty()) value.name = name;
}
void NodeImport::out_sequence(std::vector<ValueId> elements) {
  if (wants(0)) owner_.scope()->sequences[node.outputs[0]] = std::move(elements);
}
std::vector<ValueId> NodeImport::inline_graph(const OnnxGraph& nested,
                                              const std::map<std::string, ValueId>& inputs) {
  ImportScope inner;
  inner.parent = owner_.scope();
  inner.values = inputs;
  return owner_.import_body(nested, inner);
}

void NodeImport::require_at_most(const ir::Expr& a, const ir::Expr& b, const std::string& rule) {
  const auto x = ir::as_int(a), y = ir::as_int(b);
  if (x && y && *x > *y)
    fail(rule + ": extents are " + std::to_string(*x) + " and " + std::to_string(*y));
  if (!ir::can_prove(a <= b))
    graph().requirements.push_back({a, b, ir::Relation::kAtMost, where_ + ": " + rule});
}
void NodeImport::require_equal(const ir::Expr& a, const ir::Expr& b, const std::string& rule) {
  const auto x = ir::as_int(a), y = ir::as_int(b);
  if (x && y && *x != *y)
    fail(rule + ": extents are " + std::to_string(*x) + " and " + std::to_string(*y) +
         ", expected them to be equal");
  if (!can_prove_equal(a, b))
    graph().requirements.push_back({a, b, ir::Relation::kEqual, where_ + ": " + rule});
}
ValueId NodeImport::within(ValueId v, const ir::Expr& end, const std::string& what) {
  if (v == ir::kNone) return v;
  return op("within", {v},
            {{"extents", ir::Extents{{simplify(end)}}}, {"what", where_ + ": " + what}});
}
void NodeImport::require_multiple(const ir::Expr& a, int64_t of, const std::string& rule) {
  require_equal(a, simplify(floordiv(a, of) * ir::Expr(of)), rule);
}

void NodeImport::fail(const std::string& message) const {
  throw ImportFailure{invalid(message, where_)};
}
void NodeImport::needs_value(const std::string& message) const {
  throw ImportFailure{tilewright::needs_value(message, where_)};
}
void NodeImport::unsupported(const std::string& message) const {
  throw ImportFailure{tilewright::unsupported(message, where_)};
}

}  // namespace tilewright::onnx
