// How the operands of a product are to lie, where that differs from how they are given.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/machine.h"

namespace tilewright::passes {

// The layouts that operand i may be read in: first as it lies (an empty one), then those of copies.
// Constants are packed by the schedule of their kernel.
// - by_columns: each element is used for several rows, but what moves with the innermost axis of
//   the result lies apart: vectors of results are to read it side by side.
// - by_panels: the right operand of a product with a matrix, or the weights of a convolution, in panels of
//   columns, as wide as its tiles: [n / width, k, width].
// - by_groups: the right operand of a product of u8 and i8: side by side lie the terms that one dot
//   product takes, then those of the next column, for a vector of sums:
//   [..., n / lanes, k / 4, lanes, 4].
struct PackedLayouts {
  // Alternatives by name and layout, in step; the first is to leave the operand alone.
  std::vector<std::string> names{"as_it_lies"};
  std::vector<ir::Layout> layouts{{}};
  size_t usual = 0;  // the one that pays
};
// shared: other products want the same copy.
PackedLayouts layouts_to_pack(const ir::Graph& graph, const ir::Node& node, size_t i,
                              const ir::MachineDescription& machine, bool shared);

// Are there rows enough to pack b for dot products? a: [..., m, k], b: [..., k, n], or with trans_b
// [..., n, k], of bytes; k is rounded up to whole groups of terms.
bool pays_for_dots(const ir::TensorType& a, const ir::TensorType& b, bool trans_b);

// Does the layout hold blocks of columns by groups of terms?
bool is_packed_in_groups(const ir::Layout& layout);

}  // namespace tilewright::passes
