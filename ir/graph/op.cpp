#include "ir/graph/op.h"

#include <unordered_map>

#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

const OpDef* find_op(std::string_view name) {
  static const auto* const index = [] {
    auto* m = new std::unordered_map<std::string_view, const OpDef*>;
    for (const OpDef* op : all_ops()) TW_CHECK(m->emplace(op->name, op).second);
    return m;
  }();
  auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

const AttributeDef* find_attribute_def(const Node& node, std::string_view attribute) {
  const auto among = [&](const OpDef& op) -> const AttributeDef* {
    for (const AttributeDef& d : op.attributes)
      if (d.name == attribute) return &d;
    return nullptr;
  };
  const AttributeDef* own = among(*node.op);
  if (own || !node.op->takes_others_attributes) return own;
  const auto other = node.attributes.find(kTransposedOp);
  const auto* name =
      other == node.attributes.end() ? nullptr : std::get_if<std::string>(&other->second);
  const OpDef* op = name ? find_op(*name) : nullptr;
  return op ? among(*op) : nullptr;
}

std::optional<std::vector<Expr>> NodeView::known(int i) const {
  if (!has(i)) return std::nullopt;
  const Value& v = value(i);
  if (v.known) return v.known;
  // The elements of an empty tensor are always known.
  if (auto shape = constant_shape(v.type); shape && tilewright::element_count(*shape) == 0)
    return std::vector<Expr>{};
  if (!v.constant) return std::nullopt;
  auto n = tilewright::element_count(v.constant->shape);
  if (!n || *n > 65536) return std::nullopt;
  std::vector<Expr> elements;
  for (int64_t k = 0; k < *n; ++k)
    elements.push_back(is_float(v.constant->dtype)
                           ? float_imm(number_at(*v.constant, k), v.constant->dtype)
                           : int_imm(integer_at(*v.constant, k), v.constant->dtype));
  return elements;
}
std::optional<std::vector<int64_t>> NodeView::known_ints(int i) const {
  auto elements = known(i);
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  for (const Expr& e : *elements) {
    auto v = as_int(e);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

namespace {
template <typename T>
const T* find_attribute(const Node& node, const std::string& name) {
  auto it = node.attributes.find(name);
  return it == node.attributes.end() ? nullptr : std::get_if<T>(&it->second);
}
}  // namespace

int64_t NodeView::attr_int(const std::string& name, int64_t fallback) const {
  const auto* v = find_attribute<int64_t>(node_, name);
  return v ? *v : fallback;
}
double NodeView::attr_float(const std::string& name, double fallback) const {
  const auto* v = find_attribute<double>(node_, name);
  return v ? *v : fallback;
}
std::string NodeView::attr_string(const std::string& name, const std::string& fallback) const {
  const auto* v = find_attribute<std::string>(node_, name);
  return v ? *v : fallback;
}
std::vector<int64_t> NodeView::attr_ints(const std::string& name,
                                         std::vector<int64_t> fallback) const {
  const auto* v = find_attribute<std::vector<int64_t>>(node_, name);
  return v ? *v : std::move(fallback);
}
std::optional<std::vector<Expr>> NodeView::attr_extents(const std::string& name) const {
  if (const auto* v = find_attribute<Extents>(node_, name)) return v->dims;
  if (const auto* v = find_attribute<std::vector<int64_t>>(node_, name))
    return std::vector<Expr>(v->begin(), v->end());
  return std::nullopt;
}
int NodeView::axis(int rank, int64_t fallback) const {
  const int64_t a = attr_int("axis", fallback);
  return static_cast<int>(a < 0 ? a + rank : a);
}

void InferContext::set_output(int i, TensorType type) {
  if (static_cast<size_t>(i) >= outputs_.size()) outputs_.resize(static_cast<size_t>(i) + 1);
  for (Expr& d : type.dims) d = simplify(d);
  outputs_[static_cast<size_t>(i)] = std::move(type);
}
// Symbols of a node are made once: inferring it again gives the same ones.
Var InferContext::data_dependent_symbol(int index, const std::string& name) {
  auto& symbols = mutable_node_.defined_symbols;
  while (static_cast<int>(symbols.size()) <= index) {
    const std::string& base = node_.outputs.empty() || node_.outputs[0] == kNone
                                  ? name
                                  : graph_.value(node_.outputs[0]).name;
    symbols.push_back(Var(base + "." + name));
  }
  return symbols[static_cast<size_t>(index)];
}
Error InferContext::error(const std::string& message) const {
  return invalid(describe(node_) + ": " + message);
}
Error InferContext::unsupported(const std::string& message) const {
  return tilewright::unsupported(describe(node_) + ": " + message);
}
Error InferContext::needs_value(const std::string& message) const {
  return at_node(tilewright::needs_value(message));
}
Error InferContext::at_node(Error error) const {
  error.message = describe(node_) + ": " + error.message;
  return error;
}

// Unknown extents are taken for equal, and the run checks it (kRequire).
bool NodeView::agree(const Expr& a, const Expr& b) const {
  const auto x = as_int(a), y = as_int(b);
  if (x && y) return *x == *y;
  if (!can_prove_equal(a, b)) expect_equal(a, b);
  return true;
}
// Adds a requirement, which the run checks, if a <= b cannot be proven.
bool NodeView::at_most(const Expr& a, const Expr& b, const std::string& rule) const {
  const auto x = as_int(a), y = as_int(b);
  if (x && y) return *x <= *y;
  if (!can_prove(a <= b)) expect({a, b, Relation::kAtMost, rule});
  return true;
}
// An open extent is a multiple if rounding it down to one changes nothing.
bool NodeView::is_multiple(const Expr& a, int64_t of, const std::string& rule) const {
  if (const auto x = as_int(a)) return *x % of == 0;
  const Expr whole = simplify(floordiv(a, of) * Expr(of));
  if (!can_prove_equal(a, whole)) expect({a, whole, Relation::kEqual, rule});
  return true;
}
bool NodeView::broadcasts(const Expr& a, const Expr& b) const {
  if (is_one(a) || is_one(b) || can_prove_equal(a, b)) return true;
  if (as_int(a) && as_int(b)) return false;
  expect({a, b, Relation::kBroadcast, ""});
  return true;
}
void InferContext::expect(Requirement requirement) const {
  requirement.what = describe(node_) + (requirement.what.empty() ? "" : ": ") + requirement.what;
  requirements_.push_back(std::move(requirement));
}
void InferContext::expect_equal(const Expr& a, const Expr& b) const {
  equal_extents_.emplace_back(a, b);
}

Result<std::vector<Expr>> NodeView::broadcast(const std::vector<Expr>& a,
                                              const std::vector<Expr>& b) const {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<Expr> r(rank);
  for (size_t i = 0; i < rank; ++i) {
    Expr x = i + a.size() < rank ? Expr(1) : a[i + a.size() - rank];
    Expr y = i + b.size() < rank ? Expr(1) : b[i + b.size() - rank];
    if (is_one(x))
      r[i] = y;
    else if (is_one(y))
      r[i] = x;
    else if (!agree(x, y))
      return invalid("extents " + to_text(x) + " and " + to_text(y) + " do not broadcast");
    else
      r[i] = as_int(y) ? y : x;
  }
  return r;
}

}  // namespace tilewright::ir
