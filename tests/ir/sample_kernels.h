// Kernels that several tests of this folder use.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::ir::testing_samples {

// C[i, j] = sum over k of A[i, k] * B[k, j], in blocks; the number of rows is the scalar m.
inline Kernel matmul(int64_t n, int64_t k) {
  Var m("m"), i("i"), j("j"), x("k"), vi("vi"), vj("vj"), vk("vk");
  Buffer a = make_buffer("A", DType::kFloat32, {m, Expr(k)});
  Buffer b = make_buffer("B", DType::kFloat32, {Expr(k), Expr(n)});
  Buffer c = make_buffer("C", DType::kFloat32, {m, Expr(n)});
  Block block_fields;
  block_fields.name = "update";
  block_fields.axes = {{vi, m, AxisKind::kParallel},
                       {vj, Expr(n), AxisKind::kParallel},
                       {vk, Expr(k), AxisKind::kReduce}};
  block_fields.bindings = {i, j, x};
  block_fields.init = store(c, {vi, vj}, float_imm(0));
  block_fields.body = store(c, {vi, vj}, load(c, {vi, vj}) + load(a, {vi, vk}) * load(b, {vk, vj}));
  Stmt loops =
      for_loop(i, m, for_loop(j, Expr(n), for_loop(x, Expr(k), block(std::move(block_fields)))));
  return Kernel{"matmul", {a, b, c}, {m}, loops};
}

}  // namespace tilewright::ir::testing_samples
