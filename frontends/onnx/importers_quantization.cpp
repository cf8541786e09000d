// Quantisation, and products of quantised operands: sums in i32.
#include <algorithm>
#include <array>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"
#include "frontends/onnx/windows.h"
#include "frontends/tensor_files/element_type.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

std::string type_name(DType t) { return std::string(name(t)); }

void must_be_axis(NodeImport& n, int axis, int rank) {
  if (axis < 0 || axis >= rank)
    n.fail("axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
}

bool has_axis(const NodeImport& n, ValueId v) { return n.rank(v) == 1 && !ir::is_one(n.dim(v, 0)); }

// v, one value along `axis` of `like`, reshaped to broadcast against it. A scalar or one element
// fits everywhere.
ValueId along_axis(NodeImport& n, ValueId v, ValueId like, int axis) {
  const int rank = n.rank(like);
  if (v == kNone || n.rank(v) == 0) return v;
  if (n.rank(v) != 1)
    n.fail("scale or zero point is " + to_string(n.type(v)) +
           ", expected a scalar or one dimension");
  if (ir::is_one(n.dim(v, 0))) return n.reshape(v, std::vector<int64_t>{});
  must_be_axis(n, axis, rank);
  std::vector<Expr> dims(static_cast<size_t>(rank), Expr(1));
  dims[static_cast<size_t>(axis)] = n.dim(v, 0);
  return n.expanded_to(n.reshape(v, dims), n.type(like).dims);
}
// v, one value for each `block` elements along `axis` of x, repeated to the shape of x.
ValueId along_blocks(NodeImport& n, ValueId v, ValueId x, int axis, int64_t block) {
  if (v == kNone) return v;
  if (n.rank(v) != n.rank(x))
    n.fail("blocks of x: " + to_string(n.type(x)) +
           ", scale or zero point: " + to_string(n.type(v)));
  must_be_axis(n, axis, n.rank(x));
  const auto at = static_cast<size_t>(axis);
  for (int d = 0; d < n.rank(x); ++d)
    if (d != axis)
      n.require_equal(n.dim(v, d), n.dim(x, d), "x and its blocks differ along the axis alone");
  std::vector<Expr> dims = n.type(v).dims, wide = dims;
  dims.insert(dims.begin() + axis + 1, Expr(1));
  ValueId repeated = n.reshape(v, dims);
  std::vector<int64_t> times(dims.size(), 1);
  times[at + 1] = block;
  repeated = n.op("expand", {repeated, n.ints(times)});
  wide[at] = simplify(wide[at] * Expr(block));
  repeated = n.reshape(repeated, wide);
  auto extent = ir::as_int(n.dim(x, axis)), have = ir::as_int(wide[at]);
  if (!extent || !have)
    n.needs_value("blocked quantisation along an extent that is not known at compile time");
  if (*have < *extent || *have >= *extent + block)
    n.fail("blocks of " + std::to_string(block) + " for " + to_string(n.type(x)) +
           ": scale or zero point is " + to_string(n.type(v)));
  return *have == *extent ? repeated : n.slice(repeated, axis, 0, *extent);
}
// Scale and zero point, shaped to broadcast against the tensor that they belong to. By tensor, by
// channel (one value along an axis) or by block.
struct Parameters {
  ValueId scale, zero_point;
};
// From inputs 1 and 2 of QuantizeLinear and DequantizeLinear. Without an axis they belong to the
// whole tensor, whatever the attribute says.
Parameters parameters(NodeImport& n, ValueId x) {
  const int64_t block = n.int_attr("block_size", 0), given = n.int_attr("axis", 1);
  if (block < 0) n.fail("block_size " + std::to_string(block));
  const int axis = static_cast<int>(given < 0 ? given + n.rank(x) : given);
  if (block)
    return {along_blocks(n, n.required(1), x, axis, block),
            along_blocks(n, n.in(2), x, axis, block)};
  if (n.has(2) && has_axis(n, n.required(1)) != has_axis(n, n.in(2)))
    n.fail("the scale is " + to_string(n.type(n.required(1))) + ", the zero point " +
           to_string(n.type(n.in(2))) + ", expected one shape");
  return {along_axis(n, n.required(1), x, axis), along_axis(n, n.in(2), x, axis)};
}
DType dtype_attr(NodeImport& n, const char* attribute, DType fallback) {
  const auto code = static_cast<int>(n.int_attr(attribute, 0));
  if (code == 0) return fallback;
  auto t = dtype_from_onnx(code);
  if (!t) n.unsupported("element type " + onnx_element_name(code));
  return *t;
}

// y = saturate(round(x / scale) + zero point), ties to even. The target type follows from the zero
// point, else from output_dtype.
void quantize_linear(NodeImport& n) {
  ValueId x = n.required(0);
  Parameters p = parameters(n, x);
  const DType to =
      p.zero_point != kNone ? n.dtype(p.zero_point) : dtype_attr(n, "output_dtype", DType::kUInt8);
  if (dtype_attr(n, "output_dtype", to) != to)
    n.fail("output_dtype is " + type_name(dtype_attr(n, "output_dtype", to)) +
           ", the zero point is " + type_name(to));
  // Division in the wider of both types, unless the node says which.
  DType work = is_float(n.dtype(x)) ? n.dtype(x) : DType::kFloat32;
  if (is_float(n.dtype(p.scale)) && byte_size(n.dtype(p.scale)) > byte_size(work))
    work = n.dtype(p.scale);
  work = dtype_attr(n, "precision", work);
  n.out(0, n.op("quantize", {n.cast(x, work), n.cast(p.scale, work), p.zero_point},
                {{"to", type_name(to)}}));
}
void dequantize_linear(NodeImport& n) {
  ValueId x = n.required(0);
  Parameters p = parameters(n, x);
  const DType to = dtype_attr(n, "output_dtype", n.dtype(p.scale));
  n.out(0, n.op("dequantize", {x, p.scale, p.zero_point}, {{"to", type_name(to)}}));
}

// To u8, over the range of x and 0: scale = (max - min) / 255, zero point = round(-min / scale).
struct Quantized {
  V values, scale, zero_point;
};
// x in 8 bits, by the range of all its elements.
Quantized quantize_by_range(NodeImport& n, V x) {
  std::vector<int64_t> all;
  for (int d = 0; d < x.rank(); ++d) all.push_back(d);
  V high = apply("max", reduce("reduce_max", x, all, false), x.number(0));
  V low = apply("min", reduce("reduce_min", x, all, false), x.number(0));
  V range = high - low;
  V empty = apply("equal", range, x.number(0));
  V scale = where(empty, x.number(1), range / 255);
  V zero_point{
      n, n.op("quantize", {limit(0.0 - low / scale, 0, 255).id}, {{"to", std::string("u8")}})};
  return {V{n, n.op("quantize", {x.id, scale.id, zero_point.id}, {{"to", std::string("u8")}})},
          scale, zero_point};
}
void dynamic_quantize_linear(NodeImport& n) {
  const Quantized q = quantize_by_range(n, V{n, n.required(0)});
  n.out(0, q.values.id);
  n.out(1, q.scale.id);
  n.out(2, q.zero_point.id);
}

// A zero point of 0 is left out, so that the product is an ordinary one.
ValueId unless_zero(NodeImport& n, ValueId v) { return is_known_zero(n, v) ? kNone : v; }
// Zero point or scale of the rows of a: [..., m, k]; one of a single dimension has m elements.
ValueId for_rows(NodeImport& n, ValueId v) {
  if (v == kNone || n.rank(v) != 1) return v;
  if (ir::is_one(n.dim(v, 0))) return n.reshape(v, std::vector<int64_t>{});
  return n.reshape(v, std::vector<Expr>{n.dim(v, 0), 1});
}
// A zero point for the operand, which it must not be larger than: its trailing extents are 1 or those of the operand.
ValueId repeated_along(NodeImport& n, ValueId zero, ValueId operand, const std::string& name) {
  if (zero == kNone) return kNone;
  const int before = n.rank(operand) - n.rank(zero);
  if (before < 0)
    n.fail(name + " is " + to_string(n.type(zero)) + " for " + to_string(n.type(operand)));
  for (int d = 0; d < n.rank(zero); ++d)
    n.require_at_most(n.dim(zero, d), simplify(max(n.dim(operand, before + d), 1)),
                      name + " is not larger than the operand");
  return n.expanded_to(zero, n.type(operand).dims);
}
// Sums of (a - a_zero) * (b - b_zero) in i32, exact for up to 2^15 elements of 8 bits.
ValueId integer_matmul(NodeImport& n, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero) {
  a_zero = repeated_along(n, for_rows(n, a_zero), a, "the zero point of the left operand");
  b_zero = repeated_along(n, b_zero, b, "the zero point of the right operand");
  return n.op("matmul", {a, b, unless_zero(n, a_zero), unless_zero(n, b_zero)},
              {{"out_dtype", std::string("i32")}});
}
ValueId integer_conv(NodeImport& n, ValueId x, ValueId x_zero, ValueId w, ValueId w_zero) {
  w = shaped_kernel(n, w);
  Attributes a = conv_attributes(n, x, w);
  a["group"] = n.int_attr("group", 1);
  a["out_dtype"] = std::string("i32");
  return n.op("conv",
              {x, w, unless_zero(n, along_axis(n, x_zero, x, 1)),
               unless_zero(n, along_axis(n, w_zero, w, 0))},
              a);
}
void matmul_integer(NodeImport& n) {
  n.out(0, integer_matmul(n, n.required(0), n.in(2), n.required(1), n.in(3)));
}
void conv_integer(NodeImport& n) {
  n.out(0, integer_conv(n, n.required(0), n.in(2), n.required(1), n.in(3)));
}

// An i32 sum back into 8 bits: round(sum * factor) + zero point.
ValueId requantize(NodeImport& n, ValueId sum, V factor, ValueId zero_point) {
  V scaled = V{n, n.cast(sum, DType::kFloat32)} * factor;
  return n.op("quantize", {scaled.id, kNone, zero_point}, {{"to", type_name(n.dtype(zero_point))}});
}
void qlinear_matmul(NodeImport& n) {
  ValueId sum = integer_matmul(n, n.required(0), n.required(2), n.required(3), n.required(5));
  V a_scale = V{n, for_rows(n, n.required(1))}.to(DType::kFloat32),
    b_scale = V{n, n.required(4)}.to(DType::kFloat32);
  V y_scale = V{n, for_rows(n, n.required(6))}.to(DType::kFloat32);
  n.out(0, requantize(n, sum, a_scale * b_scale / y_scale, for_rows(n, n.required(7))));
}
void qlinear_conv(NodeImport& n) {
  ValueId sum = integer_conv(n, n.required(0), n.required(2), n.required(3), n.required(5));
  if (n.has(8)) sum = n.op("add", {sum, along_axis(n, n.in(8), sum, 1)});
  auto channels = [&](int i) { return V{n, along_axis(n, n.required(i), sum, 1)}; };
  n.out(0, requantize(n, sum, channels(1) * channels(4) / channels(6), channels(7).id));
}

constexpr auto kQuantizationRows = std::to_array<OpMapping>({
    {"", "QuantizeLinear", 10, quantize_linear},
    {"", "DequantizeLinear", 10, dequantize_linear},
    {"", "DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"", "MatMulInteger", 10, matmul_integer},
    {"", "ConvInteger", 10, conv_integer},
    {"", "QLinearMatMul", 10, qlinear_matmul},
    {"", "QLinearConv", 10, qlinear_conv},
    {"com.microsoft", "QuantizeLinear", 1, quantize_linear},
    {"com.microsoft", "DequantizeLinear", 1, dequantize_linear},
});

}  // namespace

bool is_known_zero(NodeImport& n, ValueId v) {
  if (v == kNone) return true;
  auto elements = n.known_ints(v);
  return elements &&
         std::all_of(elements->begin(), elements->end(), [](int64_t e) { return e == 0; });
}

ValueId dynamically_quantized_matmul(NodeImport& n, ValueId a, ValueId b, ValueId b_scale,
                                     ValueId b_zero) {
  const Quantized q = quantize_by_range(n, V{n, a});
  ValueId sum = integer_matmul(n, q.values.id, q.zero_point.id, b, b_zero);
  return (V{n, n.cast(sum, DType::kFloat32)} * (q.scale * V{n, b_scale})).id;
}

std::span<const OpMapping> quantization_mappings() { return kQuantizationRows; }

}  // namespace tilewright::onnx
