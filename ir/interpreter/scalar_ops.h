// What every scalar operation of the loop IR means, in plain C++. The interpreter is made of these.
//
// A value is held in the widest type of its family: signed integers and bool in int64, unsigned
// ones in uint64 (both always within the range of their type), f32, f16 and bf16 in float (always
// representable in their type), f64 in double. Where nodes.h leaves a case open, this is the
// answer: an integer power with a negative exponent is the true quotient rounded towards zero (0
// for base 0); a shift by the width or more shifts everything out; transcendental functions of f32,
// f16 and bf16 are those of double, rounded once.
#pragma once

#include <cmath>
#include <limits>

#include "ir/loops/float16.h"
#include "ir/loops/nodes.h"

namespace tilewright::ir::interpreter {

// A register. Which member counts follows from the type that the instruction was compiled for.
union Slot {
  // Integers with sign and bool; without sign; f32, f16 and bf16; f64.
  int64_t i;
  uint64_t u;
  float f;
  double d;
};

// The C++ type that holds values of an element type, and the slot's member for it.
template <DType T>
using ValueOf = std::conditional_t<
    T == DType::kFloat64, double,
    std::conditional_t<is_float(T), float, std::conditional_t<is_unsigned(T), uint64_t, int64_t>>>;

// The slot's member that holds values of the type.
template <DType T>
ValueOf<T> get(const Slot& s) {
  if constexpr (T == DType::kFloat64)
    return s.d;
  else if constexpr (is_float(T))
    return s.f;
  else if constexpr (is_unsigned(T))
    return s.u;
  else
    return s.i;
}
template <DType T>
void set(Slot& s, ValueOf<T> v) {
  if constexpr (T == DType::kFloat64)
    s.d = v;
  else if constexpr (is_float(T))
    s.f = v;
  else if constexpr (is_unsigned(T))
    s.u = v;
  else
    s.i = v;
}

// Wraps to the range of an integer type; to bool: x != 0.
template <DType T>
ValueOf<T> wrapped(uint64_t v) {
  if constexpr (T == DType::kInt8)
    return static_cast<int8_t>(v);
  else if constexpr (T == DType::kInt16)
    return static_cast<int16_t>(v);
  else if constexpr (T == DType::kInt32)
    return static_cast<int32_t>(v);
  else if constexpr (T == DType::kInt64)
    return static_cast<int64_t>(v);
  else if constexpr (T == DType::kUInt8)
    return static_cast<uint8_t>(v);
  else if constexpr (T == DType::kUInt16)
    return static_cast<uint16_t>(v);
  else if constexpr (T == DType::kUInt32)
    return static_cast<uint32_t>(v);
  else if constexpr (T == DType::kBool)
    return v != 0;
  else
    return v;
}
// Rounds to a floating-point type.
template <DType T, typename X>
ValueOf<T> rounded(X x) {
  if constexpr (T == DType::kFloat16)
    return Half::to_float(Half::from_double(x));
  else if constexpr (T == DType::kBFloat16)
    return BFloat::to_float(BFloat::from_double(x));
  else
    return static_cast<ValueOf<T>>(x);
}

// Of the enumeration's order; the result of a comparison is bool.
constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq; }
constexpr bool is_division(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod ||
         op == BinaryOp::kTruncMod;
}

// Whether an operation exists for a type. Total switches: a new operation does not compile until it
// is placed here.
constexpr bool has_meaning(BinaryOp op, DType t) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe: return true;
    case BinaryOp::kMaxNumber: return is_float(t);
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kTruncMod:
    case BinaryOp::kPow: return t != DType::kBool;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor: return !is_float(t);
    case BinaryOp::kShl:
    case BinaryOp::kShr: return is_integer(t);
  }
  return false;
}
constexpr bool has_meaning(UnaryOp op, DType t) {
  switch (op) {
    case UnaryOp::kNeg:
    case UnaryOp::kAbs:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRoundEven:
    case UnaryOp::kTrunc:
    case UnaryOp::kRounded:
    case UnaryOp::kWatched:
    case UnaryOp::kIsNan:
    case UnaryOp::kIsInf: return t != DType::kBool;
    case UnaryOp::kNot: return !is_float(t);
    case UnaryOp::kSqrt:
    case UnaryOp::kExp:
    case UnaryOp::kLog:
    case UnaryOp::kSin:
    case UnaryOp::kCos:
    case UnaryOp::kTan:
    case UnaryOp::kAsin:
    case UnaryOp::kAcos:
    case UnaryOp::kAtan:
    case UnaryOp::kSinh:
    case UnaryOp::kCosh:
    case UnaryOp::kTanh:
    case UnaryOp::kAsinh:
    case UnaryOp::kAcosh:
    case UnaryOp::kAtanh:
    case UnaryOp::kErf:
    case UnaryOp::kExpm1:
    case UnaryOp::kLog1p:
    case UnaryOp::kSigmoid: return is_float(t);
  }
  return false;
}

template <DType T>
ValueOf<T> integer_power(ValueOf<T> a, ValueOf<T> b) {
  if constexpr (!is_unsigned(T)) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, base = static_cast<uint64_t>(a);
  for (uint64_t n = static_cast<uint64_t>(b); n; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return wrapped<T>(result);
}

// Of integers, b is not 0.
template <BinaryOp Op, DType T>
ValueOf<T> divide(ValueOf<T> a, ValueOf<T> b) {
  if constexpr (is_float(T)) {
    if constexpr (Op == BinaryOp::kDiv)
      return rounded<T>(a / b);
    else if constexpr (Op == BinaryOp::kFloorDiv)
      return rounded<T>(std::floor(rounded<T>(a / b)));
    else if constexpr (Op == BinaryOp::kTruncMod)
      return rounded<T>(std::fmod(a, b));
    else
      return rounded<T>(a - rounded<T>(std::floor(rounded<T>(a / b)) * b));
  } else if constexpr (is_unsigned(T)) {
    return Op == BinaryOp::kDiv || Op == BinaryOp::kFloorDiv ? a / b : a % b;
  } else {
    constexpr bool kQuotient = Op == BinaryOp::kDiv || Op == BinaryOp::kFloorDiv;
    if (b == -1) return kQuotient ? wrapped<T>(0 - static_cast<uint64_t>(a)) : 0;
    const int64_t q = a / b, r = a % b;
    const bool adjust =
        (Op == BinaryOp::kFloorDiv || Op == BinaryOp::kFloorMod) && r != 0 && (r < 0) != (b < 0);
    return kQuotient ? q - adjust : adjust ? r + b : r;
  }
}

template <BinaryOp Op, DType T>
ValueOf<T> shift(ValueOf<T> a, ValueOf<T> b) {
  constexpr uint64_t kBits = 8 * static_cast<uint64_t>(byte_size(T));
  const bool all_out = static_cast<uint64_t>(b) >= kBits;
  if constexpr (Op == BinaryOp::kShl)
    return all_out ? 0 : wrapped<T>(static_cast<uint64_t>(a) << b);
  else if constexpr (is_unsigned(T))
    return all_out ? 0 : a >> b;
  else
    return a >> (all_out ? 63 : b);
}

template <BinaryOp Op, DType T>
ValueOf<T> apply(ValueOf<T> a, ValueOf<T> b) {  // all but comparisons
  constexpr bool kFloat = is_float(T);
  auto u = [](ValueOf<T> v) { return static_cast<uint64_t>(v); };
  if constexpr (is_division(Op))
    return divide<Op, T>(a, b);
  else if constexpr (Op == BinaryOp::kAdd) {
    if constexpr (kFloat)
      return rounded<T>(a + b);
    else
      return wrapped<T>(u(a) + u(b));
  } else if constexpr (Op == BinaryOp::kSub) {
    if constexpr (kFloat)
      return rounded<T>(a - b);
    else
      return wrapped<T>(u(a) - u(b));
  } else if constexpr (Op == BinaryOp::kMul) {
    if constexpr (kFloat)
      return rounded<T>(a * b);
    else
      return wrapped<T>(u(a) * u(b));
  } else if constexpr (Op == BinaryOp::kMin)
    return a < b || a != a ? a : b;
  else if constexpr (Op == BinaryOp::kMax)
    return a > b || a != a ? a : b;
  else if constexpr (Op == BinaryOp::kMaxNumber)
    return b > a ? b : a;
  else if constexpr (Op == BinaryOp::kPow) {
    if constexpr (kFloat)
      return rounded<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    else
      return integer_power<T>(a, b);
  } else if constexpr (Op == BinaryOp::kAnd)
    return wrapped<T>(u(a) & u(b));
  else if constexpr (Op == BinaryOp::kOr)
    return wrapped<T>(u(a) | u(b));
  else if constexpr (Op == BinaryOp::kXor)
    return wrapped<T>(u(a) ^ u(b));
  else
    return shift<Op, T>(a, b);
}
template <BinaryOp Op, DType T>
bool compare(ValueOf<T> a, ValueOf<T> b) {
  if constexpr (Op == BinaryOp::kEq)
    return a == b;
  else if constexpr (Op == BinaryOp::kNe)
    return a != b;
  else if constexpr (Op == BinaryOp::kLt)
    return a < b;
  else if constexpr (Op == BinaryOp::kLe)
    return a <= b;
  else if constexpr (Op == BinaryOp::kGt)
    return a > b;
  else
    return a >= b;
}

// Elementary functions in double, from the C library: the reference for vector_math.h's bounds.
inline double transcendental(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::kExp: return std::exp(x);
    case UnaryOp::kLog: return std::log(x);
    case UnaryOp::kSin: return std::sin(x);
    case UnaryOp::kCos: return std::cos(x);
    case UnaryOp::kTan: return std::tan(x);
    case UnaryOp::kAsin: return std::asin(x);
    case UnaryOp::kAcos: return std::acos(x);
    case UnaryOp::kAtan: return std::atan(x);
    case UnaryOp::kSinh: return std::sinh(x);
    case UnaryOp::kCosh: return std::cosh(x);
    case UnaryOp::kTanh: return std::tanh(x);
    case UnaryOp::kAsinh: return std::asinh(x);
    case UnaryOp::kAcosh: return std::acosh(x);
    case UnaryOp::kAtanh: return std::atanh(x);
    case UnaryOp::kErf: return std::erf(x);
    case UnaryOp::kExpm1: return std::expm1(x);
    case UnaryOp::kLog1p: return std::log1p(x);
    // exp(x), where it is so small, keeps what 1 / exp(-x) would lose to an infinity.
    case UnaryOp::kSigmoid: return x < -40 ? std::exp(x) : 1 / (1 + std::exp(-x));
    case UnaryOp::kNeg:
    case UnaryOp::kNot:
    case UnaryOp::kAbs:
    case UnaryOp::kSqrt:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRoundEven:
    case UnaryOp::kTrunc:
    case UnaryOp::kRounded:
    case UnaryOp::kWatched:
    case UnaryOp::kIsNan:
    case UnaryOp::kIsInf: break;
  }
  return x;
}

template <UnaryOp Op, DType T>
ValueOf<T> apply(ValueOf<T> x) {  // all but isnan and isinf
  if constexpr (!is_float(T)) {
    if constexpr (Op == UnaryOp::kNeg)
      return wrapped<T>(0 - static_cast<uint64_t>(x));
    else if constexpr (Op == UnaryOp::kNot)
      return T == DType::kBool ? !x : wrapped<T>(~static_cast<uint64_t>(x));
    else if constexpr (Op == UnaryOp::kAbs)
      return x < ValueOf<T>(0) ? wrapped<T>(0 - static_cast<uint64_t>(x)) : x;
    else
      return x;  // rounding
  } else if constexpr (Op == UnaryOp::kNeg)
    return -x;
  else if constexpr (Op == UnaryOp::kAbs)
    return std::fabs(x);
  else if constexpr (Op == UnaryOp::kSqrt)
    return rounded<T>(std::sqrt(x));
  else if constexpr (Op == UnaryOp::kFloor)
    return rounded<T>(std::floor(x));
  else if constexpr (Op == UnaryOp::kCeil)
    return rounded<T>(std::ceil(x));
  else if constexpr (Op == UnaryOp::kRoundEven)
    return rounded<T>(std::nearbyint(x));
  else if constexpr (Op == UnaryOp::kTrunc)
    return rounded<T>(std::trunc(x));
  else
    return rounded<T>(transcendental(Op, static_cast<double>(x)));
}

// Float to integer: saturates at the ends, NaN becomes 0.
template <DType T>
ValueOf<T> saturated(double x) {
  if (x != x) return 0;
  constexpr int kBits = 8 * byte_size(T) - (is_unsigned(T) ? 0 : 1);
  const double end = std::ldexp(1.0, kBits);
  constexpr uint64_t kMax = kBits == 64 ? ~uint64_t{0} : (uint64_t{1} << (kBits % 64)) - 1;
  if (x >= end) return static_cast<ValueOf<T>>(kMax);
  if constexpr (is_unsigned(T))
    return x <= 0 ? 0 : static_cast<uint64_t>(x);
  else
    return x <= -end ? static_cast<int64_t>(~kMax) : static_cast<int64_t>(x);
}

template <DType From, DType To>
ValueOf<To> converted(ValueOf<From> x) {
  if constexpr (To == DType::kBool)
    return x != 0;
  else if constexpr (is_float(To) && is_float(From))
    return rounded<To>(x);
  else if constexpr (To == DType::kFloat64)
    return static_cast<double>(x);
  else if constexpr (is_float(To))
    return rounded<To>(static_cast<float>(x));
  else if constexpr (is_float(From))
    return saturated<To>(x);
  else
    return wrapped<To>(static_cast<uint64_t>(x));
}

}  // namespace tilewright::ir::interpreter
