#include "autotune/graph_form.h"

#include "autotune/database/task.h"
#include "autotune/search/priced_form.h"
#include "ir/module_text/printer_graph.h"
#include "passes/decisions/decisions.h"
#include "passes/plan_program.h"
#include "runtime/core/fnv.h"

namespace tilewright::autotune {

using passes::Answers;
using passes::LoweredKernel;

// Kernels are known by their tasks before anything is scheduled, which takes milliseconds: forms can be
// told apart, and their differences be found, without compiling them.
Result<GraphForm> graph_form(const ir::Graph& graph, const passes::LowerOptions& options,
                             Answers answers, const FindKnown& known) {
  passes::Decisions decisions(answers, options.numerics != Numerics::kExact);
  passes::LowerOptions lower = options;
  lower.decisions = &decisions;
  GraphForm form;
  TW_ASSIGN(form.graph, passes::lower_graph(graph, lower));
  TW_RETURN_IF_ERROR(decisions.check_answers("graph '" + graph.name + "'"));
  form.answers = std::move(answers);
  form.decisions = decisions.made();
  std::vector<std::string> tasks;  // of kernels, by number
  TW_ASSIGN(const ir::Program program,
            passes::plan_program(
                form.graph, options,
                [&](ir::Kernel k, const std::set<std::string>& constants) -> Result<LoweredKernel> {
                  tasks.push_back(task_key(k, constants));
                  const Known before = known ? known(tasks.back(), "") : Known{};
                  if (before.recorded && !before.answers.empty())
                    if (auto s = schedule_of(k, constants, options, before.answers); s.ok())
                      form.schedules[tasks.back()] = std::move(*s);
                  return LoweredKernel{std::move(k), ""};
                }));
  for (const auto& block : program.blocks)
    for (const ir::ProgramInstruction& i : block)
      if (const auto* call = std::get_if<ir::CallInstruction>(&i); call && call->profile >= 0) {
        std::string nodes;
        for (const std::string& n : program.profile[static_cast<size_t>(call->profile)].nodes)
          nodes += (nodes.empty() ? "" : ", ") + n;
        form.tasks[nodes].insert(tasks[static_cast<size_t>(call->kernel)]);
      }
  return form;
}

Answers unusual_answers(const GraphForm& form) {
  Answers answers = form.answers;
  for (const passes::Decision& d : form.decisions)
    if (d.answer == d.usual) answers.erase(d.name);
  return answers;
}

std::set<std::string> differing_nodes(const GraphForm& a, const GraphForm& b) {
  std::set<std::string> nodes;
  for (const auto& [n, tasks] : a.tasks) {
    const auto it = b.tasks.find(n);
    if (it == b.tasks.end() || it->second != tasks) nodes.insert(n);
  }
  return nodes;
}

std::string graph_key(const ir::Graph& graph) {
  ir::Graph computes = graph;
  computes.updates.clear();
  return "graph-" + hex(fnv1a(ir::to_text(computes)));
}

}  // namespace tilewright::autotune
