// Arithmetic on lanes: thin values over IRBuilder so that the formulas of vector_math*.cpp read as
// formulas. Only those files include this header; every operation works alike on scalars and
// vectors, so a scalar tail gives the same bits as a vector body.
#pragma once

#include "codegen/cpu/vector_math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace tilewright::cpu::lanes {

// Where formulas are written to, and what they may use (MathOptions).
struct Emitter {
  // The insertion point, and MathOptions: fused multiply-adds, and VSCALEFPS for x * 2^n.
  llvm::IRBuilderBase& b;
  bool has_fma, has_scale;
};

// `scalar`, in as many lanes as `like` has.
inline llvm::Type* with_scalar(llvm::Type* scalar, llvm::Type* like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? llvm::FixedVectorType::get(scalar, vector->getNumElements()) : scalar;
}

struct F {  // float or double lanes
  // Who emits and the LLVM value; is_double() chooses between the formulas for f64 and f32.
  Emitter* e;
  llvm::Value* v;
  llvm::Type* type() const { return v->getType(); }
  bool is_double() const { return type()->getScalarType()->isDoubleTy(); }
};
struct I {  // integer lanes
  // As in F.
  Emitter* e;
  llvm::Value* v;
  llvm::Type* type() const { return v->getType(); }
};
struct M {  // one bit a lane
  // As in F.
  Emitter* e;
  llvm::Value* v;
};

// An operand: lanes, or a constant that takes the type of the other operand.
struct Num {
  // Lanes where there are some, else the constant, which as() makes a splat of the other operand's
  // type. Conversions are implicit so that `x * 2.0 + y` reads as a formula.
  F lanes{};
  double constant = 0;
  Num(F f) : lanes(f) {}
  Num(double c) : constant(c) {}
  llvm::Value* as(F like) const {
    return lanes.v ? lanes.v : llvm::ConstantFP::get(like.type(), constant);
  }
};
// The same for integers.
struct IntNum {
  // As in Num. Constants are cut to the width of the other operand.
  I lanes{};
  int64_t constant = 0;
  IntNum(I i) : lanes(i) {}
  IntNum(int64_t c) : constant(c) {}
  IntNum(int c) : constant(c) {}
  llvm::Value* as(I like) const {
    if (lanes.v) return lanes.v;
    const unsigned bits = like.type()->getScalarSizeInBits();
    return llvm::ConstantInt::get(like.type(),
                                  llvm::APInt(64, static_cast<uint64_t>(constant)).trunc(bits));
  }
};
inline F lanes_of(const Num& a, const Num& b) { return a.lanes.v ? a.lanes : b.lanes; }
inline I lanes_of(const IntNum& a, const IntNum& b) { return a.lanes.v ? a.lanes : b.lanes; }

#define TILEWRIGHT_BINARY(Result, Operand, op, Create) \
  inline Result operator op(Operand x, Operand y) {    \
    auto l = lanes_of(x, y);                           \
    return {l.e, l.e->b.Create(x.as(l), y.as(l))};     \
  }
TILEWRIGHT_BINARY(F, Num, +, CreateFAdd)
TILEWRIGHT_BINARY(F, Num, -, CreateFSub)
TILEWRIGHT_BINARY(F, Num, *, CreateFMul)
TILEWRIGHT_BINARY(F, Num, /, CreateFDiv)
TILEWRIGHT_BINARY(M, Num, <, CreateFCmpOLT)  // all comparisons but != are false on NaN
TILEWRIGHT_BINARY(M, Num, >, CreateFCmpOGT)
TILEWRIGHT_BINARY(M, Num, <=, CreateFCmpOLE)
TILEWRIGHT_BINARY(M, Num, >=, CreateFCmpOGE)
TILEWRIGHT_BINARY(M, Num, ==, CreateFCmpOEQ)
TILEWRIGHT_BINARY(M, Num, !=, CreateFCmpUNE)
TILEWRIGHT_BINARY(I, IntNum, +, CreateAdd)
TILEWRIGHT_BINARY(I, IntNum, -, CreateSub)
TILEWRIGHT_BINARY(I, IntNum, *, CreateMul)
TILEWRIGHT_BINARY(I, IntNum, &, CreateAnd)
TILEWRIGHT_BINARY(I, IntNum, |, CreateOr)
TILEWRIGHT_BINARY(I, IntNum, ^, CreateXor)
TILEWRIGHT_BINARY(I, IntNum, <<, CreateShl)
TILEWRIGHT_BINARY(I, IntNum, >>, CreateLShr)
TILEWRIGHT_BINARY(M, IntNum, ==, CreateICmpEQ)
TILEWRIGHT_BINARY(M, IntNum, <, CreateICmpSLT)
#undef TILEWRIGHT_BINARY

// Operations one to one, lane by lane. Negation changes the sign alone, also of a NaN; of shifts to
// the right only arithmetic_shift copies the sign (>> is logical).
inline M operator&(M x, M y) { return {x.e, x.e->b.CreateAnd(x.v, y.v)}; }
inline M operator|(M x, M y) { return {x.e, x.e->b.CreateOr(x.v, y.v)}; }
inline M operator!(M x) { return {x.e, x.e->b.CreateNot(x.v)}; }
inline F operator-(F x) { return {x.e, x.e->b.CreateFNeg(x.v)}; }
inline I arithmetic_shift(I x, int n) { return {x.e, x.e->b.CreateAShr(x.v, IntNum(n).as(x))}; }
inline M is_nan(F x) { return {x.e, x.e->b.CreateFCmpUNO(x.v, x.v)}; }

// x where the lane of m is on, else y.
inline F select(M m, F x, Num y) { return {x.e, x.e->b.CreateSelect(m.v, x.v, y.as(x))}; }
inline F select(M m, double x, F y) { return {y.e, y.e->b.CreateSelect(m.v, Num(x).as(y), y.v)}; }
inline I select(M m, I x, IntNum y) { return {x.e, x.e->b.CreateSelect(m.v, x.v, y.as(x))}; }
inline I select(M m, int64_t x, I y) {
  return {y.e, y.e->b.CreateSelect(m.v, IntNum(x).as(y), y.v)};
}
inline F min(F x, double bound) { return select(x > bound, bound, x); }  // NaN stays NaN
inline F max(F x, double bound) { return select(x < bound, bound, x); }  // NaN stays NaN

// A constant in all lanes, of the type of `like`.
inline F constant(F like, double c) { return {like.e, Num(c).as(like)}; }
inline I constant(I like, int64_t c) { return {like.e, IntNum(c).as(like)}; }

// The number's bits as integers of its width, and back.
inline I bits(F x) {
  auto& b = x.e->b;
  return {x.e, b.CreateBitCast(
                   x.v, with_scalar(x.is_double() ? b.getInt64Ty() : b.getInt32Ty(), x.type()))};
}
inline F from_bits(I x) {
  auto& b = x.e->b;
  const bool wide = x.type()->getScalarSizeInBits() == 64;
  return {x.e,
          b.CreateBitCast(x.v, with_scalar(wide ? b.getDoubleTy() : b.getFloatTy(), x.type()))};
}
// Between f32 and f64, and between 32 and 64 bits (zeros above; the low bits).
inline F widen(F x) {
  return {x.e, x.e->b.CreateFPExt(x.v, with_scalar(x.e->b.getDoubleTy(), x.type()))};
}
inline F narrow(F x) {
  return {x.e, x.e->b.CreateFPTrunc(x.v, with_scalar(x.e->b.getFloatTy(), x.type()))};
}
inline I widen(I x) {
  return {x.e, x.e->b.CreateZExt(x.v, with_scalar(x.e->b.getInt64Ty(), x.type()))};
}
inline I narrow(I x) {
  return {x.e, x.e->b.CreateTrunc(x.v, with_scalar(x.e->b.getInt32Ty(), x.type()))};
}
// Signed 64-bit integers to f64, rounded.
inline F to_double(I x) {
  return {x.e, x.e->b.CreateSIToFP(x.v, with_scalar(x.e->b.getDoubleTy(), x.type()))};
}
inline I funnel_shift_left(I high, I low, I count) {  // the high word of (high:low) << count
  return {high.e, high.e->b.CreateIntrinsic(llvm::Intrinsic::fshl, {high.type()},
                                            {high.v, low.v, count.v})};
}
// LLVM's intrinsics that are one instruction on every target.
inline F unary_intrinsic(llvm::Intrinsic::ID id, F x) {
  return {x.e, x.e->b.CreateUnaryIntrinsic(id, x.v)};
}
inline F abs(F x) { return unary_intrinsic(llvm::Intrinsic::fabs, x); }
inline F sqrt(F x) { return unary_intrinsic(llvm::Intrinsic::sqrt, x); }
inline F copysign(F magnitude, F sign) {
  return {sign.e, sign.e->b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v)};
}

// x*y + z, rounded once where the target can; use where either rounding is accurate enough.
inline F fma(Num x, Num y, Num z) {
  F l = x.lanes.v ? x.lanes : lanes_of(y, z);
  if (!l.e->has_fma) return F{l.e, x.as(l)} * F{l.e, y.as(l)} + F{l.e, z.as(l)};
  return {l.e,
          l.e->b.CreateIntrinsic(llvm::Intrinsic::fma, {l.type()}, {x.as(l), y.as(l), z.as(l)})};
}

// An unevaluated sum, hi holding the rounded value.
struct Pair {
  // The sum hi + lo is exact, and lo is at most half an ULP of hi (Dekker 1971; two_sum is
  // Knuth's).
  F hi, lo;
};
inline Pair fast_two_sum(F a, F b) {  // exact when |a| >= |b| or a == 0
  F s = a + b;
  return {s, b - (s - a)};
}
inline Pair two_sum(F a, F b) {  // exact
  F s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
inline Pair two_product(F a, F b) {  // exact unless a part over- or underflows
  F p = a * b;
  if (a.e->has_fma) return {p, fma(a, b, -p)};
  const double splitter = a.is_double() ? 134217729.0 : 4097.0;  // Veltkamp's splitting
  F ta = a * splitter, ah = ta - (ta - a), al = a - ah;
  F tb = b * splitter, bh = tb - (tb - b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
// x*y + z, exact where that sum is representable (z cancels the product).
inline F cancelling_fma(F x, F y, F z) {
  if (z.e->has_fma) return fma(x, y, z);
  Pair p = two_product(x, y);
  return (z + p.hi) + p.lo;
}

// Horner's scheme with fused steps, the constant term first.
inline F polynomial(F x, std::initializer_list<double> ascending) {
  auto c = ascending.end();
  F y = constant(x, *--c);
  while (c != ascending.begin()) y = fma(y, x, *--c);
  return y;
}

// Layout of the format of x.
inline int mantissa_bits(F x) { return x.is_double() ? 52 : 23; }
inline int exponent_bias(F x) { return x.is_double() ? 1023 : 127; }
inline double smallest_normal(F x) { return x.is_double() ? 0x1p-1022 : 0x1p-126; }
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The integer nearest to an x of at most 2^21 (float) or 2^50 (double) in size: adding 1.5 *
// 2^mantissa_bits leaves it in the low bits of the sum.
struct Rounded {
  // x * factor, rounded to nearest, ties to even.
  F value;
  I raw;  // low bits: the integer in two's complement; high bits: noise that a left shift into the
          // exponent drops
};
inline Rounded round_to_integer(F x, double factor) {
  const double magic = x.is_double() ? 0x1.8p52 : 0x1.8p23;
  F t = fma(x, factor, magic);
  return {t - magic, bits(t)};
}
inline F power_of_two(F like, I n) {  // n within the normal exponents
  return from_bits((n + exponent_bias(like)) << mantissa_bits(like));
}

// The families.
enum class ExpRange { kFull, kModerate };  // kModerate: the result is normal
// What vector_math.cpp dispatches to; accuracy as the table of vector_math.h states.
F exp_of(F x, ExpRange range);
F half_exp_of(F x);  // exp(x)/2, finite wherever that is
F expm1_of(F x);
F log_of(F x);
F log1p_of(F x);
F sigmoid_of(F x);
F pow_of(F x, F y);
F sin_of(F x);
F cos_of(F x);
F tan_of(F x);
F asin_of(F x);  // these three: double only
F acos_of(F x);
F atan_of(F x);

}  // namespace tilewright::cpu::lanes
