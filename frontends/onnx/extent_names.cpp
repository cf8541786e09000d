#include "frontends/onnx/extent_names.h"

#include <algorithm>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright {

std::string extent_name(const OnnxDimension& dimension) {
  const auto* name = std::get_if<std::string>(&dimension);
  if (!name || name->empty() || *name == "None") return "";
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  auto fits = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  return is_letter((*name)[0]) && std::all_of(name->begin(), name->end(), fits) ? *name : "";
}

namespace onnx {

using ir::Expr;

ExtentNames::ExtentNames(const OnnxModel& model, const ImportOptions& options) : options_(options) {
  std::map<std::string, std::set<int64_t>> given;
  for (const OnnxValueInfo& input : model.graph.inputs) {
    if (!input.type.shape) continue;
    if (model.graph.initializers.count(input.name) && !options.overrides.count(input.name))
      continue;
    auto shape = options.input_shapes.find(input.name);
    const auto& dims = *input.type.shape;
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto* written = std::get_if<std::string>(&dims[d]);
      if (!written || written->empty()) continue;
      const std::string name = extent_name(dims[d]);
      const bool bound = shape != options.input_shapes.end() && d < shape->second.size();
      if (bound && !name.empty()) given[name].insert(shape->second[d]);
      if (!bound)
        (name.empty() ? nameless_[*written] : occurrences_[name]).push_back({input.name, d});
    }
  }
  for (const auto& [name, extents] : given) {
    if (extents.size() == 1)
      known_[name] = *extents.begin();
    else
      apart_.insert(name);
  }
}

Expr ExtentNames::variable(const std::string& name) {
  auto [it, fresh] = variables_.emplace(name, Expr());
  if (fresh) it->second = ir::Var(name);
  return resolved(it->second);
}
Expr ExtentNames::resolved(const Expr& e) const {
  return values_.empty() ? e : simplify(ir::substitute(e, values_));
}

Expr ExtentNames::extent(const std::string& input, size_t d, const OnnxDimension& dimension) {
  if (const auto* fixed = std::get_if<int64_t>(&dimension)) return *fixed;
  const std::string name = extent_name(dimension);
  if (auto bound = options_.symbols.find(name); bound != options_.symbols.end())
    return bound->second;
  const bool own = name.empty() || apart_.count(name) || options_.names_apart;
  if (own) return variable(own_name(input, d));
  if (auto bound = known_.find(name); bound != known_.end()) return bound->second;
  return variable(name);
}

bool ExtentNames::are_of_inputs(const Expr& extent) const {
  const std::vector<ir::Var> vars = ir::free_vars_in_order(extent);
  return std::all_of(vars.begin(), vars.end(), [&](const ir::Var& v) {
    const auto known = variables_.find(v.name());
    return known != variables_.end() && known->second.get() == v.get();
  });
}

// A symbol that is not a part of its value gives way to it.
bool ExtentNames::solve(const Expr& symbol, const Expr& value) {
  const auto* name = symbol.as<ir::VarNode>();
  auto known = name ? variables_.find(name->name) : variables_.end();
  if (known == variables_.end() || known->second.get() != symbol.get()) return false;
  for (const ir::Var& v : ir::free_vars_in_order(value)) {
    auto input = variables_.find(v.name());
    if (v.get() == symbol.get() || input == variables_.end() || input->second.get() != v.get())
      return false;
  }
  const ir::VarMap one{{symbol.get(), value}};
  for (auto& [node, old] : values_) old = simplify(ir::substitute(old, one));
  values_[symbol.get()] = value;
  return true;
}

bool ExtentNames::learn(const ir::Graph& graph) {
  Pairs pairs;
  for (const ir::Node& node : graph.nodes)
    for (auto& pair : ir::equal_extents(graph, node)) pairs.push_back(std::move(pair));
  for (const ir::Requirement& r : graph.requirements)
    if (r.relation == ir::Relation::kEqual) pairs.emplace_back(r.a, r.b);
  bool news = false;
  for (const auto& pair : pairs) {
    const Expr a = resolved(pair.first), b = resolved(pair.second);
    if (can_prove_equal(a, b)) continue;
    if (as_int(a) && as_int(b)) {
      if (take_apart(involved(pair, pairs))) return true;
      continue;  // the next import says which operator it is
    }
    if (solve(b, a)) {
      note_solved(b, a);
    } else if (solve(a, b)) {
      note_solved(a, b);
    } else {
      continue;
    }
    news = true;
  }
  return news;
}

void ExtentNames::note_solved(const Expr& symbol, const Expr& value) {
  const std::string& name = symbol.as<ir::VarNode>()->name;
  if (occurrences_.count(name)) solved_[name] = ir::to_text(value);
}

// Names in a pair, in pairs that share one with it, and so on.
std::set<std::string> ExtentNames::involved(const Pairs::value_type& pair, const Pairs& pairs) {
  std::set<std::string> names;
  auto names_in = [](const Pairs::value_type& p) {
    std::set<std::string> in;
    for (const Expr& e : {p.first, p.second})
      for (const ir::Var& v : ir::free_vars_in_order(e)) in.insert(v.name());
    return in;
  };
  auto add = [&](const Pairs::value_type& p) { names.merge(names_in(p)); };
  auto touches = [&](const Pairs::value_type& p) {
    const auto in = names_in(p);
    return std::any_of(in.begin(), in.end(), [&](const std::string& n) { return names.count(n); });
  };
  add(pair);
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const auto& p : pairs)
      if (touches(p)) add(p);
  }
  return names;
}

bool ExtentNames::take_apart(const std::set<std::string>& names) {
  const size_t before = apart_.size();
  for (const auto& [name, where] : occurrences_)
    if (names.count(name) && where.size() > 1 && !options_.symbols.count(name)) apart_.insert(name);
  if (apart_.size() == before) return false;
  values_.clear();  // some may rest on these names
  solved_.clear();
  return true;
}
bool ExtentNames::take_apart() {
  std::set<std::string> all;
  for (const auto& [name, where] : occurrences_) all.insert(name);
  return take_apart(all);
}

std::vector<std::string> ExtentNames::notes() const {
  std::vector<std::string> notes;
  auto list = [](const std::vector<Occurrence>& where) {
    std::string text;
    for (const Occurrence& o : where)
      text += (text.empty() ? "" : ", ") + ("extent " + std::to_string(o.d) + " of input ") +
              quote(o.input);
    return text;
  };
  for (const auto& [name, where] : nameless_)
    notes.push_back(quote(name) + " is taken for no name: a symbol of its own is " + list(where));
  for (const auto& [name, value] : solved_)
    notes.push_back("symbol " + quote(name) + " is taken for " + value +
                    ", which operators need it to be");
  for (const std::string& name : apart_) {
    auto where = occurrences_.find(name);
    if (where == occurrences_.end())
      notes.push_back("symbol " + quote(name) + " stands for extents that differ");
    else
      notes.push_back("symbol " + quote(name) +
                      " stands for extents that differ: a symbol of its own is " +
                      list(where->second));
  }
  return notes;
}

}  // namespace onnx
}  // namespace tilewright
