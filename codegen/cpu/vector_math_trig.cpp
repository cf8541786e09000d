// sin, cos, tan and their inverses.
#include "codegen/cpu/vector_math_lanes.h"

namespace tilewright::cpu::lanes {
namespace {

constexpr double kHalfPi = 1.5707963267948966, kHalfPiLow = 6.123233995736766e-17,
                 kHalfPiLowest = -1.4973849048591698e-33;

// x = quadrant * pi/2 + r, |r| <= pi/4 and a little; only the low two bits of the quadrant count.
struct Reduced {
  Pair r;
  I quadrant;  // as wide as x
};

// Cody-Waite with three parts of pi/2. The first step is exact, since x and n * pi/2 cancel.
Reduced reduce_double(F x) {
  F inside = select(abs(x) <= kLargestDoubleAngle, x, 0.0);
  Rounded n = round_to_integer(inside, 0.6366197723675814);
  F high = cancelling_fma(n.value, constant(x, -kHalfPi), inside);
  Pair p = two_product(n.value, constant(x, kHalfPiLow));
  Pair s = two_sum(high, -p.hi);
  F low = fma(n.value, -kHalfPiLowest, s.lo - p.lo);
  return {fast_two_sum(s.hi, low), n.raw};
}

// Payne-Hanek for any finite |x| >= pi/4: x * 2/pi modulo 4 as a 64-bit fraction, from those bits
// of 2/pi that the exponent of x moves there. The nearest a float comes to a multiple of pi/2
// leaves over 30 of its bits.
Reduced reduce_float(F a) {
  I i = bits(a);
  I mantissa = widen((i & 0x7FFFFF) | 0x800000);
  // a = mantissa * 2^(exponent - 150); the fraction has 62 bits below the two of the quadrant.
  I shift = widen(i >> 23) - (150 - 62);
  const auto word = [&](uint64_t w) { return constant(shift, static_cast<int64_t>(w)); };
  const I w0 = word(0xA2F9836E4E441529), w1 = word(0xFC2757D1F534DDC0),
          w2 = word(0xDB6295993C439041), w3 = word(0xFE5163ABDEBBC561);
  M below_64 = shift < 64, below_128 = shift < 128;
  I first = select(below_64, 0, select(below_128, w0, w1));
  I second = select(below_64, w0, select(below_128, w1, w2));
  I third = select(below_64, w1, select(below_128, w2, w3));
  I count = shift & 63;
  I high = funnel_shift_left(first, second, count),
    low = funnel_shift_left(second, third, count) >> 32;
  I product = mantissa * high + ((mantissa * low) >> 32);
  I fraction = arithmetic_shift(product << 2, 2);
  F r = narrow(to_double(fraction) * 3.4061215800865545e-19);  // pi/2 * 2^-62
  M small = a < 0.7853981;
  I quadrant = narrow((product - fraction) >> 62);
  return {{select(small, a, r), constant(a, 0.0)}, select(small, 0, quadrant)};
}

Reduced reduce(F x) { return x.is_double() ? reduce_double(x) : reduce_float(abs(x)); }

F sin_near_zero(Pair r) {
  F x = r.hi, z = x * x;
  if (!x.is_double()) {
    return fma(x * z, polynomial(z, {-0.166666672, 0.00833337381, -0.000198506954, 2.80847644e-06}),
               x);
  }
  F p = polynomial(z, {-0.16666666666666632, 0.008333333333322507, -0.00019841269829873524,
                       2.7557313711781184e-06, -2.5050760812877743e-08, 1.5896930824581064e-10});
  return x + fma(x * z, p, r.lo);
}

F cos_near_zero(Pair r) {
  F x = r.hi, z = x * x;
  if (!x.is_double()) {
    F p = polynomial(z, {0.0416666679, -0.00138889754, 2.48202959e-05, -2.87227863e-07});
    return fma(z, fma(z, p, -0.5), 1.0);
  }
  F p = polynomial(z, {0.0416666666666666, -0.0013888888888874474, 2.4801587289663216e-05,
                       -2.7557314395918254e-07, 2.0875728264097413e-09, -1.1359868238654194e-11});
  F half = z * 0.5, head = 1.0 - half;
  return head + (((1.0 - head) - half) + fma(z * z, p, -(x * r.lo)));
}

I sign_mask(F x) { return constant(bits(x), x.is_double() ? INT64_MIN : INT32_MIN); }
F flip_sign(F x, I sign) { return from_bits(bits(x) ^ sign); }
M is_odd(I quadrant) { return (quadrant & 1) == 1; }

// The float reduction works on |x|: puts back the sign of an odd function.
F restore_sign(F y, F x) { return x.is_double() ? y : flip_sign(y, bits(x) & sign_mask(x)); }

// Below this sin x and tan x round to x; the reduction would lose the sign of -0.
F keep_tiny(F y, F x) { return select(abs(x) < (x.is_double() ? 0x1p-28 : 0x1p-13), x, y); }

// The quadrant's second bit moved to the sign.
I quadrant_sign(F x, I quadrant) { return (quadrant & 2) << (x.is_double() ? 62 : 30); }

F sine_from(F x, Reduced r) {
  F y = select(is_odd(r.quadrant), cos_near_zero(r.r), sin_near_zero(r.r));
  return flip_sign(y, quadrant_sign(x, r.quadrant));
}

F nan_unless_finite(F y, F x) { return select(abs(x) < kInfinity, y, kNaN); }

// |x| <= 1/2: the odd polynomial; beyond, through asin x = pi/2 - 2 asin sqrt((1-x)/2).
struct AsinParts {
  F base, correction;  // asin(base) = base + correction
  M small;
};
AsinParts asin_parts(F a) {
  M small = a < 0.5;
  F z = select(small, a * a, (1.0 - a) * 0.5);
  F base = select(small, a, sqrt(z));
  F p = polynomial(
      z, {0.16666666666666755, 0.07499999999972023, 0.04464285717367526, 0.030381942745044556,
          0.022372214096571672, 0.017351625838598096, 0.01398067546894585, 0.011399962307606367,
          0.010775002761527602, 0.003724214561805168, 0.021668345528710716, -0.020948920617393306,
          0.03260012548614336});
  return {base, base * z * p, small};
}

}  // namespace

F sin_of(F x) {
  return nan_unless_finite(keep_tiny(restore_sign(sine_from(x, reduce(x)), x), x), x);
}

F cos_of(F x) {
  Reduced r = reduce(x);
  r.quadrant = r.quadrant + 1;
  return nan_unless_finite(sine_from(x, r), x);
}

F tan_of(F x) {
  Reduced r = reduce(x);
  F s = sin_near_zero(r.r), c = cos_near_zero(r.r);
  M odd = is_odd(r.quadrant);
  F y = select(odd, -c, s) / select(odd, s, c);
  return nan_unless_finite(keep_tiny(restore_sign(y, x), x), x);
}

F asin_of(F x) {
  AsinParts p = asin_parts(abs(x));
  F large = (kHalfPi - p.base * 2.0) - (p.correction * 2.0 - kHalfPiLow);
  return copysign(select(p.small, p.base + p.correction, large), x);
}

F acos_of(F x) {
  AsinParts p = asin_parts(abs(x));
  F base = copysign(p.base, x), correction = copysign(p.correction, x);
  F small = kHalfPi - (base - (kHalfPiLow - correction));
  F from_one = (p.base + p.correction) * 2.0;
  F large = select(x < 0.0, (kHalfPi - p.base) * 2.0 - (p.correction - kHalfPiLow) * 2.0, from_one);
  return select(p.small, small, large);
}

F atan_of(F x) {
  // pi/2 - atan(1/a) or pi/4 + atan((a-1)/(a+1)) bring the argument below tan(pi/8).
  F a = abs(x);
  M large = a > 2.414213562373095, middle = a > 0.41421356237309503;
  F numerator = select(large, -1.0, select(middle, a - 1.0, a));
  F denominator = select(large, a, select(middle, a + 1.0, 1.0));
  F base = select(large, kHalfPi, select(middle, constant(x, kHalfPi / 2), 0.0));
  F base_low = select(large, kHalfPiLow, select(middle, constant(x, kHalfPiLow / 2), 0.0));
  F t = numerator / denominator, z = t * t;
  F p = polynomial(
      z, {-0.33333333333333204, 0.19999999999955168, -0.14285714280339004, 0.11111110789959631,
          -0.0909089793040125, 0.07692063075601943, -0.06663134501825611, 0.05848097622694559,
          -0.050401897844030784, 0.03808581546410485, -0.017929253052740016});
  return copysign(base + (t + fma(t * z, p, base_low)), x);
}

}  // namespace tilewright::cpu::lanes
