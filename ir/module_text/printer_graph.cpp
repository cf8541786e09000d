#include "ir/module_text/printer_graph.h"

#include <algorithm>

#include "ir/graph/op.h"
#include "ir/module_text/inline_constant.h"
#include "ir/text/lexer.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {

std::string type_text(const TensorType& type, NameTable& symbols) {
  std::string s = std::string(name(type.dtype)) + "[";
  for (size_t i = 0; i < type.dims.size(); ++i)
    s += (i ? ", " : "") + to_text(type.dims[i], symbols);
  return s + "]";
}
std::string constant_type(const Constant& c) {
  return std::string(name(c.dtype)) + tilewright::to_string(c.shape);
}

template <typename T, typename F>
std::string joined(const std::vector<T>& items, F&& text) {
  std::string s;
  for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + text(items[i]);
  return s;
}

// Prints one graph and its regions; symbols and constants are shared among them, names of values
// are not.
class GraphPrinter {
 public:
  GraphPrinter(const Graph& g, NameTable& symbols, std::vector<ConstantRef>& constants, int indent)
      : g_(g), symbols_(symbols), constants_(constants), indent_(indent) {}

  std::string run() {
    out_ = "graph " + name_to_text(g_.name) + " {\n";
    ++indent_;
    for (ValueId v : g_.inputs) line("input " + typed(v));
    for (const Requirement& r : g_.requirements)
      line(std::string("require ") + std::string(name(r.relation)) + "[" + to_text(r.a, symbols_) +
           ", " + to_text(r.b, symbols_) + "] " + quoted(r.what, '"'));
    for (const Value& v : g_.values)
      if (v.constant)
        line("const " + typed(id_of(v)) + " = " + elements(v.constant));
      else if (is_stated(v))
        line("stated " + typed(id_of(v)));
    for (const Node& n : g_.nodes) line(node(n));
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      line("output " + value(g_.outputs[i]) +
           (i < g_.output_names.size() ? " as " + quoted(g_.output_names[i], '"') : "") +
           updated_by(i));
    --indent_;
    return out_ + std::string(2 * static_cast<size_t>(indent_), ' ') + "}";
  }

 private:
  void line(const std::string& text) {
    out_ += std::string(2 * static_cast<size_t>(indent_), ' ') + text + "\n";
  }
  std::string updated_by(size_t output) {
    for (const Graph::Update& u : g_.updates)
      if (static_cast<size_t>(u.output) == output &&
          static_cast<size_t>(u.input) < g_.inputs.size())
        return " updates " + value(g_.inputs[static_cast<size_t>(u.input)]);
    return "";
  }
  // Made by no node: its known elements are all there is of it (the shape operand of a reshape to
  // symbolic extents).
  bool is_stated(const Value& v) const {
    if (v.producer >= 0 || !v.known) return false;
    const ValueId id = id_of(v);
    if (std::find(g_.inputs.begin(), g_.inputs.end(), id) != g_.inputs.end()) return false;
    return std::any_of(g_.nodes.begin(), g_.nodes.end(), [&](const Node& n) {
      return std::find(n.inputs.begin(), n.inputs.end(), id) != n.inputs.end();
    });
  }
  ValueId id_of(const Value& v) const { return static_cast<ValueId>(&v - g_.values.data()); }
  bool in_range(ValueId v) const { return v >= 0 && static_cast<size_t>(v) < g_.values.size(); }

  std::string value(ValueId id) {
    if (id == kNone) return "_";
    if (!in_range(id)) return "<value " + std::to_string(id) + ">";
    const Value& v = g_.value(id);
    return names_.unique(&v, v.name.empty() || v.name == "_" ? "v" : v.name);
  }
  std::string typed(ValueId id) {
    std::string s = value(id);
    if (!in_range(id)) return s;
    const Value& v = g_.value(id);
    s += ": " + type_text(v.type, symbols_);
    if (!v.layout.empty()) s += " " + to_text(v.layout);
    if (v.known)
      s += " known [" + joined(*v.known, [&](const Expr& e) { return to_text(e, symbols_); }) + "]";
    return s;
  }
  std::string elements(const ConstantRef& c) {
    if (auto text = inline_text(*c)) return *text;
    const auto it = std::find(constants_.begin(), constants_.end(), c);
    const auto n = it - constants_.begin();
    if (it == constants_.end()) constants_.push_back(c);
    return "#" + std::to_string(n);
  }

  // One overload per alternative of Attribute.
  std::string attribute(int64_t v) { return std::to_string(v); }
  std::string attribute(double v) { return float_to_text(v, DType::kFloat64); }
  std::string attribute(const std::string& v) { return quoted(v, '"'); }
  std::string attribute(const std::vector<int64_t>& v) { return list(v, "ints"); }
  std::string attribute(const std::vector<double>& v) { return list(v, "floats"); }
  std::string attribute(const std::vector<std::string>& v) { return list(v, "strings"); }
  std::string attribute(const Extents& e) {
    return "extents[" + joined(e.dims, [&](const Expr& d) { return to_text(d, symbols_); }) + "]";
  }
  std::string attribute(const ConstantRef& c) {
    return c ? "const " + constant_type(*c) + " = " + elements(c) : "<missing>";
  }
  template <typename T>
  std::string list(const std::vector<T>& v, const char* empty) {
    return (v.empty() ? empty : "") + ("[" + joined(v, [&](const T& x) { return attribute(x); })) +
           "]";
  }

  std::string node(const Node& n) {
    std::string s = joined(n.outputs, [&](ValueId v) { return typed(v); });
    s += (s.empty() ? "= " : " = ") + (n.op ? std::string(n.op->name) : "<missing>") + "(";
    s += joined(n.inputs, [&](ValueId v) { return value(v); }) + ")";
    if (!n.attributes.empty()) {
      s += " {";
      for (const auto& [key, v] : n.attributes)
        s += (s.back() == '{' ? "" : ", ") + (is_word(key) ? key : quoted(key, '\'')) + " = " +
             std::visit([&](const auto& x) { return attribute(x); }, v);
      s += "}";
    }
    if (!n.regions.empty()) {
      const std::string inner(2 * static_cast<size_t>(indent_ + 1), ' ');
      s += " with [\n";
      for (const auto& r : n.regions)
        s += inner + (r ? GraphPrinter(*r, symbols_, constants_, indent_ + 1).run() : "<missing>") +
             "\n";
      s += inner.substr(2) + "]";
    }
    if (!n.defined_symbols.empty())
      s += " defines(" + joined(n.defined_symbols, [&](const Var& v) { return symbols_.of(v); }) +
           ")";
    if (!n.sources.empty())
      s += " from " + joined(n.sources, [](const std::string& x) { return quoted(x, '"'); });
    if (n.group >= 0) s += " group " + std::to_string(n.group);
    return s;
  }

  const Graph& g_;
  NameTable names_;
  NameTable& symbols_;
  std::vector<ConstantRef>& constants_;
  std::string out_;
  int indent_;
};

}  // namespace

std::string to_text(const Graph& graph, std::vector<ConstantRef>* constants) {
  NameTable symbols;
  std::vector<ConstantRef> own;
  return GraphPrinter(graph, symbols, constants ? *constants : own, 0).run() + "\n";
}
std::string to_text(const TensorType& type) {
  NameTable symbols;
  return type_text(type, symbols);
}

}  // namespace tilewright::ir
