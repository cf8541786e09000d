// Passes over the graph. Each takes a graph and gives a new one. Those that choose between graphs
// write down what they decided, and follow answers; without `decisions` they do what is usual.
#pragma once

#include <functional>

#include "ir/graph/graph.h"
#include "ir/machine.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

class Decisions;

// Values whose elements are all known constants, and chains of nodes over constants, become
// constants; but not more than `free_bytes` and four times the graph's own: a node beyond that
// stays. `run` computes a graph without inputs (the driver compiles it for the host).
using RunConstants = std::function<Result<std::vector<ir::ConstantRef>>(const ir::Graph&)>;
// keep_quantized: dequantised constants stay as they are stored.
inline constexpr int64_t kFreeFoldBytes = int64_t{256} << 20;
Result<ir::Graph> fold_constants(ir::Graph graph, const RunConstants& run,
                                 int64_t free_bytes = kFreeFoldBytes, bool keep_quantized = false);

// The graph states what the types of its nodes take for granted of extents that only the run knows.
// (passes/plan_requirements.cpp)
ir::Graph collect_requirements(ir::Graph graph);

// Removes nodes whose results nobody uses, and copies: identity, a reshape to the same shape.
ir::Graph eliminate_dead_nodes(ir::Graph graph);
// One node for those of equal operator, operands and attributes.
ir::Graph eliminate_common_nodes(ir::Graph graph);
// Algebra: per-channel factors go into the weights of convolutions and matrix products; double
// transposes and reshapes.
Result<ir::Graph> simplify_graph(ir::Graph graph);

// Divisions of floats by constants become multiplications, but where steps are made of the quotients.
ir::Graph multiply_instead(ir::Graph graph);

// Sums of the gradients of slices that cover a tensor become concats. After fold_constants.
ir::Graph join_slices(ir::Graph graph);

// Transposes of matrices around products become flags of these. After fold_constants.
ir::Graph fold_transposes(ir::Graph graph);
// What is computed element by element of a flat concat is computed of its parts, where these come from products.
// After fold_transposes.
ir::Graph update_by_pieces(ir::Graph graph);
// The same around products of several matrices, of which an order may be left to do. After fuse_attention, which
// has its own order for keys.
ir::Graph fold_batch_transposes(ir::Graph graph);

// Transposed convolutions become ordinary ones, their phases: joint or separate ones. Those of weights
// whose extents are not all known stay.
ir::Graph open_conv_transpose(ir::Graph graph, Decisions* decisions = nullptr);

// Indices that are not known to be within what they point into are checked at the run. Error: a
// constant one that is not. `inside`: the graph is a region, which may never run: no error.
Result<ir::Graph> check_indices(ir::Graph graph, bool inside);

// Pointwise operators on an interleaving concat are applied to its parts, whose producers then
// compute them and store the results where they belong.
ir::Graph sink_interleaving(ir::Graph graph);

// Makes it seen where constants are stored in 8 bits: a cast and a factor per channel are a
// dequantisation, and rows are gathered before they are dequantised.
ir::Graph find_quantized(ir::Graph graph);
// Products of floats and dequantised constants become products of integers: the floats rounded to
// 16 bits per row, as far as the machine has instructions that make it pay.
ir::Graph round_activations(ir::Graph graph, const ir::MachineDescription& machine);
// Products around a softmax become one operator, whose schedule keeps the scores in cache.
ir::Graph fuse_attention(ir::Graph graph, Decisions* decisions = nullptr);
// Products of dequantised operands become products in integers.
ir::Graph quantize_contractions(ir::Graph graph);
// A quantisation of sums of multiples of constants: these are divided by its scale instead.
ir::Graph absorb_scales(ir::Graph graph);
// Products with zero points become products of bytes and corrections.
ir::Graph expand_zero_points(ir::Graph graph);

// Convolutions of f32 with 3x3 weights become Winograd convolutions where an analytic cost says that
// these are faster; constant weights are then constants to fold, others are transformed at each run.
ir::Graph use_winograd(ir::Graph graph, const ir::MachineDescription& machine,
                       Decisions* decisions = nullptr);

// The padding of convolutions becomes nodes, where the kernel before can store its results amid it.
ir::Graph separate_padding(ir::Graph graph, Decisions* decisions = nullptr);

// Values that take one operation per element of another one, which lies in memory, are computed where
// they are read. Before fuse_operators.
ir::Graph repeat_pointwise(ir::Graph graph);

// Gives every node its group; a group becomes one kernel. A view (reshape) is a group of its own
// that moves nothing.
ir::Graph fuse_operators(ir::Graph graph, const ir::MachineDescription& machine = {});
ir::Graph leave_unfused(ir::Graph graph);  // every node alone
// What groups store in few bytes is widened in the groups that read it, not before.
ir::Graph repeat_widening(ir::Graph graph);

// Concats of many operands become concats of concats. Before choose_layouts.
ir::Graph split_wide_concats(ir::Graph graph);

// Chooses the memory layout of intermediate values: channels innermost around convolutions,
// operands of products as their kernels read them.
ir::Graph choose_layouts(ir::Graph graph, const ir::MachineDescription& machine = {},
                         Decisions* decisions = nullptr);

// Resampling sums up whole rows first where values lie row by row. After choose_layouts.
ir::Graph separate_resize(ir::Graph graph);

// Removes values that nothing names and renumbers the rest.
ir::Graph compact(ir::Graph graph);

}  // namespace tilewright::passes
