// Facts about control-flow nodes that type inference and planning share.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::ir {

// if: the (output, dimension) pairs on which the branches do not provably agree; number k is the
// node's defined symbol k.
std::vector<std::pair<int, int>> disagreeing_dims(const Node& node);

// loop: operands are trip_count, condition, `carried` initial values, then what the body captures.
// The body takes the iteration, the carried values and what it captures; it gives the condition to
// go on (when "has_condition"), the carried values and the elements of the scans.
struct LoopShape {
  // Numbers of values; the others are places in the body's list of results or the node's operands.
  int carried = 0, scans = 0;
  bool has_condition = false;
  int first_initial() const { return 2; }
  int first_carried_result() const { return has_condition ? 1 : 0; }
  int first_scan_result() const { return first_carried_result() + carried; }
};
// Requires a loop node that passed the verifier.
LoopShape loop_shape(const Node& node);

}  // namespace tilewright::ir
