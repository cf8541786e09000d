// The text form of the loop IR. It round-trips: parse_kernel(to_text(k)) is structurally equal to k
// and prints the same.
//
//   kernel matmul(A: f32[m, 784], B: f32[784, 512] layout(d1/16, d0, d1%16), C: f32[m, 512])
//   scalars(m) {
//     for i in 0..m parallel {
//       for j in 0..512 {
//         for k in 0..784 {
//           block "update" (vi: parallel m = i, vj: parallel 512 = j, vk: reduce 784 = k) where (i
//           < m) init {
//             C[vi, vj] = 0.0
//           } body {
//             C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
//           }
//         }
//       }
//     }
//   }
//
// Statements: `A[i, j] = x`, `A[ramp(i, 1, 8) where mask] = x`, `let x: f32 = ...` and `local t:
// f32[4]` (or `workspace`), which hold to the end of the braces around, `for i in 0..n parallel
// {}`, `while c {}`, `if c {} else {}`, `block`, `{}`. Immediates: `3` is i64, `3:i32`, `1.5` is
// f32, `1.5:f64`, `inf`, `-inf:f16`, `nan`, `true`. Operators, loosest first: or; and; == != < <= >
// >=; + -; * /; unary -. Everything else is a call: `floordiv(a, b)`, `sqrt(x)`, `not(x)`,
// `select(c, a, b)`, a conversion `i32(x)`, `bitcast(u32, x)`, `ramp(base, stride, lanes)`,
// `broadcast(x, lanes)`, `reduce_lanes(+, x)`. Names that are no plain words stand in single
// quotes.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Gives every variable and buffer a name of its own: the first of a name keeps it, later ones get a
// suffix.
class NameTable {
 public:
  // The name by which the text calls a variable, a buffer, or another object of the wish `wanted`.
  std::string of(const Expr& var);
  std::string of(const Buffer& buffer);
  std::string unique(const void* object, const std::string& wanted);

 private:
  std::unordered_map<const void*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_suffix_;
};

// Without a table: a fresh one for the whole node.
std::string to_text(const Expr& e);
std::string to_text(const Expr& e, NameTable& names);
std::string to_text(const Stmt& s);
std::string to_text(const Kernel& k);
std::string to_text(ScalarType type);       // f32, i64x8
std::string to_text(const Layout& layout);  // layout(d0/16, d1, d0%16); nothing when empty
// A name as it is written: in single quotes when it is no word or a reserved one.
std::string name_to_text(const std::string& name);
// A finite or infinite number or nan so that reading it back gives the same bits: shortest decimal
// form.
std::string float_to_text(double value, DType dtype);

// Words that mean something by themselves.
bool is_reserved(std::string_view word);

}  // namespace tilewright::ir
