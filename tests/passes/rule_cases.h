// The cases of schedule rules: graphs, machines, and the kernels that they are lowered to.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "passes/lower.h"

namespace tilewright::passes {

struct RuleCase {
  std::string name, machine_line, graph, schedules;
  ir::MachineDescription machine;
  bool exact = false;
};
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
