// Small executables whose kernels are written by hand: what a compiler would assemble.
#pragma once

#include <cstring>
#include <initializer_list>

#include "runtime/executable.h"
#include "runtime/size_expr.h"
#include "runtime/tensor.h"

namespace tilewright::testing {

// The bytes of a tensor of these extents, as the program for the stack machine of size expressions.
inline SizeExpr size_of(std::initializer_list<SizeExpr> dims, DType dtype) {
  SizeExpr bytes = constant_size(byte_size(dtype));
  for (const SizeExpr& d : dims) {
    bytes.insert(bytes.end(), d.begin(), d.end());
    bytes.push_back({SizeOp::kMul});
  }
  return bytes;
}

// A buffer that lives through the whole program.
inline BufferDesc make_buffer(const char* name, DType dtype, std::initializer_list<SizeExpr> dims,
                              BufferKind kind) {
  BufferDesc b;
  b.name = name;
  b.dtype = dtype;
  b.dims = dims;
  b.bytes = size_of(dims, dtype);
  b.kind = kind;
  b.first_use = 0;
  b.last_use = 1000;
  return b;
}

// Instructions, one maker for each; what they do stands in runtime/executable.h.
inline Instruction call(int32_t kernel, std::vector<int32_t> buffers,
                        std::vector<SizeExpr> scalars = {}) {
  Instruction i;
  i.op = Op::kCall;
  i.target = kernel;
  i.buffers = std::move(buffers);
  i.scalars = std::move(scalars);
  return i;
}

// The bytes of one buffer into another.
inline Instruction copy(int32_t to, int32_t from) {
  Instruction i;
  i.op = Op::kCopy;
  i.buffers = {to, from};
  return i;
}

// Memory for a buffer whose size is known only now.
inline Instruction allocate(int32_t buffer) {
  Instruction i;
  i.op = Op::kAllocate;
  i.buffers = {buffer};
  return i;
}

// A symbol from element `index` of a buffer of i64; an error beyond `limit`.
inline Instruction define(int32_t symbol, int32_t buffer, int64_t index, int64_t limit) {
  Instruction i;
  i.op = Op::kDefineSymbol;
  i.target = symbol;
  i.buffers = {buffer};
  i.index = index;
  i.limit = limit;
  return i;
}

// One of two blocks, by a bool in a buffer.
inline Instruction branch(int32_t condition, int32_t then_block, int32_t else_block) {
  Instruction i;
  i.op = Op::kIf;
  i.buffers = {condition};
  i.block_a = then_block;
  i.block_b = else_block;
  return i;
}

// A loop of the program, by its number.
inline Instruction loop(int32_t index) {
  Instruction i;
  i.op = Op::kLoop;
  i.target = index;
  return i;
}

// Tensors that own their elements, of f32.
inline Tensor floats(Shape shape, std::vector<float> values) {
  Tensor t = Tensor::allocate(DType::kFloat32, std::move(shape)).value();
  if (!values.empty()) std::memcpy(t.data(), values.data(), values.size() * sizeof(float));
  return t;
}

// i64, as shapes and indices are.
inline Tensor integers(Shape shape, std::vector<int64_t> values) {
  Tensor t = Tensor::allocate(DType::kInt64, std::move(shape)).value();
  if (!values.empty()) std::memcpy(t.data(), values.data(), values.size() * sizeof(int64_t));
  return t;
}

// A scalar bool.
inline Tensor truth(bool value) {
  Tensor t = Tensor::allocate(DType::kBool, {}).value();
  *t.data_as<uint8_t>() = value;
  return t;
}

// The elements, which must be of type T.
template <typename T>
std::vector<T> values(const Tensor& t) {
  return {t.data_as<T>(), t.data_as<T>() + t.element_count()};
}

// y[batch, 4] = relu(x[batch, 4]) + c[4], through a temporary, with workspaces. Symbol 0: batch.
Executable add_relu_model();
// The same for batch == 2 only, then for all.
Executable add_relu_two_variants();
// y[n] = the elements of x[batch] above 0, by counting first. Symbol 0: batch, 1: n (run).
Executable compact_model();
// y = flag ? x + x : x * x, element-wise over [3].
Executable branch_model();
// Fibonacci: (a, b) <- (b, a + b) from inputs a, b: trips times or until b > limit; scan of a.
// Symbol 0: count (run).
Executable fibonacci_model();
// y[k] = x[i] for each i of indices[k], with x[rows] of at most 8 rows. Symbol 0: rows, 1: k.
Executable gather_model();

}  // namespace tilewright::testing
