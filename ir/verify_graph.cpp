// Checks the rules of verify_graph.h, a node at a time in topological order; regions recursively.
// Inferred types are compared with those that the graph states by inferring each node again.
#include "ir/verify_graph.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <unordered_set>

#include "ir/graph/op.h"
#include "ir/graph/view_layouts.h"
#include "ir/loops/rewrite.h"
#include "ir/module_text/printer_graph.h"
#include "ir/ops/known_ops.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {

using Symbols = std::unordered_set<const ExprNode*>;
constexpr size_t kMaxViolations = 50;

class GraphVerifier {
 public:
  GraphVerifier(const Graph& g, GraphStage stage, Symbols symbols,
                std::vector<std::string>& violations)
      : g_(g), stage_(stage), symbols_(std::move(symbols)), violations_(violations) {}

  void run() {
    defined_.assign(g_.values.size(), false);
    grouped_ =
        std::any_of(g_.nodes.begin(), g_.nodes.end(), [](const Node& n) { return n.group >= 0; });
    for (ValueId v : g_.inputs) input(v);
    for (size_t i = 0; i < g_.values.size(); ++i)
      if (g_.values[i].constant) constant(static_cast<ValueId>(i));
    place_ = "stated values";
    for (size_t i = 0; i < g_.values.size(); ++i)
      if (g_.values[i].known && g_.values[i].producer < 0 && !defined_[i])
        define(static_cast<ValueId>(i), -1);
    for (size_t i = 0; i < g_.nodes.size(); ++i) node(g_.nodes[i], static_cast<int32_t>(i));
    node_ = nullptr;
    place_ = "outputs";
    for (ValueId v : g_.outputs) {
      use(v, [] { return std::string("an output of the graph"); });
      if (grouped_) row_major(v);
    }
    require(g_.output_names.size() == g_.outputs.size(), [&] {
      return std::to_string(g_.outputs.size()) + " outputs have " +
             std::to_string(g_.output_names.size()) + " names";
    });
    updates();
    place_ = "requirements";
    for (const Requirement& r : g_.requirements)
      for (const Expr& e : {r.a, r.b})
        require(e && e.type() == ScalarType{}, [&] { return "'" + r.what + "' is not of i64"; });
  }

 private:
  // `text`: what a violation is called, or a function that says so; rules hold nearly always.
  template <typename Text>
  bool require(bool condition, const Text& text) {
    if (!condition && violations_.size() < kMaxViolations) {
      std::string what = "graph '" + g_.name + "', " + place() + ": ";
      if constexpr (std::is_invocable_v<Text>)
        what += text();
      else
        what += text;
      violations_.push_back(std::move(what));
    }
    return condition;
  }
  std::string place() const {
    return node_ ? "node " + std::to_string(node_ - g_.nodes.data()) + " (" + describe(*node_) + ")"
                 : place_;
  }
  bool in_range(ValueId v) const { return v >= 0 && static_cast<size_t>(v) < g_.values.size(); }
  std::string name_of(ValueId v) const { return "'" + g_.value(v).name + "'"; }

  template <typename What>
  void use(ValueId v, const What& what) {
    if (!require(in_range(v), [&] {
          return what() + " is value " + std::to_string(v) + " of " +
                 std::to_string(g_.values.size());
        }))
      return;
    // Extents that are known as expressions need nothing that makes them.
    const Value& value = g_.value(v);
    const bool known = value.known && value.producer < 0;
    require(defined_[static_cast<size_t>(v)] || known,
            [&] { return what() + " is " + name_of(v) + ", which is not defined before"; });
  }
  bool define(ValueId v, int32_t producer) {
    if (!require(in_range(v), [&] {
          return "value " + std::to_string(v) + " of " + std::to_string(g_.values.size()) +
                 " is defined";
        }))
      return false;
    require(!defined_[static_cast<size_t>(v)],
            [&] { return "value " + name_of(v) + " is defined more than once"; });
    defined_[static_cast<size_t>(v)] = true;
    require(g_.value(v).producer == producer, [&] {
      return "value " + name_of(v) + " states the producer " +
             std::to_string(g_.value(v).producer) + ", found " + std::to_string(producer);
    });
    return true;
  }

  void updates() {
    std::set<int32_t> inputs, outputs;
    for (const Graph::Update& u : g_.updates) {
      const bool known = u.input >= 0 && u.output >= 0 &&
                         static_cast<size_t>(u.input) < g_.inputs.size() &&
                         static_cast<size_t>(u.output) < g_.outputs.size();
      if (!require(known, "an update names what is no input or output")) continue;
      const ValueId from = g_.inputs[static_cast<size_t>(u.input)],
                    to = g_.outputs[static_cast<size_t>(u.output)];
      if (!in_range(from) || !in_range(to)) continue;
      require(inputs.insert(u.input).second && outputs.insert(u.output).second, [&] {
        return name_of(from) + " and " + name_of(to) + " are not updated by one another alone";
      });
      const TensorType &a = g_.value(from).type, &b = g_.value(to).type;
      require(a.dtype == b.dtype && to_text(a) == to_text(b) && g_.value(from).layout.empty(), [&] {
        return "input " + name_of(from) + ", " + to_text(a) + ", is updated by " + name_of(to) +
               ", " + to_text(b);
      });
    }
  }

  void input(ValueId v) {
    place_ = "inputs";
    if (!define(v, -1)) return;
    for (const Expr& d : g_.value(v).type.dims)
      if (d)
        for_each_expr(d, [&](const Expr& e) {
          if (e.kind() == NodeKind::kVar) symbols_.insert(e.get());
        });
    type(g_.value(v));
    if (grouped_) row_major(v);
  }
  void constant(ValueId v) {
    place_ = "constants";
    if (!define(v, -1)) return;
    const Value& value = g_.value(v);
    type(value);
    const Constant& c = *value.constant;
    require(
        value.type.dtype == c.dtype && constant_shape(value.type) == std::optional<Shape>(c.shape),
        [&] {
          return name_of(v) + " has type " + to_text(value.type) + ", its constant " +
                 std::string(name(c.dtype)) + tilewright::to_string(c.shape);
        });
    const auto n = tilewright::element_count(c.shape);
    require(n && c.bytes == static_cast<size_t>(*n) * static_cast<size_t>(byte_size(c.dtype)) &&
                (c.data || !*n),
            [&] {
              return name_of(v) + " has a constant of " + std::to_string(c.bytes) +
                     " bytes, which do not fit its shape " + tilewright::to_string(c.shape);
            });
  }

  // What holds for the type of any value, wherever it is defined.
  void type(const Value& v) {
    const auto who = [&] { return "'" + v.name + "'"; };
    for (const Expr& d : v.type.dims) {
      if (!require(static_cast<bool>(d), [&] { return who() + " has an extent that is missing"; }))
        continue;
      require(d.type() == ScalarType{}, [&] {
        return who() + " has an extent of type " + to_text(d.type()) + ", expected i64";
      });
      require(as_int(d).value_or(0) >= 0,
              [&] { return who() + " has the negative extent " + to_text(d); });
      if (stage_ != GraphStage::kTyped) continue;
      for_each_expr(d, [&](const Expr& e) {
        if (e.kind() == NodeKind::kVar && !symbols_.count(e.get()))
          require(false, "the type of " + who() + " names the symbol '" + to_text(e) +
                             "', which no input and no earlier node defines");
      });
    }
    for (const LayoutAxis& a : v.layout)
      require(a.fits(v.type.rank()),
              [&] { return "the layout of " + who() + " does not fit its rank"; });
    const auto shape = constant_shape(v.type);
    if (v.known && shape)
      require(tilewright::element_count(*shape) == static_cast<int64_t>(v.known->size()), [&] {
        return who() + " of type " + to_text(v.type) + " has " + std::to_string(v.known->size()) +
               " known elements";
      });
  }

  void node(const Node& n, int32_t number) {
    node_ = &n;
    const size_t before = violations_.size();
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] != kNone) use(n.inputs[i], [&] { return "operand " + std::to_string(i); });
    for (const Var& s : n.defined_symbols) symbols_.insert(s.get());
    for (ValueId v : n.outputs)
      if (v != kNone && define(v, number)) type(g_.value(v));
    if (!require(n.op != nullptr, "there is no operator")) return;
    operands(n);
    for (const auto& [key, value] : n.attributes) attribute(n, key, value);
    shared_memory(n);
    for (const auto& r : n.regions)
      if (require(r != nullptr, "a region is missing"))
        GraphVerifier(*r, stage_, symbols_, violations_).run();
    if (stage_ == GraphStage::kTyped && violations_.size() == before) inferred(n);
  }
  // Requires a row-major layout, which callers and other regions assume.
  void row_major(ValueId v) {
    if (v == kNone || !in_range(v)) return;
    const Value& value = g_.value(v);
    require(fits(value) && is_row_major(value.layout, value.type), [&] {
      return name_of(v) + " is laid out as " + to_text(value.layout) + ", expected row-major";
    });
  }
  static bool fits(const Value& v) {
    return std::all_of(v.layout.begin(), v.layout.end(),
                       [&](const LayoutAxis& a) { return a.fits(v.type.rank()); });
  }
  // Checks layouts where values share memory and where the runtime reads a value itself.
  void shared_memory(const Node& n) {
    if (!n.regions.empty()) {
      for (ValueId v : n.inputs) row_major(v);
      for (ValueId v : n.outputs) row_major(v);
    }
    if (n.op != ops::checked_indices() || n.inputs.size() < 2 || n.outputs.empty()) return;
    row_major(n.inputs[1]);
    if (!in_range(n.inputs[0]) || !in_range(n.outputs[0])) return;
    const Value &from = g_.value(n.inputs[0]), &to = g_.value(n.outputs[0]);
    require(
        from.layout == to.layout || (fits(from) && fits(to) && from.type.rank() == to.type.rank() &&
                                     is_same_order(from.layout, to.layout, from.type)),
        [&] {
          return name_of(n.outputs[0]) + " is laid out as " + to_text(to.layout) + ", expected " +
                 to_text(from.layout) + " as " + name_of(n.inputs[0]) + ", in whose memory it lies";
        });
  }
  void operands(const Node& n) {
    const auto& defs = n.op->operands;
    const bool variadic = !defs.empty() && defs.back().kind == OperandDef::kVariadic;
    require(variadic || n.inputs.size() <= defs.size(), [&] {
      return "found " + std::to_string(n.inputs.size()) + " operands, expected at most " +
             std::to_string(defs.size());
    });
    for (size_t i = 0; i < defs.size(); ++i)
      if (defs[i].kind == OperandDef::kRequired)
        require(i < n.inputs.size() && n.inputs[i] != kNone, [&] {
          return "the required operand '" + std::string(defs[i].name) + "' is absent";
        });
    const std::string_view names = n.op->outputs;
    const auto most = static_cast<size_t>(std::count(names.begin(), names.end(), ',')) + 1;
    require((!names.empty() && names.back() == '*') || n.outputs.size() <= most, [&] {
      return "found " + std::to_string(n.outputs.size()) + " outputs, expected at most " +
             std::to_string(most);
    });
    // Results are computed one after the other; those behind the first may be unwanted.
    require(!n.op->compute || (!n.outputs.empty() && n.outputs[0] != kNone),
            "the first output is absent");
  }
  // The alternatives of Attribute in the order of AttributeKind.
  static_assert(std::is_same_v<
                std::variant_alternative_t<static_cast<size_t>(AttributeKind::kTensor), Attribute>,
                ConstantRef>);
  static_assert(std::is_same_v<
                std::variant_alternative_t<static_cast<size_t>(AttributeKind::kInts), Attribute>,
                std::vector<int64_t>>);
  void attribute(const Node& n, const std::string& key, const Attribute& value) {
    static constexpr const char* kKinds[] = {"an int", "a float", "a string", "ints",
                                             "floats", "strings", "a tensor", "extents"};
    const AttributeDef* def = find_attribute_def(n, key);
    const auto who = [&] { return "attribute '" + key + "' is "; };
    if (!require(def != nullptr, [&] { return who() + "not one of the operator's"; })) return;
    const bool plain_extents =
        def->kind == AttributeKind::kExtents && std::holds_alternative<std::vector<int64_t>>(value);
    require(plain_extents || value.index() == static_cast<size_t>(def->kind), [&] {
      return who() + kKinds[value.index()] + ", expected " + kKinds[static_cast<size_t>(def->kind)];
    });
    const auto* tensor = std::get_if<ConstantRef>(&value);
    require(!tensor || *tensor, [&] { return who() + "a tensor that is missing"; });
  }

  // Runs the operator's own inference on a copy of the node.
  void inferred(const Node& n) {
    if (!n.op->infer_type) return;
    Node copy = n;
    InferContext context(g_, copy);
    Status s = n.op->infer_type(context);
    if (!require(s.ok(), [&] { return s.error().to_string(); })) return;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (n.outputs[i] == kNone) continue;
      if (!require(i < context.outputs().size(),
                   [&] { return "output " + std::to_string(i) + " does not exist"; }))
        return;
      const TensorType &stated = g_.value(n.outputs[i]).type, &found = context.outputs()[i];
      bool agree = stated.dtype == found.dtype && stated.rank() == found.rank();
      for (size_t d = 0; agree && d < stated.dims.size(); ++d) {
        const auto a = as_int(stated.dims[d]), b = as_int(found.dims[d]);
        agree = !a || !b || *a == *b;
      }
      require(agree, [&] {
        return name_of(n.outputs[i]) + " has type " + to_text(stated) + ", inferred is " +
               to_text(found);
      });
    }
  }

  const Graph& g_;
  GraphStage stage_;
  Symbols symbols_;
  std::vector<std::string>& violations_;
  std::vector<bool> defined_;
  bool grouped_ = false;
  const Node* node_ = nullptr;  // that is looked at; null: what place_ says
  const char* place_ = "";
};

}  // namespace

Status verify(const Graph& graph, GraphStage stage) {
  std::vector<std::string> violations;
  GraphVerifier(graph, stage, {}, violations).run();
  if (violations.empty()) return {};
  Error e = internal_error("the graph breaks " + std::to_string(violations.size()) +
                               (violations.size() == 1 ? " rule" : " rules"),
                           "graph '" + graph.name + "'");
  e.notes = std::move(violations);
  return e;
}

}  // namespace tilewright::ir
