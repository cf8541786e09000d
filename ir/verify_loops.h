// The rules that every kernel obeys, by stage. Checked after each pass; all violations are
// collected.
//
// Every part is present: only masks, predicates, inits and else-branches may be null.
//
// Variables
//  - A variable is used only below its definition: a kernel scalar, a loop, a let, a block axis.
//  - A variable is defined once in a kernel. Scalars, loop variables and axes are scalar i64.
//  - Inside a block only its axes, the axes of blocks around, kernel scalars and what is defined
//    inside are named; its bindings name what is visible around it, its predicate both.
// Buffers
//  - An accessed buffer is a parameter or allocated around the access; it is allocated once.
//  - Parameters have scope param, allocated buffers workspace or local. The size of a local buffer
//    is constant.
//  - Once planned, each workspace buffer has a place: a scalar i64, a multiple of 64; before, none
//    has. Its end lies in the kernel's workspace, and no buffer allocated inside another shares
//    bytes with it, as far as constants and the signs of symbols tell. Sizes of workspaces name
//    kernel scalars only.
//  - Extents are scalar i64; those of parameters name kernel scalars only. A layout names
//    dimensions of its buffer.
// Accesses
//  - As many indices as the buffer has dimensions; flat: one. Indices are i64. Masks occur only
//    when flat and are bool.
//  - Flat: no access of a local buffer is sure to lie outside of it for some values of the loops
//    around, by any of its lanes, whatever masks and conditions say. Whole vectors and tiles are
//    stored there, and the extents of the buffer have room for them.
//  - The lanes of index, mask and value agree; a loaded value has the buffer's element type, so has
//    a stored one.
// Types
//  - Operands of a binary operator have one type, for which the operator has a meaning; likewise
//    the others. The type a node states is the one its operands give it. Immediates lie in the
//    range of their type.
//  - Vectors occur only when flat. Loop extents are scalar i64, conditions scalar bool.
// Blocks
//  - None is left when flat. Each axis has one binding, a scalar i64.
//  - A reduction has an init until it is decomposed (stage blocks); a block that does not reduce
//    has none.
//  - An init does not name reduce axes, and outside of its own buffers a block's stores are not
//    indexed by them.
//  - Reduce and ordered axes are not bound to parallel loops.
// Loops
//  - A team's kernel accesses memory inside its parallel loops alone. Local buffers allocated
//    outside of these are accessed only in those of one iteration, which are all the first
//    worker's: each worker has its own.
//  - No parallel loop is nested in a vectorized one. Vectorized and unrolled loops have constant
//    extents.
#pragma once

#include "ir/loops/nodes.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

enum class Stage : uint8_t {
  kBlocks,     // as lowered: blocks, nothing decomposed
  kScheduled,  // after schedule primitives
  kFlat,       // no blocks; one index into storage; vectors
  kPlanned,    // workspace buffers have their places
};

// kInternal with one note per violation, each naming the place by the loops and blocks around it.
Status verify(const Kernel& kernel, Stage stage);

}  // namespace tilewright::ir
