// Running kernels and graphs in the interpreter on random data, whatever the layouts of their
// buffers.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/nodes.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

using Elements = std::vector<double>;  // of a tensor, in logical row-major order

// All parameters after the kernel ran; before, parameter p holds random small integers (bytes: any
// of their values) that depend on p and the seed alone. scalars: values of the kernel's scalars.
Result<std::vector<Elements>> run_kernel(const ir::Kernel& kernel,
                                         const std::vector<int64_t>& scalars, unsigned seed = 1);
// The outputs of a graph of constant shapes. Nodes of one group run as one kernel, those without a
// group alone.
Result<std::vector<Elements>> run_graph(const ir::Graph& graph, unsigned seed = 1);

// Expects equal elements, up to the rounding of sums in another order.
void expect_close(const std::vector<Elements>& found, const std::vector<Elements>& expected);

// Expects that both kernels compute the same, every scalar being 1, then 2, 7, 8, 13.
void expect_same_results(const ir::Kernel& before, const ir::Kernel& after);

}  // namespace tilewright::passes
