// From a fused group to one kernel with blocks, and its default inlining.
#pragma once

#include <optional>
#include <set>

#include "ir/graph/graph.h"
#include "ir/loops/nodes.h"
#include "passes/analysis/aliases.h"

namespace tilewright::passes {

struct GroupKernel {
  ir::Kernel kernel;
  std::vector<ir::ValueId> params;   // value of each buffer parameter
  size_t num_inputs = 0;             // the first params are read, the others written
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

// The layout that values have without one; equal layouts of one shape compare equal (extents of 1
// are ignored).
bool is_row_major(const ir::Layout& layout, const ir::TensorType& type);
bool is_same_order(const ir::Layout& a, const ir::Layout& b, const ir::TensorType& type);
// Dimensions of a tensor and of its reshape that hold the same elements: ranges of both. Empty when
// that cannot be told.
struct DimRange {
  size_t from_begin, from_end, to_begin, to_end;
};
std::vector<DimRange> matching_dims(const std::vector<ir::Expr>& from,
                                    const std::vector<ir::Expr>& to);
// The layout of a reshape of x in the memory of x; nothing when there is none.
std::optional<ir::Layout> reshaped_layout(const ir::Layout& x, const ir::TensorType& from,
                                          const ir::TensorType& to);
// The layout of transpose(x, perm) in the memory of x, whose own layout is a permutation.
ir::Layout transposed_layout(const ir::Layout& x, const std::vector<int64_t>& perm);

}  // namespace tilewright::passes
