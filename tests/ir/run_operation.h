// One operation of the interpreter over arrays of values.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "ir/loops/float16.h"
#include "ir/interpreter/interpreter.h"
#include "ir/loops/nodes.h"

namespace tilewright::ir {

// The element type of an array of T. Halves have none: they are passed as uint16_t, with their
// type.
template <typename T>
inline constexpr DType kTypeOf = DType::kBool;
template <>
inline constexpr DType kTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType kTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kTypeOf<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kTypeOf<uint16_t> = DType::kUInt16;
template <>
inline constexpr DType kTypeOf<uint32_t> = DType::kUInt32;
template <>
inline constexpr DType kTypeOf<uint64_t> = DType::kUInt64;

// out[i] = f(a[i], b[i]) by the interpreter, as scalars and as vectors of 4; both must agree.
template <typename A, typename Out, typename F>
std::vector<Out> run(DType type, DType out_type, std::vector<A> a, std::vector<A> b, F&& f) {
  while (a.size() % 4) {
    a.push_back(a.back());
    b.push_back(b.back());
  }
  const auto count = static_cast<int64_t>(a.size());
  Buffer ba = make_buffer("a", type, {Expr(count)}), bb = make_buffer("b", type, {Expr(count)}),
         out = make_buffer("out", out_type, {Expr(count)});
  Var i("i");
  const Kernel scalar{"scalar",
                      {ba, bb, out},
                      {},
                      for_loop(i, count, store(out, {i}, f(load(ba, {i}), load(bb, {i}))))};
  Expr lanes = ramp(i * Expr(4), 1, 4);
  const Kernel vector{
      "vector",
      {ba, bb, out},
      {},
      for_loop(i, count / 4, store(out, {lanes}, f(load(ba, {lanes}), load(bb, {lanes}))))};
  std::vector<Out> x(a.size()), y(a.size());
  Status s = interpret(scalar, {a.data(), b.data(), x.data()}, {});
  EXPECT_TRUE(s.ok()) << s.error().to_string();
  s = interpret(vector, {a.data(), b.data(), y.data()}, {});
  EXPECT_TRUE(s.ok()) << s.error().to_string();
  // The sign of a NaN is left open.
  auto is_nan = [&](const Out& v) {
    if (out_type == DType::kFloat16) return std::isnan(Half::to_float(static_cast<uint16_t>(v)));
    if (out_type == DType::kBFloat16) return std::isnan(BFloat::to_float(static_cast<uint16_t>(v)));
    return v != v;
  };
  for (size_t n = 0; n < x.size(); ++n)
    EXPECT_TRUE(std::memcmp(&x[n], &y[n], sizeof(Out)) == 0 || (is_nan(x[n]) && is_nan(y[n]))) << n;
  return x;
}
template <typename T>
std::vector<T> binary_of(BinaryOp op, const std::vector<T>& a, const std::vector<T>& b) {
  return run<T, T>(kTypeOf<T>, kTypeOf<T>, a, b, [&](Expr x, Expr y) { return binary(op, x, y); });
}
template <typename T>
std::vector<T> unary_of(UnaryOp op, const std::vector<T>& a) {
  return run<T, T>(kTypeOf<T>, kTypeOf<T>, a, a, [&](Expr x, Expr) { return unary(op, x); });
}
// Equal, the sign of a zero too; any NaN is equal to any other.
inline bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace tilewright::ir
