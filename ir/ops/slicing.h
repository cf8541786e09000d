// The operator slice, of the family of movements.
#pragma once

#include "ir/graph/op.h"

namespace tilewright::ir {

OpDef slice_op();

}  // namespace tilewright::ir
