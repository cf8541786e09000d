// Outputs that update inputs lie in the memory of these.
#pragma once

#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace tilewright::passes {

// `updates`: (input, what the run computes for it), buffers of one type. Afterwards the inputs are marked as
// updated and hold the new contents at the end of the program: written by the kernel that computes them
// where it is the last to read the old ones, element by element, else copied when all is done.
void update_in_place(ir::Program& program, const std::vector<std::pair<int32_t, int32_t>>& updates);

// May the kernel store `result` over `input`, both its parameters? It may when the old value of an
// element is loaded in the iteration that stores the new one alone, before it, and no element is stored
// twice. Flat loops; false where that cannot be shown.
bool updates_by_element(const ir::Kernel& kernel, const ir::Buffer& input,
                        const ir::Buffer& result);

}  // namespace tilewright::passes
