// exp, log and what is built from their range reductions alone.
#include "codegen/cpu/vector_math_lanes.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <numeric>
#include <vector>

namespace tilewright::cpu::lanes {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// ln 2 in two parts; the high part is short enough for n * high to be exact.
double ln2_high(F x) { return x.is_double() ? 0.693147180559663 : 0.693145751953125; }
double ln2_low(F x) { return x.is_double() ? 2.8235290563031577e-13 : 1.42860677e-06; }

// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2.
F exp_tail(F r) {
  if (r.is_double()) {
    return polynomial(r, {0.5, 0.16666666666666682, 0.04166666666666669, 0.008333333333317662,
                          0.0013888888888869088, 0.00019841269895062665, 2.4801587357871502e-05,
                          2.7557236018241865e-06, 2.7557244379710723e-07, 2.511167709186252e-08,
                          2.092404400597866e-09});
  }
  return polynomial(r, {0.5, 0.166665211, 0.0416664369, 0.00836865883, 0.00139373995});
}

// x clamped to where e^x neither rounds to 0 nor to infinity, with a margin.
F clamp_for_exp(F x) {
  return x.is_double() ? max(min(x, 710.5), -745.5) : max(min(x, 89.5), -104.5);
}

// Do the lanes fill one register of 512 bits, or two, four, ...?
bool fills_registers(F x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.type());
  const unsigned registers = vector ? vector->getPrimitiveSizeInBits().getFixedValue() / 512 : 0;
  return std::has_single_bit(registers) &&
         vector->getPrimitiveSizeInBits().getFixedValue() % 512 == 0;
}
// x * 2^n, rounded once whatever the result; of lanes that fill registers.
F scale_in_registers(F x, F n) {
  auto& b = x.e->b;
  const int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x.type())->getNumElements()),
            each = x.is_double() ? 8 : 16;
  constexpr int kCurrentRounding = 4;
  std::vector<llvm::Value*> parts;
  for (int k = 0; k < lanes; k += each) {
    std::vector<int> from(static_cast<size_t>(each));
    std::iota(from.begin(), from.end(), k);
    auto *value = b.CreateShuffleVector(x.v, from), *power = b.CreateShuffleVector(n.v, from);
    auto* all = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(static_cast<unsigned>(each)));
    parts.push_back(b.CreateIntrinsic(value->getType(),
                                      x.is_double()
                                          ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                                          : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                                      {value, power, value, all, b.getInt32(kCurrentRounding)}));
  }
  for (int width = each; parts.size() > 1; width *= 2) {
    std::vector<int> from(static_cast<size_t>(2 * width));
    std::iota(from.begin(), from.end(), 0);
    std::vector<llvm::Value*> pairs;
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      pairs.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], from));
    parts = std::move(pairs);
  }
  return {x.e, parts[0]};
}

// 2^n e^r with n = n.value + offset.
F scale_exp(F p, F x, Rounded n, ExpRange range, int offset) {
  if (range == ExpRange::kModerate) return p * power_of_two(x, n.raw + offset);
  if (x.e->has_scale && fills_registers(x))
    return scale_in_registers(p, offset ? n.value + static_cast<double>(offset) : n.value);
  // 2^n alone may not be a normal number, so a part of it is multiplied last, where the result
  // rounds once.
  const int down = x.is_double() ? 512 : 64;
  const double last = x.is_double() ? 0x1p-512 : 0x1p-64;
  M up = x > 0.0;
  I shift = select(up, constant(n.raw, offset - 1), offset + down);
  return p * power_of_two(x, n.raw + shift) * select(up, constant(x, 2.0), last);
}

// 2^offset exp(x + low), low being at most an ULP or so of x.
F exp_with_offset(F x, const F* low, ExpRange range, int offset) {
  if (range != ExpRange::kModerate) x = clamp_for_exp(x);
  Rounded n = round_to_integer(x, kLog2E);
  F r = fma(n.value, -ln2_low(x), fma(n.value, -ln2_high(x), x));
  if (low) r = r + *low;
  F p = fma(fma(exp_tail(r), r, 1.0), r, 1.0);
  return scale_exp(p, x, n, range, offset);
}

// x = 2^exponent * mantissa, mantissa in [sqrt(1/2), sqrt(2)), for positive finite x.
struct Split {
  F exponent, mantissa;
  I raw;  // the exponent as an integer
};
Split split(F x) {
  const int width = mantissa_bits(x);
  const int64_t half_root = x.is_double() ? 0x3FE6A09E667F3BCD : 0x3F3504F3;  // sqrt(1/2)
  I i = bits(x);
  I e = arithmetic_shift(i - half_root, width);
  F mantissa = from_bits(i - (e << width));
  const int64_t magic_bits = x.is_double() ? 0x4338000000000000 : 0x4B400000;  // of 1.5 * 2^width
  F exponent = from_bits(e + magic_bits) - (x.is_double() ? 0x1.8p52 : 0x1.8p23);
  return {exponent, mantissa, e};
}
// Subnormal numbers are scaled into the normal range first and the exponent corrected.
Split split_any(F x) {
  M denormal = x < smallest_normal(x);
  const int shift = mantissa_bits(x) + 1;
  Split s = split(select(denormal, x * (x.is_double() ? 0x1p53 : 0x1p24), x));
  s.exponent = s.exponent + select(denormal, constant(x, -shift), 0.0);
  return s;
}

// exponent * ln 2 + log(1 + f), 1 + f being a mantissa.
F log_of_split(const Split& s, F f) {
  F low = s.exponent * ln2_low(f);
  if (f.is_double()) {
    // log(1+f) = f - (f^2/2 - s (f^2/2 + z P(z))), s = f/(2+f), z = s^2
    F q = f / (f + 2.0), z = q * q, half_square = f * f * 0.5;
    F tail = z * polynomial(z, {0.6666666666666732, 0.39999999999429503, 0.28571428739509735,
                                0.22222198834073262, 0.18183552257350177, 0.15314326685510662,
                                0.14793472474282945});
    F small = half_square - fma(q, half_square + tail, low);
    return s.exponent * ln2_high(f) - (small - f);
  }
  F z = f * f;
  F tail = f * polynomial(f, {0.333333135, -0.250000119, 0.200020641, -0.166678265, 0.142205283,
                              -0.124091864, 0.118844047, -0.116525017, 0.0672719628});
  F small = fma(z, -0.5, fma(z, tail, low));
  return fma(s.exponent, ln2_high(f), f + small);
}

// log(x) with about 65 bits, for positive finite double x.
Pair log_pair(F x) {
  Split parts = split_any(x);
  F f = parts.mantissa - 1.0;
  // s = f/(2+f) in two parts, then log(1+f) = 2s + s z (2/3 + z P(z)), z = s^2.
  F d = f + 2.0, d_low = f - (d - 2.0);
  F s = f / d, s_low = (cancelling_fma(-s, d, f) - s * d_low) / d;
  Pair z = two_product(s, s);
  z.lo = fma(s + s, s_low, z.lo);
  Pair cube = two_product(s, z.hi);
  cube.lo = fma(s, z.lo, fma(s_low, z.hi, cube.lo));
  const double two_thirds = 0.6666666666666666;
  F p = polynomial(
      z.hi, {0.40000000000004843, 0.2857142856944333, 0.22222222602070146, 0.1818177872690107,
             0.1538697383689955, 0.1325245750810164, 0.1323221929324205});
  Pair term = two_product(cube.hi, constant(x, two_thirds));
  term.lo = fma(cube.lo, two_thirds, fma(cube.hi * z.hi, p, term.lo));
  Pair head = two_sum(parts.exponent * ln2_high(x), s + s);
  Pair sum = two_sum(head.hi, term.hi);
  F low = fma(parts.exponent, ln2_low(x), (sum.lo + head.lo) + fma(s_low, 2.0, term.lo));
  return fast_two_sum(sum.hi, low);
}

// |x|^y for double, where neither needs a special case; 0 and infinity in x and y do not.
F positive_power(F x, F y) {
  Pair l = log_pair(x);
  l.hi = select(x == 0.0, -kInfinity, l.hi);
  l.hi = select(x < kInfinity, l.hi, x);  // infinity and NaN
  Pair p = two_product(y, l.hi);
  F low = select(abs(p.hi) < 800.0, fma(y, l.lo, p.lo),
                 0.0);  // beyond, the result is 0, infinity or NaN
  return exp_with_offset(y * l.hi, &low, ExpRange::kFull, 0);
}

struct Parity {
  M is_integer, is_odd;
};
Parity parity(F y) {
  F a = abs(y);
  const double unit = y.is_double() ? 0x1p52 : 0x1p23;  // from here on all values are integers
  M large = a >= unit;
  F sum = a + unit;
  M is_integer = large | (sum - unit == a);
  M low_bit = (bits(select(large, a, sum)) & 1) == 1;
  return {is_integer, is_integer & low_bit & (a < unit * 2)};
}

}  // namespace

F exp_of(F x, ExpRange range) { return exp_with_offset(x, nullptr, range, 0); }
F half_exp_of(F x) { return exp_with_offset(x, nullptr, ExpRange::kFull, -1); }

F sigmoid_of(F x) {
  // 1/(1 + e^|x|) with both terms scaled, since e^|x| may overflow where the quotient does not
  // vanish.
  F a = min(abs(x), x.is_double() ? 745.5 : 104.5);
  const int down = x.is_double() ? 512 : 64;
  const double scale = x.is_double() ? 0x1p-512 : 0x1p-64;
  Rounded n = round_to_integer(a, kLog2E);
  F r = fma(n.value, -ln2_low(x), fma(n.value, -ln2_high(x), a));
  F p = fma(r * r, exp_tail(r), r);
  F power = power_of_two(x, n.raw - down);
  // power (1 + p) + scale: rounded once, save that 2^24 + 1 itself would round, so there power is
  // added last.
  M small = n.value < 12.0;
  F sum =
      fma(power, p, select(small, power + scale, constant(x, scale))) + select(small, 0.0, power);
  F y = scale / sum;
  return select(x > 0.0, 1.0 - y, y);
}

F expm1_of(F x) {
  F c = x.is_double() ? max(min(x, 709.9), -60.0) : max(min(x, 88.9), -30.0);
  Rounded n = round_to_integer(c, kLog2E);
  F r = fma(n.value, -ln2_low(x), fma(n.value, -ln2_high(x), c));
  // 2^n (e^r - 1) + (2^n - 1), halved, since 2^n may overflow where the sum does not.
  F p = fma(r * r, exp_tail(r), r);
  F half_scale = x.e->has_scale && fills_registers(x)
                     ? scale_in_registers(constant(x, 0.5), n.value)
                     : power_of_two(x, n.raw - 1);
  F y = fma(half_scale, p, half_scale - 0.5);
  return copysign(y + y, x);  // keeps -0
}

F log_of(F x) {
  const Split s = split_any(x);
  F y = log_of_split(s, s.mantissa - 1.0);
  y = select(x < kInfinity, y, x);
  y = select(x == 0.0, -kInfinity, y);
  return select(x < 0.0, kNaN, y);
}

F log1p_of(F x) {
  F u = x + 1.0;
  // What the sum lost goes into the mantissa, which is beside 1 where that matters.
  F lost = select(x > 1.0, 1.0 - (u - x), x - (u - 1.0));
  const Split s = split(u);
  const double most = x.is_double() ? 1000 : 100;
  I down = constant(s.raw, 0) - select(s.exponent < most, s.raw, static_cast<int64_t>(most));
  F scale = power_of_two(x, down);
  F y = log_of_split(s, fma(lost, scale, s.mantissa - 1.0));
  y = select(x < kInfinity, y, x);
  y = select(x == -1.0, -kInfinity, y);
  return select(x < -1.0, kNaN, copysign(y, x));  // keeps -0
}

F pow_of(F x, F y) {
  F a = abs(x);
  F power = x.is_double() ? positive_power(a, y)
                          : narrow(exp_of(widen(y) * log_of(widen(a)), ExpRange::kFull));
  Parity p = parity(y);
  power = select(a == 1.0, 1.0, power);  // also for infinite and, if x is 1, NaN y
  power = select((x < 0.0) & (a < kInfinity) & !p.is_integer, kNaN, power);
  I sign_bit = constant(bits(x), x.is_double() ? INT64_MIN : INT32_MIN);
  I sign = select(p.is_odd, bits(x) & sign_bit, 0);
  return select(y == 0.0, 1.0, from_bits(bits(power) ^ sign));
}

}  // namespace tilewright::cpu::lanes
