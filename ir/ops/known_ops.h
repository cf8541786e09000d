// The operators that passes recognise in a graph or build, each as its record: outside of ir/ops
// and the importers nothing spells the name of an operator. What a pass asks of *any* operator is a
// trait in OpDef; this list is for rewrites about certain operators (a softmax between two
// products).
#pragma once

#include "ir/graph/op.h"

namespace tilewright::ir::ops {

#define OP(name) const OpDef* name();
#define OP_AS(function, name) const OpDef* function();
#include "ir/ops/known_ops.def"
#undef OP
#undef OP_AS

}  // namespace tilewright::ir::ops
