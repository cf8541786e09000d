// The text form of programs. It round-trips: parse_program(to_text(p, &c), c) prints the same.
//
//   program mlp standard symbols(batch) {
//     input b0 "x": f32[batch, 784] elements batch * 784 live 0..0
//     constant b1 "w": f32[784, 10] layout(d1/16, d0, d1%16) elements 12544 live 0..0 = #0
//     output b2 "y": f32[batch, 10] elements batch * 10 live 0..0
//     inputs(b0)
//     outputs(b2)
//     kernel k0_matmul(...) scalars(batch) { ... }
//     schedule
//       "split matmul.j 16 jo ji\n"
//     profile "k0_matmul" from "fc1" flops batch * 15680 bytes batch * 3176 + 31360
//     block {
//       call 0(b0, b1, b2) scalars(batch) profile 0
//     }
//   }
//
// A kernel's schedule stands behind it, a string for each line. Buffers are numbered as they come,
// so are kernels, profiles and blocks, of which the first is the main one. `of b1` makes a view of
// another buffer, `dynamic` says that the run defines the size, `live` names the first and last
// instruction of the main block that uses the buffer. Constants are
// `#n`, the n-th of a list that travels beside the text. Instructions:
//
//   call 0(b0, b1) scalars(batch, n) profile 2       define n = b4[0] limit 1024
//   allocate b3                                      copy b3 = b4
//   if b3 then 1 else 2                              fail "message"
//   check_indices b1 farthest b2 extents(n) dim 0 "node"
//   require equals(n, m) "what"                       require at_most(n, m) "what"
//   loop trips b1 while b2 iteration b3 body 4 until b5 carried(b6 = b7) scans(b8 = b9) count n
//
// of which a loop has only those words that it needs: `while` names the condition before the loop,
// `until` that of the body, `carried` states and what becomes of them, `scans` results and their
// elements.
#pragma once

#include <string>
#include <vector>

#include "ir/program/program.h"

namespace tilewright::ir {

// Constants are appended to `constants`, each once.
std::string to_text(const Program& program, std::vector<ConstantRef>* constants = nullptr);

}  // namespace tilewright::ir
