// Every elementary function against a wider libm, and every width against every other.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/codegen/vector_math_jit.h"

namespace tilewright::cpu {
namespace {

// A function, what to compare it with, and the bounds in units of the last place (ULP).
struct MathCase {
  const char* name;
  MathOp op;
  long double (*reference)(long double);
  double (*narrow_reference)(double);  // accurate enough for float, and faster
  double float_ulp, double_ulp;        // the bounds stated in vector_math.h
  double double_range = INFINITY;      // |x| up to which the bound of double holds
};

void PrintTo(const MathCase& c, std::ostream* out) { *out << c.name; }

const MathCase kCases[] = {
    {"exp", MathOp::kExp, std::exp, std::exp, 2, 4},
    {"log", MathOp::kLog, std::log, std::log, 2, 4},
    {"tanh", MathOp::kTanh, std::tanh, std::tanh, 2, 4},
    {"erf", MathOp::kErf, std::erf, std::erf, 4, 16},
    {"sigmoid", MathOp::kSigmoid,
     [](long double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); },
     [](double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }, 2,
     4},
    {"expm1", MathOp::kExpm1, std::expm1, std::expm1, 2, 16},
    {"log1p", MathOp::kLog1p, std::log1p, std::log1p, 2, 16},
    {"sin", MathOp::kSin, std::sin, std::sin, 2, 16, kLargestDoubleAngle},
    {"cos", MathOp::kCos, std::cos, std::cos, 2, 16, kLargestDoubleAngle},
    {"tan", MathOp::kTan, std::tan, std::tan, 4, 16, kLargestDoubleAngle},
    {"asin", MathOp::kAsin, std::asin, std::asin, 4, 16},
    {"acos", MathOp::kAcos, std::acos, std::acos, 4, 16},
    {"atan", MathOp::kAtan, std::atan, std::atan, 4, 16},
    {"sinh", MathOp::kSinh, std::sinh, std::sinh, 4, 16},
    {"cosh", MathOp::kCosh, std::cosh, std::cosh, 4, 16},
    {"asinh", MathOp::kAsinh, std::asinh, std::asinh, 4, 16},
    {"acosh", MathOp::kAcosh, std::acosh, std::acosh, 4, 16},
    {"atanh", MathOp::kAtanh, std::atanh, std::atanh, 4, 16},
    {"rsqrt", MathOp::kRsqrt, [](long double x) { return 1 / std::sqrt(x); },
     [](double x) { return 1 / std::sqrt(x); }, 2, 2},
};

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
constexpr bool kIsDouble = sizeof(T) == 8;

// Ends of the type, and where branches of the usual algorithms lie: overflow and underflow of exp,
// multiples of pi / 4, an argument near a multiple that is hard to reduce. Both signs.
template <typename T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> v;
  for (T x : {T(0),
              L::infinity(),
              L::quiet_NaN(),
              std::bit_cast<T>(static_cast<BitsOf<T>>(std::bit_cast<BitsOf<T>>(L::infinity()) + 1)),
              L::denorm_min(),
              L::denorm_min() * 3,
              L::min(),
              std::nextafter(L::min(), T(0)),
              L::max(),
              T(1),
              std::nextafter(T(1), T(0)),
              std::nextafter(T(1), T(2)),
              T(0.5),
              T(2),
              T(3),
              T(1e-3),
              T(1e-10),
              T(88.7228),
              T(88.73),
              T(89),
              T(-87.5),
              T(-103.97),
              T(-104),
              T(709.78),
              T(709.79),
              T(710),
              T(710.4),
              T(710.5),
              T(-708.5),
              T(-745.13),
              T(-745.2),
              T(1e5),
              T(1e10),
              T(0.7853981633974483),
              T(1.5707963267948966),
              T(3.141592653589793),
              T(6.283185307179586),
              T(16367173) * 4722366482869645213696.0f})
    v.insert(v.end(), {x, -x});
  return v;
}

// Values over the whole type and, densely, where the functions do most of their work.
template <typename T>
std::vector<T> sample_values() {
  std::vector<T> v = special_values<T>();
  std::mt19937_64 random(7);
  if constexpr (!kIsDouble<T>) {
    const char* text = std::getenv("TILEWRIGHT_FLOAT_STRIDE");  // smaller: nearer to exhaustive
    const uint64_t stride = text ? std::strtoull(text, nullptr, 10) : 1009;
    for (uint64_t i = 0; i < (1ull << 32); i += stride)
      v.push_back(std::bit_cast<float>(static_cast<uint32_t>(i)));
  } else {
    for (int i = 0; i < 300000; ++i) v.push_back(std::bit_cast<double>(random()));
  }
  for (double range : {0.01, 1.0, 2.0, 12.0, 110.0, 750.0, 1e5}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (int i = 0; i < (kIsDouble<T> ? 100000 : 300000); ++i)
      v.push_back(static_cast<T>(uniform(random)));
  }
  for (int i = 0; i < 100000; ++i) {  // near the zeros of sin and cos
    const double n = std::floor(std::exp2(static_cast<double>(random() % 4300) / 100));
    v.push_back(static_cast<T>(n * 1.5707963267948966));
  }
  while (v.size() % 16) v.push_back(1);
  return v;
}

// Distance in ULPs of the expected number. Infinite for a wrong sign or a NaN on one side.
template <typename T>
double ulp_error(T got, long double expected) {
  const T rounded = static_cast<T>(expected);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : INFINITY;
  if (got == rounded) {
    if (std::signbit(got) != std::signbit(rounded)) return INFINITY;
    if (std::isinf(got) || got == 0) return 0;
  }
  if (std::isnan(got) || std::signbit(got) != std::signbit(rounded)) return INFINITY;
  const T largest = std::numeric_limits<T>::max();
  if (std::isinf(got)) got = largest;  // one step beyond the largest: counted in its ULPs below
  int exponent = std::ilogb(std::isinf(rounded) ? largest
                            : rounded == 0      ? std::numeric_limits<T>::min()
                                                : rounded);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent - 1);
  const long double ulp = std::ldexp(1.0L, exponent - (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::abs(static_cast<long double>(got) - expected) / ulp);
}

template <typename T>
std::vector<T> run(const MathKernel& k, const std::vector<T>& x, const std::vector<T>& z = {}) {
  std::vector<T> y(x.size());
  k.run(x.data(), z.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

template <typename T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& x,
                      const std::string& what) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<BitsOf<T>>(a[i]) == std::bit_cast<BitsOf<T>>(b[i]) ||
        (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    ADD_FAILURE() << what << ": " << a[i] << " and " << b[i] << " at " << x[i];
    return;
  }
}

// The largest error over all samples, printed so that a change that loses accuracy is seen early.
template <typename T>
void check_accuracy(const MathCase& c, const std::vector<T>& x, bool has_fma, double bound) {
  const std::vector<T> y =
      run(compile_math(c.op, kIsDouble<T>, kIsDouble<T> ? 8 : 16, {has_fma}), x);
  double worst = -1;
  T at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (kIsDouble<T> && std::isfinite(x[i]) && std::abs(x[i]) > c.double_range) {
      EXPECT_LE(std::abs(y[i]), 1) << c.name << "(" << x[i] << ")";
      continue;
    }
    const long double expected =
        kIsDouble<T> ? c.reference(x[i])
                     : static_cast<long double>(c.narrow_reference(static_cast<double>(x[i])));
    const double error = ulp_error(y[i], expected);
    if (error > worst) worst = error, at = x[i];
    if (error > bound && error == worst) {
      EXPECT_LE(error, bound) << c.name << "(" << std::hexfloat << x[i] << ") is " << y[i]
                              << ", expected " << static_cast<T>(expected);
      if (std::isinf(error)) break;
    }
  }
  std::printf("%-8s %-6s %-6s max %6.3f ULP at %.9g (%a)\n", c.name,
              kIsDouble<T> ? "double" : "float", has_fma ? "fma" : "no fma", worst,
              static_cast<double>(at), static_cast<double>(at));
}

class VectorMath : public testing::TestWithParam<MathCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, VectorMath, testing::ValuesIn(kCases),
                         [](const auto& p) { return p.param.name; });

TEST_P(VectorMath, FloatIsAccurate) {
  static const auto x = sample_values<float>();
  for (bool has_fma : {true, false})
    check_accuracy<float>(GetParam(), x, has_fma, GetParam().float_ulp);
}

TEST_P(VectorMath, DoubleIsAccurate) {
  static const auto x = sample_values<double>();
  for (bool has_fma : {true, false})
    check_accuracy<double>(GetParam(), x, has_fma, GetParam().double_ulp);
}

// Bit for bit the same at each width, with each processor's instructions: a result may
// not depend on where a vector ends.
template <typename T>
void check_widths(const std::optional<MathOp>& op, std::initializer_list<int> widths) {
  static const auto x = [] {
    auto v = sample_values<T>();
    std::vector<T> sparse = special_values<T>();
    for (size_t i = 0; i < v.size(); i += 7) sparse.push_back(v[i]);
    sparse.resize(sparse.size() / 32 * 32);
    return sparse;
  }();
  std::vector<T> z(x.rbegin(), x.rend());
  std::vector<T> first;
  for (int width : widths) {
    auto y = run(compile_math(op, kIsDouble<T>, width), x, z);
    if (first.empty())
      first = y;
    else
      expect_same_bits(first, y, x, "width " + std::to_string(width));
  }
#ifdef __x86_64__  // other processors' instructions: still no symbol from outside, and the same
                   // results
  {
    const int width = std::data(widths)[1];
    expect_same_bits(first, run(compile_math(op, kIsDouble<T>, width, {}, "haswell"), x, z), x,
                     "haswell");
    const auto plain = run(compile_math(op, kIsDouble<T>, width, {.has_fma = false}), x, z);
    const auto baseline =
        run(compile_math(op, kIsDouble<T>, width, {.has_fma = false}, "x86-64"), x, z);
    expect_same_bits(plain, baseline, x, "x86-64");
    if (__builtin_cpu_supports("avx512f"))
      for (const int vectors : {1, 2})
        expect_same_bits(first,
                         run(compile_math(op, kIsDouble<T>, vectors * (kIsDouble<T> ? 8 : 16),
                                          {.has_scale = true}),
                             x, z),
                         x, "scaling by an instruction");
  }
#endif
}

TEST_P(VectorMath, AllWidthsAndProcessorsGiveTheSameBits) {
  check_widths<float>(GetParam().op, {1, 8, 16});
  check_widths<double>(GetParam().op, {1, 4, 8});
}

template <typename T>
void check_pow_at(const std::vector<T>& x, const std::vector<T>& z, const char* what, bool has_fma,
                  double bound) {
  const auto y =
      run(compile_math(std::nullopt, kIsDouble<T>, kIsDouble<T> ? 8 : 16, {has_fma}), x, z);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto expected =
        kIsDouble<T> ? std::pow(static_cast<long double>(x[i]), static_cast<long double>(z[i]))
                     : static_cast<long double>(
                           std::pow(static_cast<double>(x[i]), static_cast<double>(z[i])));
    const double error = ulp_error(y[i], expected);
    if (error > worst && error > bound) {
      ADD_FAILURE() << "pow(" << std::hexfloat << x[i] << ", " << z[i] << ") is " << y[i]
                    << ", expected " << static_cast<T>(expected) << ", error " << std::defaultfloat
                    << error;
    }
    worst = std::max(worst, error);
    if (std::isinf(worst)) return;
  }
  std::printf("pow      %-6s %-6s max %6.3f ULP, %s\n", kIsDouble<T> ? "double" : "float",
              has_fma ? "fma" : "no fma", worst, what);
}

template <typename T>
void check_pow(double bound) {
  auto base = special_values<T>();
  for (T x : {2, 3, 5, 4097}) base.insert(base.end(), {x, -x, x + T(0.5), -x - T(0.5)});
  for (T x :
       {T(8388607), T(8388608), T(8388609), T(16777215), T(16777216), T(0x1p52) + 1, T(0x1p53) - 1})
    base.insert(base.end(), {x, -x});
  std::vector<T> x, z;
  for (T a : base)
    for (T c : base) x.push_back(a), z.push_back(c);
  auto pad = [&] {
    while (x.size() % 16) x.push_back(1), z.push_back(1);
  };
  pad();
  for (bool has_fma : {true, false}) check_pow_at(x, z, "special values", has_fma, bound);
  x.clear(), z.clear();
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(-1, 1);
  const double most = kIsDouble<T> ? 750 : 105;
  for (int i = 0; i < 400000; ++i) {  // results over the whole range, from bases of any size
    const double log_x =
        unit(random) * std::pow(10.0, unit(random) * 3 - (kIsDouble<T> ? 0.2 : 1.1));
    x.push_back(static_cast<T>(std::exp(log_x)));
    z.push_back(static_cast<T>(unit(random) * most / log_x));
    x.push_back(static_cast<T>(unit(random) * 10)),
        z.push_back(static_cast<T>(std::round(unit(random) * 40)));
    x.push_back(static_cast<T>(unit(random) + 1)), z.push_back(static_cast<T>(unit(random) * 5));
  }
  pad();
  for (bool has_fma : {true, false}) check_pow_at(x, z, "random values", has_fma, bound);
}

TEST(VectorPow, FloatIsAccurate) { check_pow<float>(4); }
TEST(VectorPow, DoubleIsAccurate) { check_pow<double>(16); }
TEST(VectorPow, AllWidthsAndProcessorsGiveTheSameBits) {
  check_widths<float>(std::nullopt, {1, 8, 16});
  check_widths<double>(std::nullopt, {1, 4, 8});
}

template <typename T>
double nanoseconds_per_element(std::optional<MathOp> op, int width, double low, double high) {
  std::vector<T> x(4096), z(4096), y(4096);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(low, high);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(uniform(random)), z[i] = static_cast<T>(uniform(random));
  auto k = compile_math(op, kIsDouble<T>, width);
  double best = 1e9;
  for (int trial = 0; trial < 50; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) k.run(x.data(), z.data(), y.data(), 4096);
    best = std::min(
        best,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return best / (20 * 4096);
}

// Run with --gtest_also_run_disabled_tests.
TEST(VectorMathSpeed, DISABLED_PrintsNanosecondsPerElement) {
  std::printf("%-8s %10s %10s %10s\n", "", "16 floats", "1 float", "8 doubles");
  std::printf("%-8s %10.3f %10.3f %10.3f\n", "pow",
              nanoseconds_per_element<float>({}, 16, 0.1, 0.9),
              nanoseconds_per_element<float>({}, 1, 0.1, 0.9),
              nanoseconds_per_element<double>({}, 8, 0.1, 0.9));
  for (const auto& c : kCases) {
    std::printf("%-8s %10.3f %10.3f %10.3f\n", c.name,
                nanoseconds_per_element<float>(c.op, 16, 0.1, 0.9),
                nanoseconds_per_element<float>(c.op, 1, 0.1, 0.9),
                nanoseconds_per_element<double>(c.op, 8, 0.1, 0.9));
  }
}

}  // namespace
}  // namespace tilewright::cpu
