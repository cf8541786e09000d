// What flat loops look like to a core: how often which instruction runs, what the loop that runs
// most has in its body, and how the work is shared out.
#pragma once

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace tilewright::autotune {

// Instructions as passes/cost/core_cycles.h counts them, roughly: of whole vectors, over all
// iterations.
struct InstructionMix {
  // Vectors of arithmetic, of which products, divisions and costly functions; loads of vectors, of
  // single elements and lane by lane; stores; accesses under a mask; conditions of branches.
  double arithmetic = 0, products = 0, divisions = 0, costly = 0;
  double loads = 0, elements = 0, gathers = 0, stores = 0, masked = 0, branches = 0;
  double lanes = 0;  // bytes of results over those of whole vectors, summed over the arithmetic
  // Accesses of the innermost loops that go on by at least a cache line, and a page, each time.
  double line_strides = 0, page_strides = 0;
  double accesses() const { return loads + elements + gathers + stores; }
  double all() const { return arithmetic + accesses() + branches; }
  InstructionMix& add(const InstructionMix& more, double times);
};

// A loop without loops inside.
struct InnermostLoop {
  // Of one iteration; how many iterations there are each time, and how often in all.
  InstructionMix body;
  double iterations = 1, runs = 0;
  double sums = 0;  // vectors that are added to in each iteration
  double held = 0;  // vectors that are read again and again
  double weight() const { return runs * body.all(); }
};

struct LoopShape {
  // Over the whole kernel, and of the innermost loop with the most instructions.
  InstructionMix mix;
  InnermostLoop hottest;
  double statements = 0;                 // stores, as they stand in the code
  double innermost_loops = 0;            // as they stand in the code
  double depth = 0;                      // loops around one another, at most
  double parallel_loops = 0, tasks = 1;  // of the parallel loop with the most instructions
  double shared = 0;                     // part of the instructions inside parallel loops
  double workspace_bytes = 0, register_bytes = 0;  // of buffers allocated inside
  double streamed = 0;                             // part of the stores that go past the caches
};

// Extents that nothing bounds count as kUnknownExtent.
LoopShape shape_of(const ir::MachineDescription& machine, const ir::Stmt& flat_loops);

}  // namespace tilewright::autotune
