// The oracle: runs a kernel at any stage (with blocks, scheduled, flat) exactly as nodes.h defines
// it, one thread, no reordering, no extra precision. The meaning of scalar operations is in
// scalar_ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/loops/nodes.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

struct InterpretOptions {
  // Reading an element of a workspace or local buffer that was never stored is an error. Off: it
  // reads as all bits set.
  bool check_uninitialised = true;
};

// params: one pointer per kernel parameter, laid out as its buffer says; scalars: one value per
// kernel scalar. Errors (kInternal, since a verified kernel has none): an index out of bounds, an
// uninitialised read, an integer division by zero, a block axis bound outside its extent, a
// variable or buffer that is not defined.
Status interpret(const Kernel& kernel, const std::vector<void*>& params,
                 const std::vector<int64_t>& scalars, const InterpretOptions& options = {});

}  // namespace tilewright::ir
