// What makers of expressions compute at once: operations on immediates, and identities.
#pragma once

#include "ir/loops/make.h"

namespace tilewright::ir {

// A number brought into the range of an integer type, as two's complement; to bool: v != 0.
int64_t wrap(int64_t v, DType t);
// The nearest number of a floating-point type.
double rounded(double value, DType dtype);
// op of two integers of type t; null where it is left to the run (division by zero, by -1).
Expr fold_integers(BinaryOp op, int64_t a, int64_t b, DType t);
// Identities of scalar integers and booleans; null when none applies. Floats keep their IEEE
// meaning.
Expr fold_identity(BinaryOp op, const Expr& a, const Expr& b);

}  // namespace tilewright::ir
