// Operators that keep each element, in its own type, another one, or as its bits.
#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

Status infer_cast(InferContext& c) {
  auto to = dtype_from_name(c.attr_string("to"));
  if (!to) return c.unsupported("cast to '" + c.attr_string("to") + "'");
  c.set_output(0, *to, c.type(0).dims);
  return {};
}
// ONNX leaves open what a float out of an integer's range becomes. x86's instructions, and so NumPy
// and ONNX Runtime, give the least number of 32 or 64 bits, low bits of that for narrower types,
// and differ by width and by vector: here it is the nearest number in the range, on every CPU.
void compute_cast(ComputeContext& c) {
  c.b.compute(
      c.out(), [&](const Axes& i) { return cast(c.out()->dtype, load(c.in(0), i)); }, "cast");
}
Status infer_bit_cast(InferContext& c) {
  auto to = dtype_from_name(c.attr_string("to"));
  if (!to) return c.unsupported("cast to '" + c.attr_string("to") + "'");
  if (byte_size(*to) != byte_size(c.type(0).dtype))
    return c.error(to_string(c.type(0)) + " and " + std::string(name(*to)) + " differ in size");
  c.set_output(0, *to, c.type(0).dims);
  return {};
}
// A bool is the byte 0 or 1.
void compute_bit_cast(ComputeContext& c) {
  const DType to = c.out()->dtype;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr x = load(c.in(0), i);
        if (x.dtype() == DType::kBool) x = cast(DType::kUInt8, x);
        if (to == x.dtype()) return x;
        return to == DType::kBool ? cast(to, x) : bitcast(to, x);
      },
      "bit_cast");
}
// What has the type and the shape of x.
Status infer_identity(InferContext& c) {
  c.set_output(0, c.type(0));
  return {};
}
void compute_identity(ComputeContext& c) {
  c.b.compute(c.out(), [&](const Axes& i) { return load(c.in(0), i); }, "identity");
}

// Rounding is passed over: d cast(x) is cast(dx).
void pass_on(GradientContext& c) { c.add(0, c.dy().to(c.in(0).dtype())); }

}  // namespace

const std::vector<OpDef>& conversion_ops() {
  static const TensorType x{DType::kFloat32, {5, 7}};
  static const std::vector<OpDef> ops{
      {.name = "cast",
       .summary =
           "conversion of type: floats to integers towards zero, limited to the range of the type, "
           "NaN to 0; integers to narrower ones by their low bits; to bool all but zero, NaN "
           "too, is true; to narrower floats rounded once, beyond their range infinite",
       .operands = {{"x"}},
       .attributes = {{"to", AttributeKind::kString, "element type by name"}},
       .fusion = FusionKind::kPointwise,
       .retypes = true,
       .infer_type = infer_cast,
       .compute = compute_cast,
       .gradient = pass_on,
       .example = {.inputs = {x}, .attributes = {{"to", std::string("i32")}}},
       .source = kOnnx},
      {.name = "bit_cast",
       .summary = "the bits of x as another type of the same size",
       .operands = {{"x"}},
       .attributes = {{"to", AttributeKind::kString, "element type by name"}},
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_bit_cast,
       .compute = compute_bit_cast,
       .example = {.inputs = {x}, .attributes = {{"to", std::string("i32")}}},
       .source = kOnnx},
      {.name = "identity",
       .summary = "a copy of x",
       .operands = {{"x"}},
       .fusion = FusionKind::kPointwise,
       .retypes = true,
       .infer_type = infer_identity,
       .compute = compute_identity,
       .gradient = pass_on,
       .example = {.inputs = {x}},
       .source = kOnnx},
      {.name = "stop_gradient",
       .summary = "a copy of x whose derivative is taken for zero",
       .operands = {{"x"}},
       .fusion = FusionKind::kPointwise,
       .retypes = true,
       .infer_type = infer_identity,
       .compute = compute_identity,
       .example = {.inputs = {x}},
       .source = "https://docs.jax.dev/en/latest/_autosummary/jax.lax.stop_gradient.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
