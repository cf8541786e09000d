// The cases of schedule rules: graphs, machines, and the kernels that they are lowered to.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "passes/lower.h"

namespace tilewright::passes {

// A graph, a machine, and what the rules make of every kernel of it.
struct RuleCase {
  // As the file has them; `schedules` is what is expected, or found when files are written anew.
  std::string name, machine_line, graph, schedules;
  // What machine_line describes; `exact`: kernels may not reorder sums.
  ir::MachineDescription machine;
  bool exact = false;
};
// Between a file of tests/passes and its cases, in the order of the file.
std::vector<RuleCase> read_rule_cases(const std::string& path);
void write_rule_cases(const std::string& path, const std::vector<RuleCase>& cases);

// A kernel before it is scheduled, and which of its parameters are constants.
struct RuleKernel {
  ir::Kernel kernel;
  std::set<std::string> constants;
};
// Those of the case's graph, after the graph passes but for the folding of constants.
std::vector<RuleKernel> kernels_of(const RuleCase& c);

}  // namespace tilewright::passes
