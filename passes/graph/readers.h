// Who reads the values of a graph, and which of these lie in memory whatever is fused.
#pragma once

#include <map>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::passes {

// Elements of a type whose extents are all known; 0 of others.
int64_t known_elements(const ir::TensorType& type);
// More than is still in a second cache when it is read again.
bool is_large(const ir::TensorType& type);

// Of nodes in the order of a graph, which must stay where they are.
class Readers {
 public:
  Readers(const std::vector<ir::Node>& nodes, const ir::Graph& graph);
  // Each once, in order.
  const std::vector<const ir::Node*>& of(ir::ValueId v) const {
    return readers_[static_cast<size_t>(v)];
  }
  bool is_output(ir::ValueId v) const { return is_output_[static_cast<size_t>(v)]; }
  // Is v an operand or result of the graph, or read by another node than `n` that no pointwise work
  // can be joined with as it is computed? Reductions of it begin when all of it is there, and so does what
  // waits for other kernels that it goes through.
  bool lies_in_memory(ir::ValueId v, const ir::Node& n) const;

 private:
  // Does a reader of v, not n, read as well what other kernels make of v? So do gradients.
  bool comes_back(ir::ValueId v, const ir::Node& n) const;
  std::vector<const ir::Node*> find_coming_back(ir::ValueId v) const;

  std::vector<std::vector<const ir::Node*>> readers_;
  std::vector<bool> is_output_, is_input_;
  mutable std::map<ir::ValueId, std::vector<const ir::Node*>> coming_back_;  // as far as asked for
};

}  // namespace tilewright::passes
