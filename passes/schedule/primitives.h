// The schedule primitives. Each takes a kernel with blocks and gives a new one that computes the
// same, or an error that says why the step is not legal.
#pragma once

#include "passes/schedule/trace.h"

namespace tilewright::passes {

// Loop `loop` of extent n becomes `outer` of ceil(n / factor) and `inner` of factor; instances
// beyond n are predicated off.
Result<ir::Kernel> split(const ir::Kernel& k,
                         const Step& step);  // names: loop, outer, inner; numbers: factor
// Perfectly nested loops in a new order.
Result<ir::Kernel> reorder(const ir::Kernel& k, const Step& step);  // names: loops, outermost first
// Two directly nested loops of one kind become one over their product.
Result<ir::Kernel> collapse(const ir::Kernel& k, const Step& step);  // names: outer, inner, joined
// Two axes of one kind that one loop runs over, as quotient and remainder, become one axis.
Result<ir::Kernel> join_axes(const ir::Kernel& k,
                             const Step& step);  // names: block; numbers: outer axis, inner axis
// An axis that one loop runs over becomes two, the inner one the block's last; `factor` divides its extent.
Result<ir::Kernel> split_axis(const ir::Kernel& k, const Step& step);  // names: block, outer, inner
// loops; numbers: axis, factor
// The body of a pointwise block replaces the loads of its result; the block and its buffer go.
Result<ir::Kernel> inline_block(const ir::Kernel& k, const Step& step);  // names: block
// Loop fusion: the nest of `block` moves into loop `loop` of another nest; the loops around must
// match one by one.
Result<ir::Kernel> fuse_loops(const ir::Kernel& k, const Step& step);  // names: block, loop
// As in Halide and TVM: each iteration of `loop` makes the part of the result of the pointwise block
// `block` that it reads itself; parts may overlap.
Result<ir::Kernel> compute_at(const ir::Kernel& k, const Step& step);  // names: block, loop
// The temporary that `block` makes, and the temporaries that it reads for it, are rounded up along an
// axis of the block.
Result<ir::Kernel> align_bounds(const ir::Kernel& k,
                                const Step& step);  // names: block; numbers: axis, multiple
// The attention around the block of its weights, over whole tensors so far, takes blocks of rows by
// blocks of keys: FlashAttention's order. Sums over keys are those of blocks then.
Result<ir::Kernel> tile_attention(const ir::Kernel& k,
                                  const Step& step);  // names: block; numbers: rows, keys
// A copy of a buffer, made before all loops around `block`, that it reads instead.
Result<ir::Kernel> cache_read(const ir::Kernel& k,
                              const Step& step);  // names: block, buffer, new buffer
// `block` writes a new buffer; a copy block `new block` writes the old one.
Result<ir::Kernel> cache_write(const ir::Kernel& k,
                               const Step& step);  // names: block, new buffer, new block
// A buffer's memory layout. numbers: dim, divisor, modulus for each physical axis, outermost first; then
// the extent of the last one, where that is padded.
Result<ir::Kernel> transform_layout(const ir::Kernel& k, const Step& step);  // names: buffer
// The init of a reduction becomes a nest of its own before loop `loop`.
Result<ir::Kernel> decompose_reduction(const ir::Kernel& k,
                                       const Step& step);  // names: block, loop
// The block directly before the reduction `block`, which may be over nothing, that writes what it
// starts from goes: inits are taken out of all reductions by the last steps of a schedule.
Result<ir::Kernel> compose_init(const ir::Kernel& k, const Step& step);  // names: block, init block
// A reduction axis is cut into `factor` independent partial reductions, combined at the end.
Result<ir::Kernel> rfactor(const ir::Kernel& k,
                           const Step& step);  // names: block, partial block; numbers: axis, factor
// A reduction axis is cut into `parts` runs with a partial result each, combined at the end.
Result<ir::Kernel> split_reduction(
    const ir::Kernel& k, const Step& step);  // names: block, partial block; numbers: axis, parts
Result<ir::Kernel> unroll(const ir::Kernel& k, const Step& step);       // names: loop
Result<ir::Kernel> vectorize(const ir::Kernel& k, const Step& step);    // names: loop
Result<ir::Kernel> parallelize(const ir::Kernel& k, const Step& step);  // names: loop
// A loop becomes one instruction. "dot": the innermost loop over the terms of a sum of products of
// u8 and i8 (four), i16 or bf16 (two) becomes one Dot. "dot_tile": then, the loop over rows around
// loops over groups of terms, vectors of columns and the terms of Dots becomes one DotTile; each has
// at most 16 iterations.
Result<ir::Kernel> tensorize(const ir::Kernel& k, const Step& step);  // names: loop, instruction
// What `block` stores goes past the caches; of the kernel, later tasks may read it.
Result<ir::Kernel> stream(const ir::Kernel& k, const Step& step);  // names: block
// Where `block` reads `buffer`, what lies a number of elements of storage further on is brought
// near.
Result<ir::Kernel> prefetch(const ir::Kernel& k,
                            const Step& step);  // names: block, buffer; numbers: elements ahead
// While an iteration of `loop` runs in `block`, what begins where `reader` accesses a parameter first so many
// iterations later, and is `elements` long, is brought near, a line or so with each step of the loops inside; all of it
// at once where there are none. kind: 0 near, 1 outer, 2 to be written (PrefetchKind).
Result<ir::Kernel> prefetch_next(const ir::Kernel& k, const Step& step);  // names: block, reader,
                                                                          // buffer, loop; numbers:
                                                                          // elements, kind,
                                                                          // iterations
// The same of rows that lie apart, `elements` of each, which an iteration of `loop` makes `reader` copy: brought into
// the second cache meanwhile.
Result<ir::Kernel> prefetch_rows(const ir::Kernel& k, const Step& step);  // names: block, reader,
                                                                          // buffer, loop; numbers:
                                                                          // elements, rows, apart

}  // namespace tilewright::passes
