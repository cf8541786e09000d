// Imports a model repeatedly: each attempt starts with the equal extents and the ranks that the previous
// ones found.
#include <algorithm>
#include <optional>
#include <set>

#include "frontends/onnx/graph_import.h"

namespace tilewright {

// Imports the model; what reads a value of two possible ranks may want the smaller one, so choices are
// turned to it one by one as long as the import then fails elsewhere. `smaller`: those that were turned.
static Result<ir::Graph> import_with_ranks(const OnnxModel& model, const ImportOptions& options,
                                           onnx::ExtentNames& extents, std::set<int>& smaller) {
  constexpr int kMostChoices = 16;  // each may cost as many imports as there are choices
  onnx::GraphImport import(model, options, extents, smaller);
  Result<ir::Graph> best = import.run();
  if (best.ok()) return best;
  const Error first = best.error();
  const int choices = std::min(import.rank_choices(), kMostChoices);
  std::set<int> turned = smaller;
  for (bool better = true; !best.ok() && better;) {
    better = false;
    for (int choice = 0; choice < choices && !better; ++choice) {
      if (turned.count(choice)) continue;
      std::set<int> tried = turned;
      tried.insert(choice);
      Result<ir::Graph> other = onnx::GraphImport(model, options, extents, tried).run();
      better = other.ok() || other.error().location != best.error().location;
      if (!better) continue;
      turned = std::move(tried);
      best = std::move(other);
    }
  }
  if (!best.ok()) return first;
  smaller = std::move(turned);
  return best;
}

// What an import finds out about extents goes into the next one, until nothing is new.
Result<ir::Graph> import_graph(const OnnxModel& model, const ImportOptions& options) {
  onnx::ExtentNames extents(model, options);
  std::optional<Error> first;
  std::set<int> smaller;
  for (;;) {
    Result<ir::Graph> graph = import_with_ranks(model, options, extents, smaller);
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
