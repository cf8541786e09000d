// The passes from scheduled loops to flat loops. Each is a pure function of a statement or kernel.
#pragma once

#include "ir/loops/nodes.h"
#include "ir/loops/simplify.h"
#include "ir/machine.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

// Loops within blocks, which schedules do not reach, become loops over vectors of the machine's
// width where that provably changes no bit of any result. Before lower_blocks.
ir::Stmt auto_vectorize(const ir::Stmt& s, const ir::MachineDescription& machine);

// Replaces each block by its body: axes become their bindings, predicates become conditions, an
// init runs where all reduction axes are 0. No block remains.
ir::Stmt lower_blocks(const ir::Stmt& s);

// Moves temporaries inwards and shrinks them to what one iteration of the loop around touches.
// After lower_blocks. What is then one worker's, of constant size and whole tiles, is local.
ir::Stmt place_buffers(const ir::Stmt& s);

// Simplifies every expression under the ranges of the loops around it; drops loops that run once or
// never and conditions that are decided.
ir::Stmt simplify_loops(const ir::Stmt& s, const ir::Ranges& ranges = {});

// One index per access: the address in the buffer's storage, in elements. What is written in a blocked layout has
// zeros in the padding of its last blocks, for those who read whole blocks.
ir::Kernel flatten_buffers(ir::Kernel kernel);
// The kernel with stores of these zeros, at indices beyond the extents: not to be run as it is.
ir::Kernel zero_padding(ir::Kernel kernel);
ir::Expr flat_index(const ir::BufferNode& buffer, const std::vector<ir::Expr>& indices);
ir::Expr storage_elements(const ir::BufferNode& buffer);

// Hoists Selects whose condition is invariant in all loops out of them, as an If around two copies of the
// nest (loop unswitching). Runs before vectorize_loops.
ir::Stmt unswitch_loops(const ir::Stmt& s);

// Splits a loop where a condition inside holds for all but its last iterations: the first part
// loses the condition.
ir::Stmt partition_tails(const ir::Stmt& s);

// Gives the iterations for which choices within indices (minima, maxima, selects) are decided a
// loop of their own. Before vectorize_loops.
ir::Stmt peel_borders(const ir::Stmt& s);

// Vectorized loops become vector expressions; conditions on lanes become masks, reductions into one
// element combine their lanes. A loop whose lanes depend on one another otherwise becomes serial.
ir::Stmt vectorize_loops(const ir::Stmt& s);

// Loads in Selects that lie inside their buffer whatever the loops around do are marked as always
// readable. After vectorize_loops.
ir::Stmt unguard_loads(const ir::Stmt& s);
// Does every lane of a flat index lie inside the buffer's storage, for all values in range?
bool lies_inside(const ir::BufferNode& buffer, const ir::Expr& index, const ir::Ranges& ranges);

// Loops of kind `dot` become Dot expressions, or unrolled loops where the form does not fit; around
// others they become DotTiles, or serial loops. After vectorize_loops.
ir::Stmt lower_dots(const ir::Stmt& s);

// Unrolled loops become sequences.
ir::Stmt unroll_loops(const ir::Stmt& s);

// Neighbouring statements whose strided accesses together touch all of a stretch or a square of
// memory load its rows as one vector and take their columns as lanes of it (EveryLane), or store
// one vector of their values (Interleave). After unroll_loops, which puts them side by side.
ir::Stmt group_accesses(const ir::Stmt& s);

// A kernel in which several parallel loops run one after the other becomes that of a team, each of
// whose members can walk through all of it: what stands beside the parallel loops becomes parallel
// loops of one iteration. Others stay: those of fewer than two phases, and those where the way
// through depends on memory that the kernel writes.
ir::Kernel form_phases(ir::Kernel kernel);

// Gives each workspace buffer its place, and each local one that the stack does not take; and the kernel the sizes of
// its workspaces. After form_phases, which decides what each worker has of its own.
ir::Kernel plan_workspace(ir::Kernel kernel);
// What has at most kMostLocalBytes does: few enough for several such buffers, whatever the system gives threads.
inline constexpr int64_t kMostLocalBytes = 48 << 10;

// Common factors of the terms of very long sums stand once. After all passes that compare addresses.
ir::Kernel factor_long_sums(ir::Kernel kernel);

}  // namespace tilewright::passes
