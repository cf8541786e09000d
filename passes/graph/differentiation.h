// Reverse mode within one graph, a model's or a region's: what differentiate is made of.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

class Differentiation {
 public:
  // By the values `of`, over the nodes that the graph has now.
  Differentiation(ir::Graph& graph, const std::vector<ir::ValueId>& of);

  // So much does the loss change with the value; what is said several times adds up.
  Status seed(ir::ValueId v, ir::ValueId gradient);
  // From the last node to the first. Errors (kUnsupported): one that lists every node on the way that
  // cannot be differentiated.
  Status run();

  // The derivative of the loss by a value; kNone: it does not depend on it.
  ir::ValueId found(ir::ValueId v) const { return sums_[static_cast<size_t>(v)]; }
  // The same, with zeros for kNone.
  Result<ir::ValueId> gradient(ir::ValueId v);

 private:
  Status pass_on(size_t node);

  ir::Graph& graph_;
  const size_t forward_;            // number of nodes
  const std::vector<bool> active_;  // by value: depends on what is differentiated by
  std::vector<ir::ValueId> sums_;   // by value of the forward graph
  std::vector<Error> obstacles_;
};

// By value: is it a float, or a quantised one, that depends on one of these?
std::vector<bool> depends_on(const ir::Graph& graph, const std::vector<ir::ValueId>& of);
// A tensor of one number, of that type.
Result<ir::ValueId> filled(ir::Graph& graph, const ir::TensorType& type, double value);

// The value with those extents, which are its own by another name (reshape, where they are not the same).
Result<ir::ValueId> with_extents(ir::Graph& graph, ir::ValueId v, const ir::TensorType& like);

// As ir::gradient_of, of nodes with regions: by operand, what results pass on; kNone: nothing. A loop
// then also gives what it carried into each iteration.
Result<std::vector<ir::ValueId>> gradient_of_if(ir::Graph& graph, size_t node,
                                                const std::vector<ir::ValueId>& of_outputs,
                                                const std::vector<bool>& wanted);
Result<std::vector<ir::ValueId>> gradient_of_loop(ir::Graph& graph, size_t node,
                                                  const std::vector<ir::ValueId>& of_outputs,
                                                  const std::vector<bool>& wanted);

}  // namespace tilewright::passes
