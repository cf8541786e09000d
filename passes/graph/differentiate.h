// Reverse-mode differentiation of a typed graph, before any graph pass.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

// Adds nodes that compute the derivatives of `loss`, a scalar or a tensor of one element, by each of
// `of`, in their order and of their types; zeros where the loss does not depend on one. Errors
// (kUnsupported): one that lists every node on the way whose operator has no gradient. Branches and loops
// are differentiated, too; a loop on the way gets more results, which say what it carried into its iterations.
Result<std::vector<ir::ValueId>> differentiate(ir::Graph& graph, ir::ValueId loss,
                                               const std::vector<ir::ValueId>& of);

}  // namespace tilewright::passes
