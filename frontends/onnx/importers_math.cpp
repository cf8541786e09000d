// Element-by-element arithmetic, logic and comparison.
#include <array>
#include <limits>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"
#include "frontends/tensor_files/element_type.h"

namespace tilewright::onnx {
namespace {

using ir::ValueId;

// Lets a graph operator's name be a template argument.
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }
};

template <Name op>
void unary(NodeImport& n) {
  n.out(0, n.op(op.text, {n.required(0)}));
}
void identity(NodeImport& n) {
  if (n.is_sequence(0)) return n.out_sequence(n.sequence(0));
  unary<"identity">(n);
}
template <Name op>
void binary(NodeImport& n) {
  n.out(0, n.op(op.text, {n.required(0), n.required(1)}));
}
template <Name op>
void variadic(NodeImport& n) {
  ValueId v = n.required(0);
  for (int i = 1; i < n.num_inputs(); ++i) v = n.op(op.text, {v, n.required(i)});
  n.out(0, n.num_inputs() == 1 ? n.op("identity", {v}) : v);
}
void mean(NodeImport& n) {
  ValueId v = n.required(0);
  for (int i = 1; i < n.num_inputs(); ++i) v = n.op("add", {v, n.required(i)});
  n.out(0, n.op("div", {v, n.scalar_like(n.num_inputs(), v)}));
}
// The remainder has the sign of b; for floats it is that of fmod, moved by b where the signs
// differ.
void mod(NodeImport& n) {
  V a{n, n.required(0)}, b{n, n.required(1)};
  if (n.int_attr("fmod", 0)) {
    n.out(0, apply("fmod", a, b).id);
    return;
  }
  if (!is_float(a.dtype())) {
    n.out(0, apply("mod", a, b).id);
    return;
  }
  V r = apply("fmod", a, b), zero = a.number(0);
  V differ = apply("xor", apply("less", r, zero), apply("less", b, zero));
  V y = where(differ, r + b, r);
  n.out(0, where(apply("equal", r, zero), where(less(b, 0), a.number(-0.0), zero), y).id);
}
// x to the y in f64, cut off towards zero. A power that is a whole number may come out a little
// beside it: it is taken for one where it is as near as the function is exact.
ValueId integer_of(V x, V y, DType t) {
  const V power = apply("pow", x, y), whole = apply("round", power);
  const V error = apply("abs", power - whole), slack = apply("abs", power) * 0x1p-48;
  return where(apply("less_equal", error, slack), whole, power).to(t).id;
}
// The result has the type of the base.
void pow(NodeImport& n) {
  ValueId x = n.required(0), y = n.required(1);
  const DType t = n.dtype(x);
  auto exponent = n.known_floats(y);
  if (exponent && exponent->size() == 1 && n.rank(y) <= n.rank(x) && is_float(t)) {
    const double e = (*exponent)[0];
    if (e == 1) {
      n.out(0, n.op("identity", {x}));
      return;
    }
    if (e == 2) {
      n.out(0, n.op("mul", {x, x}));
      return;
    }
    if (e == 3) {
      n.out(0, n.op("mul", {n.op("mul", {x, x}), x}));
      return;
    }
    if (e == 0.5) {
      n.out(0, n.op("sqrt", {x}));
      return;
    }
  }
  if (is_float(t)) return n.out(0, n.op("pow", {x, n.cast(y, t)}));
  if (is_float(n.dtype(y)))
    return n.out(0,
                 integer_of(V{n, n.cast(x, DType::kFloat64)}, {n, n.cast(y, DType::kFloat64)}, t));
  // An exponent that has no place in the type of the base is no smaller for it.
  const bool fits = n.dtype(y) == t || byte_size(n.dtype(y)) < byte_size(t);
  const DType work = fits ? t : DType::kInt64;
  n.out(0, n.cast(n.op("pow", {n.cast(x, work), n.cast(y, work)}), t));
}
void bit_shift(NodeImport& n) {
  const std::string d = n.string_attr("direction", "");
  if (d != "LEFT" && d != "RIGHT") n.fail("direction '" + d + "', expected LEFT or RIGHT");
  n.out(0, n.op(d == "LEFT" ? "shift_left" : "shift_right", {n.required(0), n.required(1)}));
}
void reciprocal(NodeImport& n) {
  ValueId x = n.required(0);
  n.out(0, n.op("div", {n.scalar_like(1, x), x}));
}
void sign(NodeImport& n) {
  ValueId x = n.required(0), zero = n.scalar_like(0, x);
  ValueId positive = n.cast(n.op("greater", {x, zero}), n.dtype(x));
  if (is_unsigned(n.dtype(x))) {
    n.out(0, positive);
    return;
  }
  ValueId s = n.op("sub", {positive, n.cast(n.op("less", {x, zero}), n.dtype(x))});
  n.out(0, is_float(n.dtype(x)) ? n.op("where", {n.op("is_nan", {x}), x, s}) : s);
}
void is_inf(NodeImport& n) {
  ValueId x = n.required(0), r = n.op("is_inf", {x});
  if (!n.int_attr("detect_negative", 1))
    r = n.op("and", {r, n.op("greater", {x, n.scalar_like(0, x)})});
  if (!n.int_attr("detect_positive", 1))
    r = n.op("and", {r, n.op("less", {x, n.scalar_like(0, x)})});
  n.out(0, r);
}
void cast_to(NodeImport& n) {
  auto to = dtype_from_onnx(static_cast<int>(n.int_attr("to", 0)));
  if (!to) n.unsupported("cast to element type " + onnx_element_name(n.int_attr("to", 0)));
  ValueId x = n.required(0);
  n.out(0, n.dtype(x) == *to ? n.op("identity", {x}) : n.cast(x, *to));
}
void cast_like(NodeImport& n) {
  ValueId x = n.required(0), like = n.required(1);
  n.out(0, n.dtype(x) == n.dtype(like) ? n.op("identity", {x}) : n.cast(x, n.dtype(like)));
}
// Opsets up to 10 have the bounds as attributes, whose defaults are the largest numbers of f32:
// they limit infinities. Since then a bound that is absent is none, as for the exporters of
// clamp(min=...) and ONNX's reference; ONNX Runtime still limits infinities then.
void clip(NodeImport& n) {
  ValueId x = n.required(0), low = kNone, high = kNone;
  if (n.opset() >= 11) {
    low = n.in(1);
    high = n.in(2);
  } else {
    constexpr double kLargest = std::numeric_limits<float>::max();
    low = n.scalar_like(n.float_attr("min", -kLargest), x);
    high = n.scalar_like(n.float_attr("max", kLargest), x);
  }
  n.out(0, n.op("clip", {x, low, high}));
}
void bit_cast(NodeImport& n) {
  auto to = dtype_from_onnx(static_cast<int>(n.int_attr("to", 0)));
  if (!to) n.unsupported("element type " + onnx_element_name(n.int_attr("to", 0)));
  n.out(0, n.op("bit_cast", {n.required(0)}, {{"to", std::string(name(*to))}}));
}
void select(NodeImport& n) {
  n.out(0, n.op("where", {n.required(0), n.required(1), n.required(2)}));
}

constexpr auto kMathRows = std::to_array<OpMapping>({
    {"", "Abs", 1, unary<"abs">},
    {"", "Neg", 1, unary<"neg">},
    {"", "Not", 1, unary<"not">},
    {"", "Sqrt", 1, unary<"sqrt">},
    {"", "Exp", 1, unary<"exp">},
    {"", "Log", 1, unary<"log">},
    {"", "Sin", 1, unary<"sin">},
    {"", "Cos", 1, unary<"cos">},
    {"", "Tan", 1, unary<"tan">},
    {"", "Asin", 1, unary<"asin">},
    {"", "Acos", 1, unary<"acos">},
    {"", "Atan", 1, unary<"atan">},
    {"", "Sinh", 1, unary<"sinh">},
    {"", "Cosh", 1, unary<"cosh">},
    {"", "Tanh", 1, unary<"tanh">},
    {"", "Asinh", 1, unary<"asinh">},
    {"", "Acosh", 1, unary<"acosh">},
    {"", "Atanh", 1, unary<"atanh">},
    {"", "Erf", 1, unary<"erf">},
    {"", "Floor", 1, unary<"floor">},
    {"", "Ceil", 1, unary<"ceil">},
    {"", "Round", 1, unary<"round">},
    {"", "IsNaN", 1, unary<"is_nan">},
    {"", "BitwiseNot", 18, unary<"not">},
    {"", "Identity", 1, identity},
    {"", "IsInf", 1, is_inf},
    {"", "Add", 7, binary<"add">},
    {"", "Sub", 7, binary<"sub">},
    {"", "Mul", 7, binary<"mul">},
    {"", "Div", 7, binary<"div">},
    {"", "And", 7, binary<"and">},
    {"", "Or", 7, binary<"or">},
    {"", "Xor", 7, binary<"xor">},
    {"", "BitwiseAnd", 18, binary<"and">},
    {"", "BitwiseOr", 18, binary<"or">},
    {"", "BitwiseXor", 18, binary<"xor">},
    {"", "Equal", 7, binary<"equal">},
    {"", "Less", 7, binary<"less">},
    {"", "LessOrEqual", 12, binary<"less_equal">},
    {"", "Greater", 7, binary<"greater">},
    {"", "GreaterOrEqual", 12, binary<"greater_equal">},
    {"", "Max", 1, variadic<"max">},
    {"", "Min", 1, variadic<"min">},
    {"", "Sum", 1, variadic<"add">, Form::kFormula},
    {"", "Mean", 1, mean, Form::kFormula},
    {"", "Mod", 10, mod, Form::kFormula},
    {"", "Pow", 7, pow, Form::kFormula},
    {"", "BitShift", 11, bit_shift},
    {"", "Reciprocal", 1, reciprocal},
    {"", "Sign", 9, sign},
    {"", "Cast", 6, cast_to},
    {"", "CastLike", 15, cast_like},
    {"", "Clip", 6, clip},
    {"", "Where", 9, select},
    {"", "BitCast", 26, bit_cast},
});

}  // namespace

std::span<const OpMapping> math_mappings() { return kMathRows; }

}  // namespace tilewright::onnx
