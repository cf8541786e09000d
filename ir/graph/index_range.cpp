#include "ir/graph/index_range.h"

namespace tilewright::ir {

bool is_index_within(int64_t index, int dim, int64_t extent) {
  return index >= (dim == kNoIndices ? 0 : -extent) && index < extent;
}

std::string index_owner(const Node& node) {
  const auto what = node.attributes.find("what");
  return what == node.attributes.end() ? describe(node) : std::get<std::string>(what->second);
}
std::string index_message(const Node& node, int64_t index, int dim, int64_t extent) {
  if (dim == kNoIndices)
    return index_owner(node) + " is " + std::to_string(index) + ", expected 0 to " +
           std::to_string(extent - 1);
  return describe(node) + ": index " + std::to_string(index) + " is out of range for dimension " +
         std::to_string(dim) + " of " + std::to_string(extent) + " elements";
}

// An error when compiling instead of when running.
Status check_known_indices(const NodeView& c) {
  const OpDef& op = *c.node().op;
  if (!op.indexed_dims || !c.has(op.index_operand)) return {};
  const auto known = c.known_ints(op.index_operand);
  const std::vector<IndexedDim> dims = op.indexed_dims(c);
  if (!known || dims.empty()) return {};
  for (size_t i = 0; i < known->size(); ++i) {
    const IndexedDim& d = dims[i % dims.size()];
    if (const auto n = as_int(d.extent); n && !is_index_within((*known)[i], d.dim, *n))
      return invalid(index_message(c.node(), (*known)[i], d.dim, *n));
  }
  return {};
}

}  // namespace tilewright::ir
