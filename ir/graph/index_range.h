// Indices that point into a dimension, from its end when they are negative (as NumPy's).
#pragma once

#include "ir/graph/op.h"

namespace tilewright::ir {

// -extent <= index < extent; 0 <= index < extent for dim kNoIndices.
bool is_index_within(int64_t index, int dim, int64_t extent);
// "gather 'rows': index 7 is out of range for dimension 0 of 5 elements"; of `within`, "node 'n' (GRU): a sequence
// length is 9, expected 0 to 3".
std::string index_message(const Node& node, int64_t index, int dim, int64_t extent);
// Whom such a message names first: the node, or what attribute `what` of `within` says.
std::string index_owner(const Node& node);
// Judges the indices of a node (OpDef::indexed_dims) that are known, where what they point into is
// known too.
Status check_known_indices(const NodeView& node);

}  // namespace tilewright::ir
