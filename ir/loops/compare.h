// Structural equality and hashing of the loop IR, up to the names of bound variables and of
// buffers. Both come from one walk over the field lists.
#pragma once

#include <cstdint>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Variables bound inside (loops, lets, block axes, kernel scalars) correspond by position; free
// variables only to themselves. Buffers correspond by first occurrence and must agree in element
// type, shape, layout and scope. Block names count; the names of kernels, variables and buffers do
// not. NaN immediates are equal to one another, 0.0 and -0.0 are not.
bool structurally_equal(const Expr& a, const Expr& b);
bool structurally_equal(const Stmt& a, const Stmt& b);
bool structurally_equal(const Kernel& a, const Kernel& b);

// Equal structures have equal hashes; the same on every run and machine. Free variables count by
// name.
uint64_t structural_hash(const Expr& e);
uint64_t structural_hash(const Stmt& s);
uint64_t structural_hash(const Kernel& k);

}  // namespace tilewright::ir
