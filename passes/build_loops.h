// From a fused group to one kernel with blocks, and its default inlining.
#pragma once

#include <optional>
#include <set>

#include "ir/graph/graph.h"
#include "ir/loops/nodes.h"
#include "passes/analysis/aliases.h"

namespace tilewright::passes {

struct GroupKernel {
  // Blocks at Stage::kBlocks, not yet scheduled. Names follow from the operators: blocks and
  // temporaries have theirs, parameters are in0, in1, ... and out0, out1, ...
  ir::Kernel kernel;
  std::vector<ir::ValueId> params;  // value of each buffer parameter
  size_t num_inputs = 0;            // the first params are read, the others written
  // What must hold of extents that only the run knows, so that the nodes mean what they were compiled to and every
  // access of a parameter lies inside of it. One that is false of constants is an error of the model.
  std::vector<ir::Requirement> requirements;
  // Accesses that are guarded instead.
  size_t guards = 0;
  std::vector<std::string> sources;  // nodes of the source model
};

// nodes: positions in graph.nodes, in order. Results used outside the group are outputs. The
// parameter of a value that lies in another is the whole of the other; what lies where it belongs
// already is not copied, and the kernel of a node that would do nothing else is empty. Constants of
// one element become numbers in the kernel but for those in `apart`, which are parameters.
GroupKernel build_group_kernel(const ir::Graph& graph, const std::vector<size_t>& nodes,
                               const std::vector<int>& uses, const Aliases& aliases = {},
                               const std::set<ir::ValueId>& apart = {});

// The kernel that computes the symbols a node defines: one int64 output with one element per
// symbol.
GroupKernel build_symbol_kernel(const ir::Graph& graph, size_t node, const Aliases& aliases = {});

}  // namespace tilewright::passes
