// The rules that every program obeys, checked after each pass over programs. All violations are
// collected.
//
// Kernels are flat loops, verified each by itself (verify_loops.h). Each has a schedule, which may
// be empty.
//
// Buffers
//  - A constant has contents of its element type and extents, and nothing else has any.
//  - Extents and storage sizes are scalar i64 over the program's symbols.
//  - A view is of another buffer, through no circle of views; it has no storage of its own and so
//    is neither an input nor a constant nor dynamic.
//  - The inputs are the buffers of kind input, each once; their extents name the symbols that a run
//    begins with.
//  - A view has the layout that its elements have in what it views: index for index, reshaped, transposed
//    or as a part (ViewMap). A part lies within the other's storage.
//  - Inputs and results are row-major.
// Calls
//  - A call names a kernel, and a profile where it has one. It has as many buffers and scalars as
//    the kernel has parameters and scalars; the element types agree, and constant storage sizes and
//    layouts do.
//  - A kernel stores to no input, constant or run key.
// Copies and loops
//  - A copy is between buffers of one type and layout, and so is what a loop carries from one iteration
//    to the next. What it stacks, and what the run reads by itself (conditions, trip counts, symbols,
//    the farthest indices), is row-major.
// Blocks
//  - The first block is the main one, which nothing enters; each other is entered by exactly one
//    branch or loop, so that none enters itself.
// Order
//  - What an instruction reads is an input, a constant, the run key, empty, or stored to before: in its
//    block, in those around it, or in both branches of an `if` between. A branch that fails stores
//    whatever the other does. The same holds of results at the end of the main block.
//  - A symbol is named only where an input's extents, a `define` or the count of a loop before it
//    say what it is; in the sizes of a buffer that is used there, too.
//  - A dynamic buffer is allocated before kernels and copies store to it; a loop allocates the
//    results that it stacks.
// Lifetimes
//  - first_use and last_use of a buffer enclose each instruction of the main block that uses it or
//    a view of it, inside of branches and loops too; results live to the end.
#pragma once

#include "ir/program/program.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

// kInternal with one note per violation, each naming its block and instruction.
Status verify(const Program& program);

}  // namespace tilewright::ir
