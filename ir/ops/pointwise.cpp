// Operators that work element by element, with numpy broadcasting.
#include <cmath>
#include <numbers>

#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/ops/families.h"
#include "ir/ops/pointwise_gradient.h"

namespace tilewright::ir {
namespace {

TensorType f32(std::vector<Expr> dims) { return {DType::kFloat32, std::move(dims)}; }

Status infer_unary(InferContext& c) {
  c.set_output(0, c.type(0));
  return {};
}
Status infer_watched(InferContext& c) {
  if (c.type(0).dtype != DType::kFloat32)
    return c.error("x is " + to_string(c.type(0)) + ", expected f32");
  return infer_unary(c);
}
Status infer_test(InferContext& c) {
  c.set_output(0, DType::kBool, c.type(0).dims);
  return {};
}
Status infer_broadcast(InferContext& c, int first, DType dtype) {
  std::vector<Expr> dims = c.type(first).dims;
  for (int i = first + 1; i < c.num_inputs(); ++i) {
    auto joined = c.broadcast(dims, c.type(i).dims);
    if (!joined.ok())
      return c.error("operand shapes " + to_string(c.type(first)) + " and " + to_string(c.type(i)) +
                     ": " + joined.error().message);
    dims = std::move(joined).value();
  }
  c.set_output(0, dtype, std::move(dims));
  return {};
}
Status same_dtypes(InferContext& c, int first) {
  for (int i = first + 1; i < c.num_inputs(); ++i)
    if (c.type(i).dtype != c.type(first).dtype)
      return c.error("operands differ in type: " + to_string(c.type(first)) + " and " +
                     to_string(c.type(i)));
  return {};
}
Status infer_binary(InferContext& c) {
  TW_RETURN_IF_ERROR(same_dtypes(c, 0));
  return infer_broadcast(c, 0, c.type(0).dtype);
}
Status infer_comparison(InferContext& c) {
  TW_RETURN_IF_ERROR(same_dtypes(c, 0));
  return infer_broadcast(c, 0, DType::kBool);
}

template <UnaryOp op>
void compute_unary(ComputeContext& c) {
  c.b.compute(
      c.out(), [&](const Axes& i) { return unary(op, load(c.in(0), i)); }, std::string(name(op)));
}
template <BinaryOp op>
void compute_binary(ComputeContext& c) {
  c.b.compute(
      c.out(), [&](const Axes& i) { return binary(op, c.read(0, i), c.read(1, i)); }, "binary");
}

using Gradient = void (*)(GradientContext&);
using Context = GradientContext;
constexpr DType kFloat = DType::kFloat32;
constexpr Gradient kZero = [](Context&) {};  // constant but for steps

template <UnaryOp op>
OpDef unary_op(std::string_view op_name, std::string_view summary, Gradient gradient = nullptr) {
  const bool test = op == UnaryOp::kIsNan || op == UnaryOp::kIsInf;
  return {.name = op_name,
          .summary = summary,
          .operands = {{"x"}},
          .fusion = FusionKind::kPointwise,
          .costly = is_costly(op),
          .infer_type = test ? infer_test : infer_unary,
          .compute = compute_unary<op>,
          .gradient = gradient,
          .example = {.inputs = {op == UnaryOp::kNot ? TensorType{DType::kBool, {3, 37}}
                                                     : f32({3, 37})}},
          .source = kOnnx};
}
template <BinaryOp op>
OpDef binary_op(std::string_view op_name, std::string_view summary, DType example = DType::kFloat32,
                Gradient gradient = nullptr) {
  return {.name = op_name,
          .summary = summary,
          .operands = {{"a"}, {"b"}},
          .fusion = FusionKind::kPointwise,
          .costly = op == BinaryOp::kDiv || op == BinaryOp::kPow,
          .broadcasts = true,
          .infer_type = op >= BinaryOp::kEq ? infer_comparison : infer_binary,
          .compute = compute_binary<op>,
          .gradient = gradient,
          .example = {.inputs = {{example, {3, 17}}, {example, {3, 1}}}},
          .source = kOnnx};
}

// relu keeps NaN: x < 0 ? 0 : x.
void compute_relu(ComputeContext& c) {
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr x = load(c.in(0), i);
        return select(x < constant(0, x.dtype()), constant(0, x.dtype()), x);
      },
      "relu");
}
Status infer_clip(InferContext& c) {
  for (int i : {1, 2})
    if (c.has(i) && c.type(i).dtype != c.type(0).dtype)
      return c.error("bound is " + to_string(c.type(i)) + ", x is " + to_string(c.type(0)));
  return infer_unary(c);
}
// Like min(max(x, low), high), but NaN in x stays, and one as a bound is none: each step keeps x
// unless it is beyond the bound. A bound that is absent limits nothing, infinities neither.
void compute_clip(ComputeContext& c) {
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr x = load(c.in(0), i);
        auto bound = [&](int operand) {
          return load(c.in(operand), Axes(static_cast<size_t>(c.rank(operand)), Expr(0)));
        };
        if (c.has(1)) {
          Expr low = bound(1);
          x = select(x < low, low, x);
        }
        if (c.has(2)) {
          Expr high = bound(2);
          x = select(x > high, high, x);
        }
        return x;
      },
      "clip");
}
Status infer_where(InferContext& c) {
  if (c.type(0).dtype != DType::kBool)
    return c.error("condition is " + to_string(c.type(0)) + ", expected bool");
  TW_RETURN_IF_ERROR(same_dtypes(c, 1));
  return infer_broadcast(c, 0, c.type(1).dtype);
}
void compute_where(ComputeContext& c) {
  c.b.compute(
      c.out(), [&](const Axes& i) { return select(c.read(0, i), c.read(1, i), c.read(2, i)); },
      "where");
}
// Shifts of at least the width (and negative ones) leave nothing but the sign.
void compute_shift_right(ComputeContext& c) {
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr a = c.read(0, i), b = c.read(1, i);
        if (is_signed_integer(a.dtype())) {
          const Expr most = constant(8 * byte_size(a.dtype()) - 1, a.dtype());
          b = select(logical_or(b<constant(0, a.dtype()), b> most), most, b);
        }
        return binary(BinaryOp::kShr, a, b);
      },
      "shift_right");
}
std::vector<OpDef> unary_family() {
  return {
      unary_op<UnaryOp::kNeg>("neg", "-x", [](Context& c) { c.add(0, c.dy() * -1.0); }),
      unary_op<UnaryOp::kNot>("not", "logical not; bitwise for integers"),
      unary_op<UnaryOp::kAbs>("abs", "|x|",
                              [](Context& c) {
                                c.add(0,
                                      where(less(c.in(0), 0), apply("neg", c.dy()),
                                            where(greater(c.in(0), 0), c.dy(), c.dy().number(0))));
                              }),
      unary_op<UnaryOp::kSqrt>("sqrt", "square root",
                               [](Context& c) { c.add(0, c.dy() * 0.5 / c.out()); }),
      unary_op<UnaryOp::kExp>("exp", "e to the x", [](Context& c) { c.add(0, c.dy() * c.out()); }),
      unary_op<UnaryOp::kLog>("log", "natural logarithm",
                              [](Context& c) { c.add(0, c.dy() / c.in(0)); }),
      unary_op<UnaryOp::kSin>("sin", "sine of radians",
                              [](Context& c) { c.add(0, c.dy() * apply("cos", c.in(0))); }),
      unary_op<UnaryOp::kCos>(
          "cos", "cosine of radians",
          [](Context& c) { c.add(0, apply("neg", c.dy() * apply("sin", c.in(0)))); }),
      unary_op<UnaryOp::kTan>("tan", "tangent of radians",
                              [](Context& c) { c.add(0, c.dy() * (1.0 + c.out() * c.out())); }),
      unary_op<UnaryOp::kAsin>(
          "asin", "arc sine",
          [](Context& c) { c.add(0, c.dy() / apply("sqrt", 1.0 - c.in(0) * c.in(0))); }),
      unary_op<UnaryOp::kAcos>("acos", "arc cosine",
                               [](Context& c) {
                                 c.add(0, apply("neg",
                                                c.dy() / apply("sqrt", 1.0 - c.in(0) * c.in(0))));
                               }),
      unary_op<UnaryOp::kAtan>("atan", "arc tangent",
                               [](Context& c) { c.add(0, c.dy() / (1.0 + c.in(0) * c.in(0))); }),
      unary_op<UnaryOp::kSinh>("sinh", "hyperbolic sine",
                               [](Context& c) { c.add(0, c.dy() * apply("cosh", c.in(0))); }),
      unary_op<UnaryOp::kCosh>("cosh", "hyperbolic cosine",
                               [](Context& c) { c.add(0, c.dy() * apply("sinh", c.in(0))); }),
      unary_op<UnaryOp::kTanh>("tanh", "hyperbolic tangent",
                               [](Context& c) { c.add(0, c.dy() * (1.0 - c.out() * c.out())); }),
      unary_op<UnaryOp::kAsinh>(
          "asinh", "inverse hyperbolic sine",
          [](Context& c) { c.add(0, c.dy() / apply("sqrt", 1.0 + c.in(0) * c.in(0))); }),
      unary_op<UnaryOp::kAcosh>(
          "acosh", "inverse hyperbolic cosine",
          [](Context& c) { c.add(0, c.dy() / apply("sqrt", c.in(0) * c.in(0) - 1.0)); }),
      unary_op<UnaryOp::kAtanh>("atanh", "inverse hyperbolic tangent",
                                [](Context& c) { c.add(0, c.dy() / (1.0 - c.in(0) * c.in(0))); }),
      unary_op<UnaryOp::kErf>("erf", "Gauss error function",
                              [](Context& c) {
                                c.add(0, c.dy() * (2 / std::sqrt(std::numbers::pi)) *
                                             apply("exp", apply("neg", c.in(0) * c.in(0))));
                              }),
      unary_op<UnaryOp::kExpm1>("expm1", "exp(x) - 1, without cancellation near 0",
                                [](Context& c) { c.add(0, c.dy() * (c.out() + 1.0)); }),
      unary_op<UnaryOp::kLog1p>("log1p", "log(1 + x), without rounding 1 + x",
                                [](Context& c) { c.add(0, c.dy() / (1.0 + c.in(0))); }),
      unary_op<UnaryOp::kSigmoid>("sigmoid", "1 / (1 + exp(-x))",
                                  [](Context& c) { c.add(0, c.dy() * c.out() * (1.0 - c.out())); }),
      unary_op<UnaryOp::kFloor>("floor", "largest integer not above x", kZero),
      unary_op<UnaryOp::kCeil>("ceil", "smallest integer not below x", kZero),
      unary_op<UnaryOp::kRoundEven>("round", "nearest integer, halves to even", kZero),
      unary_op<UnaryOp::kTrunc>("trunc", "integer part", kZero),
      [] {
        OpDef op = unary_op<UnaryOp::kWatched>(
            "watched", "x; the run notes whether an element is an infinity or NaN");
        op.infer_type = infer_watched;
        op.source = "tilewright";
        return op;
      }(),
      unary_op<UnaryOp::kIsNan>("is_nan", "x is NaN"),
      unary_op<UnaryOp::kIsInf>("is_inf", "x is an infinity"),
  };
}
// Piecewise linear ones.
std::vector<OpDef> limiting_family() {
  return {
      {.name = "relu",
       .summary = "max(x, 0), NaN kept",
       .operands = {{"x"}},
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_unary,
       .compute = compute_relu,
       .gradient = gradient_of_relu,
       .example = {.inputs = {f32({5, 7})}},
       .source = kOnnx},
      {.name = "clip",
       .summary =
           "x limited to [low, high], by low first: where low > high all is high; a bound that is "
           "absent or NaN limits nothing, and NaN in x stays",
       .operands = {{"x"}, {"low", OperandDef::kOptional}, {"high", OperandDef::kOptional}},
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_clip,
       .compute = compute_clip,
       .gradient = gradient_of_clip,
       .example = {.inputs = {f32({5, 7}), f32({}), f32({})}, .values = {{}, {-0.5}, {0.5}}},
       .source = kOnnx},
  };
}
std::vector<OpDef> binary_family() {
  return {
      binary_op<BinaryOp::kAdd>("add", "a + b", kFloat,
                                [](Context& c) {
                                  c.add(0, c.dy());
                                  c.add(1, c.dy());
                                }),
      binary_op<BinaryOp::kSub>("sub", "a - b", kFloat,
                                [](Context& c) {
                                  c.add(0, c.dy());
                                  c.add(1, apply("neg", c.dy()));
                                }),
      binary_op<BinaryOp::kMul>("mul", "a * b", kFloat,
                                [](Context& c) {
                                  c.add(0, c.dy() * c.in(1));
                                  c.add(1, c.dy() * c.in(0));
                                }),
      binary_op<BinaryOp::kDiv>("div", "a / b; integers towards zero, and by 0 as by 1", kFloat,
                                [](Context& c) {
                                  c.add(0, c.dy() / c.in(1));
                                  c.add(1, apply("neg", c.dy() * c.out() / c.in(1)));
                                }),
      binary_op<BinaryOp::kFloorMod>(
          "mod", "remainder with the sign of b; of integers, 0 by 0", kFloat,
          [](Context& c) {
            c.add(0, c.dy());
            c.add(1, apply("neg", c.dy() * apply("floor", c.in(0) / c.in(1))));
          }),
      binary_op<BinaryOp::kTruncMod>(
          "fmod", "remainder with the sign of a; of integers, 0 by 0", kFloat,
          [](Context& c) {
            c.add(0, c.dy());
            c.add(1, apply("neg", c.dy() * apply("trunc", c.in(0) / c.in(1))));
          }),
      binary_op<BinaryOp::kPow>("pow", "a to the b", kFloat,
                                [](Context& c) { gradient_of_pow(c); }),
      binary_op<BinaryOp::kMin>("min", "smaller of a and b, NaN when either is", kFloat,
                                [](Context& c) { gradient_of_extreme(c, "less"); }),
      binary_op<BinaryOp::kMax>("max", "larger of a and b, NaN when either is", kFloat,
                                [](Context& c) { gradient_of_extreme(c, "greater"); }),
      binary_op<BinaryOp::kAnd>("and", "logical and; bitwise for integers", DType::kBool),
      binary_op<BinaryOp::kOr>("or", "logical or; bitwise for integers", DType::kBool),
      binary_op<BinaryOp::kXor>("xor", "exclusive or; bitwise for integers", DType::kBool),
      binary_op<BinaryOp::kShl>("shift_left", "a * 2^b, bits beyond the type lost", DType::kUInt32),
      [] {
        OpDef op = binary_op<BinaryOp::kShr>("shift_right", "a / 2^b rounded down", DType::kUInt32);
        op.compute = compute_shift_right;
        return op;
      }(),
      binary_op<BinaryOp::kEq>("equal", "a == b"),
      binary_op<BinaryOp::kNe>("not_equal", "a != b"),
      binary_op<BinaryOp::kLt>("less", "a < b"),
      binary_op<BinaryOp::kLe>("less_equal", "a <= b"),
      binary_op<BinaryOp::kGt>("greater", "a > b"),
      binary_op<BinaryOp::kGe>("greater_equal", "a >= b"),
      {.name = "where",
       .summary = "condition ? a : b",
       .operands = {{"condition"}, {"a"}, {"b"}},
       .fusion = FusionKind::kPointwise,
       .broadcasts = true,
       .infer_type = infer_where,
       .compute = compute_where,
       .gradient = gradient_of_where,
       .example = {.inputs = {{DType::kBool, {3, 1}}, f32({3, 5}), f32({5})}},
       .source = kOnnx},
  };
}

}  // namespace

const std::vector<OpDef>& pointwise_ops() {
  static const auto* const ops = [] {
    auto* all = new std::vector<OpDef>(unary_family());
    for (auto* family : {limiting_family, binary_family})
      for (OpDef& op : family()) all->push_back(std::move(op));
    return all;
  }();
  return *ops;
}

}  // namespace tilewright::ir
