// Convolution, pooling, matrix products and normalisation.
#include <array>
#include <cmath>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/windows.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

// A per-channel vector [c] as [1, c, 1, ...] for values of `rank` dimensions.
ValueId per_channel(NodeImport& n, ValueId v, int rank) {
  std::vector<Expr> dims(static_cast<size_t>(rank) - 1, Expr(1));
  dims[0] = n.dim(v, 0);
  return n.reshape(v, dims);
}

void conv(NodeImport& n) {
  ValueId x = n.required_stored(0), w = shaped_kernel(n, n.required_stored(1));
  Attributes a = conv_attributes(n, x, w);
  a["group"] = n.int_attr("group", 1);
  if (!n.has(2)) return n.out(0, n.op("conv", {x, w}, a));
  ValueId y = n.product("conv", {x, w}, a);
  if (n.rank(n.in(2)) == 1)
    n.require_equal(n.dim(n.in(2), 0), n.dim(y, 1), "each channel must have its bias");
  n.out(0, n.op("add", {y, per_channel(n, n.in(2), n.rank(x))}));
}

void max_pool(NodeImport& n) {
  const ValueId x = n.required(0);
  Attributes a = pool_attributes(n, x);
  if (n.wants(1)) {
    a["storage_order"] = n.int_attr("storage_order", 0);
    auto y = n.ops("max_pool_indices", {x}, std::move(a), 2);
    n.out(0, y[0]);
    n.out(1, y[1]);
    return;
  }
  n.out(0, n.op("max_pool", {x}, std::move(a)));
}
void average_pool(NodeImport& n) {
  const ValueId x = n.required(0);
  Attributes a = pool_attributes(n, x);
  a["count_include_pad"] = n.int_attr("count_include_pad", 0);
  n.out(0, n.op("average_pool", {x}, std::move(a)));
}
template <bool largest>
void global_pool(NodeImport& n) {
  ValueId x = n.required(0);
  std::vector<int64_t> axes;
  for (int d = 2; d < n.rank(x); ++d) axes.push_back(d);
  n.out(0, n.op(largest ? "reduce_max" : "reduce_mean", {x},
                {{"axes", axes}, {"keepdims", int64_t{1}}}));
}

void matmul(NodeImport& n) { n.out(0, n.op("matmul", {n.required(0), n.required(1)})); }
// y = alpha * a' * b' + beta * c
void gemm(NodeImport& n) {
  ValueId a = n.required_stored(0), b = n.required_stored(1);
  if (n.rank(a) != 2 || n.rank(b) != 2)
    n.fail("operands must be matrices: a is " + to_string(n.type(a)) + ", b is " +
           to_string(n.type(b)));
  ValueId y =
      n.product("matmul", {a, b},
                {{"trans_a", n.int_attr("transA", 0)}, {"trans_b", n.int_attr("transB", 0)}});
  const double alpha = n.float_attr("alpha", 1), beta = n.float_attr("beta", 1);
  const DType t = n.dtype(y);
  const bool fractions = alpha != std::trunc(alpha) || beta != std::trunc(beta);
  // Fractions of integers are added up before they are cut off.
  const DType work = is_float(t) || !fractions ? t : DType::kFloat64;
  auto scaled = [&](ValueId v, double s) {
    if (!is_float(t)) v = n.cast(v, work);
    return s == 1 ? v : n.op("mul", {v, n.scalar_like(s, v)});
  };
  y = scaled(y, alpha);
  if (n.has(2) && beta != 0)
    y = n.op("add", {y, n.expanded_to(scaled(n.in(2), beta), n.type(y).dims)});
  n.out(0, n.cast(y, t));
}

// ONNX Runtime, and so exporters, knew it as a standard operator long before opset 17 made it one, with
// the same meaning.
void layer_norm(NodeImport& n) {
  ValueId x = n.required(0);
  Attributes a{{"axis", n.int_attr("axis", -1)}, {"epsilon", n.float_attr("epsilon", 1e-5)}};
  const std::vector<Expr> dims = n.type(x).dims;
  const ValueId scale = n.expanded_to(n.in(1), dims), bias = n.expanded_to(n.in(2), dims);
  auto y = n.ops("layer_norm", {x, scale, bias}, a, n.wants(1) || n.wants(2) ? 3 : 1);
  n.out(0, y[0]);
  for (size_t i = 1; i < y.size(); ++i)
    n.out(static_cast<int>(i), n.cast(y[i], DType::kFloat32));  // stash_type
}
void rms_norm(NodeImport& n) {
  const ValueId x = n.required(0);
  n.out(0, n.op("layer_norm", {x, n.expanded_to(n.in(1), n.type(x).dims)},
                {{"axis", n.int_attr("axis", -1)},
                 {"epsilon", n.float_attr("epsilon", 1e-5)},
                 {"rms", int64_t{1}}}));
}
// Before opset 13 softmax works on the input made two-dimensional at `axis`.
template <bool logarithm>
void softmax(NodeImport& n) {
  const char* op = logarithm ? "log_softmax" : "softmax";
  ValueId x = n.required(0);
  if (n.opset() >= 13) {
    n.out(0, n.op(op, {x}, {{"axis", n.int_attr("axis", -1)}}));
    return;
  }
  const int rank = n.rank(x);
  const int64_t axis = n.int_attr("axis", 1) + (n.int_attr("axis", 1) < 0 ? rank : 0);
  if (axis < 0 || axis > rank)
    n.fail("axis " + std::to_string(axis) + " of " + to_string(n.type(x)));
  if (axis == rank - 1) {
    n.out(0, n.op(op, {x}, {{"axis", axis}}));
    return;
  }
  const std::vector<Expr> dims = n.type(x).dims;
  Expr rows = 1, columns = 1;
  for (int d = 0; d < rank; ++d)
    (d < axis ? rows : columns) = (d < axis ? rows : columns) * dims[static_cast<size_t>(d)];
  ValueId flat =
      n.op(op, {n.reshape(x, {simplify(rows), simplify(columns)})}, {{"axis", int64_t{1}}});
  n.out(0, n.reshape(flat, dims));
}

void determinant(NodeImport& n) { n.out(0, n.op("determinant", {n.required(0)})); }

constexpr auto kNnRows = std::to_array<OpMapping>({
    {"", "Conv", 1, conv, Form::kFormula},
    {"", "MaxPool", 1, max_pool},
    {"", "AveragePool", 1, average_pool},
    {"", "GlobalAveragePool", 1, global_pool<false>},
    {"", "GlobalMaxPool", 1, global_pool<true>},
    {"", "MatMul", 1, matmul},
    {"", "Gemm", 7, gemm, Form::kFormula},
    {"", "LayerNormalization", 1, layer_norm},
    {"", "RMSNormalization", 23, rms_norm},
    {"", "Softmax", 1, softmax<false>},
    {"", "LogSoftmax", 1, softmax<true>},
    {"", "Det", 11, determinant},
});

}  // namespace

std::span<const OpMapping> nn_mappings() { return kNnRows; }

}  // namespace tilewright::onnx
