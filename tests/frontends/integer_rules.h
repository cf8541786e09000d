// Rounding rules as they are written down for operators whose results are integers, in numbers that
// are wider than any that the operators compute with.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/frontends/run_model.h"

namespace tilewright {

using Numbers = std::vector<double>;
using Operands = std::vector<Numbers>;
using Ints = std::vector<int64_t>;
using Real = long double;

// How a real number becomes a whole one.
enum class Rounding { kExact, kTowardZero, kHalfToEven, kDown, kUp };
// What becomes of whole numbers that the type does not have.
enum class Beyond { kNothing, kWraps, kSaturates };

struct Row {
  // A name, and what is said of it: from where the rule is.
  std::string op;
  DType result = DType::kInt32;
  Rounding rounding = Rounding::kExact;
  Beyond beyond = Beyond::kNothing;
  const char* source = "";
  std::vector<Operand> operands;
  // The results as real numbers, before they are rounded.
  std::function<std::vector<Real>(const Operands&)> reals;
  NodeAttributes attributes = {};
  int64_t opset = 21;
};
inline void PrintTo(const Row& r, std::ostream* out) { *out << r.op << " to " << name(r.result); }

// --- numbers of a type -------------------------------------------------------------------------

struct Range {
  Real low, high;
};
inline Range range_of(DType t) {
  const int bits = 8 * byte_size(t);
  const Real half = std::ldexp(Real{1}, bits - 1);
  return is_unsigned(t) ? Range{0, 2 * half - 1} : Range{-half, half - 1};
}
inline Real rounded(Real v, Rounding how) {
  switch (how) {
    case Rounding::kExact: return v;
    case Rounding::kTowardZero: return std::trunc(v);
    case Rounding::kHalfToEven: return std::nearbyint(v);
    case Rounding::kDown: return std::floor(v);
    case Rounding::kUp: return std::ceil(v);
  }
  return v;
}
inline Real in_range(Real v, DType t, Beyond what) {
  if (is_float(t) || what == Beyond::kNothing) return v;
  const Range r = range_of(t);
  if (std::isnan(v)) return 0;
  if (what == Beyond::kSaturates) return std::clamp(v, r.low, r.high);
  const Real values = r.high - r.low + 1;
  const Real above = std::fmod(v - r.low, values);
  return above + r.low + (above < 0 ? values : 0);
}

// Ends of the type, numbers around 0 and around the middle, both signs.
inline Numbers integers(DType t) {
  const Range r = range_of(t);
  Numbers v{0, 1, 2, 3, 5, 7, 10, 99, 100, 101, 127};
  // Doubles hold the ends of types of 64 bits only roughly: these are left out.
  if (byte_size(t) < 8)
    for (int off : {0, 1, 2}) {
      v.push_back(static_cast<double>(r.low) + off);
      v.push_back(static_cast<double>(r.high) - off);
    }
  if (!is_unsigned(t))
    for (double x : {-1, -2, -3, -5, -7, -50, -99, -128}) v.push_back(x);
  return v;
}
// Halves, what lies beside them, ends of small types, and what no integer type has.
inline Numbers fractions() {
  Numbers v{0.0, -0.0, 1e-7, -1e-7, 0.49999997, 1e9, -1e9, 3e38, -3e38, HUGE_VAL, -HUGE_VAL};
  for (double whole : {0.0, 1.0, 2.0, 3.0, 126.0, 127.0, 128.0, 254.0, 255.0, 32767.0, 65535.0})
    for (double off : {-0.75, -0.5, -0.25, 0.25, 0.5, 0.75})
      for (double sign : {1.0, -1.0}) v.push_back(sign * (whole + off));
  return v;
}
inline Operand given(DType t, Shape shape, const Numbers& values) {
  return {tensor_of(t, shape, values), false};
}
inline Operand known(DType t, Shape shape, const Numbers& values) {
  return {tensor_of(t, shape, values), true};
}
inline Operand list(DType t, const Numbers& values) {
  return given(t, {static_cast<int64_t>(values.size())}, values);
}

// --- rules -------------------------------------------------------------------------------------

// Of a pair of operands of one length, or of one operand, element by element.
template <typename F>
auto each(F f) {
  return [f](const Operands& x) {
    std::vector<Real> y;
    for (size_t i = 0; i < x[0].size(); ++i) {
      if constexpr (std::is_invocable_v<F, Real, Real>)
        y.push_back(f(Real{x[0][i]}, Real{x[1][i % x[1].size()]}));
      else
        y.push_back(f(Real{x[0][i]}));
    }
    return y;
  };
}
// Of rows of four elements.
template <typename F>
auto each_row(F f) {
  return [f](const Operands& x) {
    std::vector<Real> y;
    for (size_t i = 0; i + 4 <= x[0].size(); i += 4)
      y.push_back(f(std::vector<Real>(x[0].begin() + static_cast<long>(i),
                                      x[0].begin() + static_cast<long>(i) + 4)));
    return y;
  };
}
inline Real sum(const std::vector<Real>& row) {
  Real s = 0;
  for (Real v : row) s += v;
  return s;
}
// The same as a type holds it, wrapping.
inline std::function<Real(const std::vector<Real>&)> wrapped_sum(DType t) {
  return [t](const std::vector<Real>& row) { return in_range(sum(row), t, Beyond::kWraps); };
}

// ONNX Resize along one axis: positions, weights and borders as its operator text has them.
struct Resampling {
  std::string mode, coordinates;
  bool antialias;
};
inline Real kernel(const std::string& mode, Real x) {
  x = std::abs(x);
  if (mode == "linear") return std::max(Real{0}, 1 - x);
  const Real a = -0.75;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
inline std::vector<Real> resampled(const std::vector<Real>& x, int64_t out, const Resampling& r) {
  const auto in = static_cast<int64_t>(x.size());
  const Real scale = Real(out) / Real(in), shrink = r.antialias ? std::min(scale, Real{1}) : 1;
  std::vector<Real> y;
  for (int64_t o = 0; o < out; ++o) {
    const Real p = r.coordinates == "asymmetric"      ? Real(o) / scale
                   : r.coordinates == "align_corners" ? Real(o) * Real(in - 1) / Real(out - 1)
                                                      : (Real(o) + 0.5L) / scale - 0.5L;
    const auto reach = static_cast<int64_t>(std::ceil(2 / shrink)) + 1;
    Real total = 0, weights = 0;
    for (auto q = static_cast<int64_t>(std::floor(p)) - reach; Real(q) <= p + Real(reach); ++q) {
      const Real w = kernel(r.mode, (Real(q) - p) * shrink);
      total += w * x[static_cast<size_t>(std::clamp<int64_t>(q, 0, in - 1))];
      weights += w;
    }
    y.push_back(total / weights);
  }
  return y;
}
// Resizes both dimensions of a matrix. The weights are fractions without an exact binary form, so a sum
// within their error of a half or an integer counts as that number.
inline std::function<std::vector<Real>(const Operands&)> resize_rule(Shape in, Shape out,
                                                                     Resampling r) {
  return [=](const Operands& x) {
    const auto at = [](int64_t i) { return static_cast<size_t>(i); };
    std::vector<Real> wide, y(at(out[0] * out[1]));
    for (int64_t i = 0; i < in[0]; ++i)
      for (Real v :
           resampled({x[0].begin() + i * in[1], x[0].begin() + (i + 1) * in[1]}, out[1], r))
        wide.push_back(v);
    for (int64_t j = 0; j < out[1]; ++j) {
      std::vector<Real> column;
      for (int64_t i = 0; i < in[0]; ++i) column.push_back(wide[at(i * out[1] + j)]);
      column = resampled(column, out[0], r);
      for (int64_t i = 0; i < out[0]; ++i)
        y[at(i * out[1] + j)] = std::nearbyint(column[at(i)] * 0x1p30L) / 0x1p30L;
    }
    return y;
  };
}

// --- the rows of operators ---------------------------------------------------------------------

inline constexpr const char *kNumpy = "NumPy, as onnx.reference has it",
                            *kStandard = "the operator's text in the standard";
inline const std::vector<DType> kIntegers{DType::kInt8,   DType::kUInt8, DType::kInt16,
                                          DType::kUInt16, DType::kInt32, DType::kUInt32,
                                          DType::kInt64,  DType::kUInt64};
// Each appends its own: integer_rows_conversion.cpp and integer_rows_arithmetic.cpp.
void add_resizes(std::vector<Row>& rows);
void add_samples(std::vector<Row>& rows);
void add_casts(std::vector<Row>& rows);
void add_quantised(std::vector<Row>& rows);
void add_quantised_products(std::vector<Row>& rows);
void add_arithmetic(std::vector<Row>& rows);
void add_powers(std::vector<Row>& rows);
void add_reductions(std::vector<Row>& rows);
void add_products(std::vector<Row>& rows);
void add_roundings(std::vector<Row>& rows);

}  // namespace tilewright
