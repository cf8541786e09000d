// A form of a whole graph: what follows from answers to the decisions of graph passes, and where it is
// not the same as another form.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "autotune/model_compiler.h"
#include "autotune/tuned_kernel.h"
#include "ir/graph/graph.h"
#include "passes/decisions/decision.h"
#include "passes/lower.h"

namespace tilewright::autotune {

struct GraphForm {
  // Answers other than the usual ones, all decisions that came up, and the graph that follows.
  passes::Answers answers;
  std::vector<passes::Decision> decisions;
  ir::Graph graph;
  // The tasks of its kernels, by the nodes of the model that they are of (Profiler::Row).
  std::map<std::string, std::multiset<std::string>> tasks;
  // Of kernels that were tuned here before: answers may have been taken for the sake of these.
  Schedules schedules;
};

// `graph` is typed. `known`: of kernels; null: nothing is. Errors: those of the passes, and kInvalid for
// answers that nobody asks for.
Result<GraphForm> graph_form(const ir::Graph& graph, const passes::LowerOptions& options,
                             passes::Answers answers, const FindKnown& known = nullptr);

// Its answers without those that are the usual ones where all others are given.
passes::Answers unusual_answers(const GraphForm& form);

// The nodes of `a` whose kernels are not those of the same nodes in `b`.
std::set<std::string> differing_nodes(const GraphForm& a, const GraphForm& b);

// What a record of a graph is kept under: "graph-0123456789abcdef", by its nodes, types and names; what it
// updates in place is computed by the same nodes.
std::string graph_key(const ir::Graph& graph);

}  // namespace tilewright::autotune
