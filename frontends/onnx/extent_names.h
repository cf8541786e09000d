// What the names of input extents stand for. Exporters name unknown extents `?` or `None`, or two
// that differ alike; so a name joins extents only as long as nothing speaks against it, and extents
// that operators need to be equal are one symbol whatever their names.
#pragma once

#include <set>

#include "frontends/onnx/import_graph.h"
#include "ir/graph/infer.h"
#include "ir/loops/rewrite.h"

namespace tilewright::onnx {

// Equality of extents by unification: names are assumed to join extents, the operators' demands are
// solved for variables, and a contradiction takes the names that led to it apart. An import is
// repeated until nothing new is learnt; the rounds end, since each solves for a variable or takes a
// name apart for good.
class ExtentNames {
 public:
  // Collects the names that the model's inputs use. Keeps a reference to the options.
  ExtentNames(const OnnxModel& model, const ImportOptions& options);

  // Extent d of an input.
  ir::Expr extent(const std::string& input, size_t d, const OnnxDimension& dimension);

  // Does the run know the extent before it begins?
  bool are_of_inputs(const ir::Expr& extent) const;

  // Learns from the extents that operators of an imported model take for equal; true: it must be
  // imported again.
  bool learn(const ir::Graph& graph);
  // No name joins extents any more; false: none did.
  bool take_apart();
  // For the user: names that stand for nothing, for extents that differ, or for what operators make them.
  std::vector<std::string> notes() const;

 private:
  using Pairs = std::vector<std::pair<ir::Expr, ir::Expr>>;
  struct Occurrence {
    std::string input;
    size_t d;
  };
  static std::string own_name(const std::string& input, size_t d) {
    return input + "." + std::to_string(d);
  }
  ir::Expr variable(const std::string& name);
  ir::Expr resolved(const ir::Expr& e) const;
  bool solve(const ir::Expr& symbol, const ir::Expr& value);
  void note_solved(const ir::Expr& symbol, const ir::Expr& value);
  bool take_apart(const std::set<std::string>& names);
  static std::set<std::string> involved(const Pairs::value_type& pair, const Pairs& pairs);

  const ImportOptions& options_;
  std::map<std::string, std::vector<Occurrence>> occurrences_;  // of names that say something
  std::map<std::string, std::vector<Occurrence>> nameless_;     // of the others
  std::map<std::string, int64_t> known_;                        // names that given shapes bind
  std::set<std::string> apart_;  // each of their occurrences is a symbol of its own
  std::map<std::string, ir::Expr> variables_;
  ir::VarMap values_;  // of variables that are no symbols any more
  std::map<std::string, std::string>
      solved_;  // of those that are names of the model: what they are
};

}  // namespace tilewright::onnx
