// What convolutions and pooling cost with channels innermost, and row-major.
#pragma once

#include "ir/graph/graph.h"
#include "ir/machine.h"

namespace tilewright::passes {

// In vector instructions.
struct LayoutCost {
  double channels_innermost = 0, row_major = 0;
  LayoutCost& operator+=(const LayoutCost& other) {
    channels_innermost += other.channels_innermost;
    row_major += other.row_major;
    return *this;
  }
  bool prefers_rows() const;
};

// Of one node that wants channels innermost, of its results or its operands (OpDef::channels).
LayoutCost layout_cost(const ir::Graph& graph, const ir::Node& node,
                       const ir::MachineDescription& machine);
// Of copying a value between both layouts; nothing for the few channels that are read where they lie.
double copy_cost(const ir::TensorType& type);

constexpr int64_t kFewChannels = 4;  // are read where they lie

}  // namespace tilewright::passes
