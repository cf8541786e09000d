// Dispatch, the functions built on exp and log (hyperbolic functions, erf), and conversions of
// halves.
#include "codegen/cpu/vector_math.h"

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/vector_math_lanes.h"

namespace tilewright::cpu {
namespace lanes {
namespace {

F tanh_of(F x) {
  if (x.is_double()) {
    F m = expm1_of(min(abs(x), 22.0) * 2.0);
    return copysign(m / (m + 2.0), x);
  }
  F a = abs(x), z = x * x;
  F small = fma(a * z,
                polynomial(z, {-0.333333313, 0.133332402, -0.0539524183, 0.0217386615,
                               -0.00828887522, 0.00226216996}),
                a);
  F t = exp_of(min(a + a, 20.0), ExpRange::kModerate);
  F large = 1.0 - 2.0 / (t + 1.0);
  return copysign(select(a < 0.55, small, large), x);
}

// x / 2^n, for positive x, where the result is normal; elsewhere a number below 2^-110.
F scaled_down(F x, int n) {
  auto& b = x.e->b;
  // The exponent's bits are in the upper half of the word; subtracted there, they stop at 0.
  const I word = bits(x);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(word.type());
  auto* halves =
      llvm::FixedVectorType::get(b.getInt16Ty(), vector ? 2 * vector->getNumElements() : 2);
  llvm::Value* by = b.CreateBitCast(constant(word, int64_t{n} << mantissa_bits(x)).v, halves);
  llvm::Value* less =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, b.CreateBitCast(word.v, halves), by);
  return from_bits({x.e, b.CreateBitCast(less, word.type())});
}

// u = 1 - erfc(|x|)^(1/8) is |x| times a polynomial; with (1 - u)^2 = 1 - u (2 - u), three steps
// u (2 - u) lead to erf, and each makes the relative error of u smaller. Here u goes by 8 u, then
// 4 u, 2 u and u, so that it is as normal a number as the result.
F erf_float(F x) {
  F a = min(abs(x), 3.95);
  F rest =
      polynomial(a, {6.567883e-09 * 8, 0.06963037 * 8, 0.002089042 * 8, -0.006589264 * 8,
                     -0.00018649791 * 8, 0.0005128392 * 8, -8.887322e-05 * 8, 4.8004754e-06 * 8});
  F u = fma(a, 0.1410473883152008 * 8, a * rest);
  for (int n = 4; n >= 2; --n) u = fma(-scaled_down(u, n), u, u);
  return copysign(u, x);
}

// Near 0 an odd polynomial; beyond, 1 - exp(-x^2) G, G a polynomial in 2/(2+|x|).
F erf_double(F x) {
  F z = x * x, a = min(abs(x), 6.0);
  F small =
      fma(x,
          polynomial(z, {0.12837916709551256, -0.37612638903183476, 0.11283791670943452,
                         -0.02686617064306082, 0.005223977605983365, -0.0008548325930766091,
                         0.00012055293771909014, -1.4924718005893103e-05, 1.6447218699820025e-06,
                         -1.6207071648929374e-07, 1.3714538142369585e-08, -7.786482221669424e-10}),
          x);
  F u = 2.0 / (a + 2.0) - 0.4583;
  F g = polynomial(
      u, {0.22140363824617296, 0.7770298996209893, 0.8883737354570805, 0.6180644146649881,
          0.10468398513288757, -0.205843780827834, -0.08980596774252116, 0.11620061650731288,
          0.046110115161870704, -0.09475387348362574, -0.004500314406423937, 0.08779187069854907,
          -0.06726175906692303, 0.013502461273839979});
  F large = 1.0 - exp_of(-(a * a), ExpRange::kModerate) * g;
  return select(abs(x) < 1.0, small, copysign(large, x));
}

F erf_of(F x) { return x.is_double() ? erf_double(x) : erf_float(x); }

// The functions down to atanh_of are for double.
F sinh_of(F x) {
  F a = abs(x), z = x * x;
  F small = fma(a * z,
                polynomial(z, {0.16666666666666669, 0.008333333333332965, 0.00019841269841536113,
                               2.755731912866835e-06, 2.505212713627562e-08, 1.6056978675468067e-10,
                               7.766552274413264e-13}),
                a);
  F h = half_exp_of(a);
  return copysign(select(a < 1.0, small, h - 0.25 / h), x);
}

F cosh_of(F x) {
  F h = half_exp_of(abs(x));
  return h + 0.25 / h;
}

constexpr double kLn2 = 0.6931471805599453;

// log(2 large) where large beyond 2^60 stands for x + sqrt(x^2 +- 1) and x^2 might overflow, else
// log(1 + rest).
F log_of_sum(F large, F rest) {
  M is_large = large > 0x1p60;
  return log1p_of(select(is_large, large, rest)) + select(is_large, constant(large, kLn2), 0.0);
}

F asinh_of(F x) {
  F a = abs(x), square = a * a;
  return copysign(log_of_sum(a, a + square / (sqrt(square + 1.0) + 1.0)), x);
}

F acosh_of(F x) {
  F t = x - 1.0;
  return select(x < 1.0, kNaN, log_of_sum(x, t + sqrt(t * (t + 2.0))));
}

F atanh_of(F x) {
  F a = abs(x);
  return copysign(log1p_of((a + a) / (1.0 - a)) * 0.5, x);
}

F through_double(F (*f)(F), F x) { return x.is_double() ? f(x) : narrow(f(widen(x))); }

F math_of(MathOp op, F x) {
  switch (op) {
    case MathOp::kExp: return exp_of(x, ExpRange::kFull);
    case MathOp::kLog: return log_of(x);
    case MathOp::kTanh: return tanh_of(x);
    case MathOp::kErf: return erf_of(x);
    case MathOp::kSigmoid: return sigmoid_of(x);
    case MathOp::kExpm1: return expm1_of(x);
    case MathOp::kLog1p: return log1p_of(x);
    case MathOp::kSin: return sin_of(x);
    case MathOp::kCos: return cos_of(x);
    case MathOp::kTan: return tan_of(x);
    case MathOp::kAsin: return through_double(asin_of, x);
    case MathOp::kAcos: return through_double(acos_of, x);
    case MathOp::kAtan: return through_double(atan_of, x);
    case MathOp::kSinh: return through_double(sinh_of, x);
    case MathOp::kCosh: return through_double(cosh_of, x);
    case MathOp::kAsinh: return through_double(asinh_of, x);
    case MathOp::kAcosh: return through_double(acosh_of, x);
    case MathOp::kAtanh: return through_double(atanh_of, x);
    case MathOp::kRsqrt: return 1.0 / sqrt(x);
  }
  __builtin_unreachable();
}

}  // namespace
}  // namespace lanes

llvm::Value* emit_math(llvm::IRBuilderBase& b, MathOp op, llvm::Value* x,
                       const MathOptions& options) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();  // the error terms of the reductions would be reassociated away
  lanes::Emitter e{b, options.has_fma, options.has_scale};
  return lanes::math_of(op, {&e, x}).v;
}

llvm::Value* emit_pow(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y,
                      const MathOptions& options) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  lanes::Emitter e{b, options.has_fma, options.has_scale};
  return lanes::pow_of({&e, x}, {&e, y}).v;
}

namespace {

using llvm::Value;

class Halves {
 public:
  Halves(llvm::IRBuilderBase& builder, Value* value) : b_(builder) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    lanes_ = vector ? static_cast<int>(vector->getNumElements()) : 1;
  }

  Value* widen_bf16(Value* v) {
    Value* bits = b_.CreateZExt(b_.CreateBitCast(v, type(DType::kUInt16)), type(DType::kUInt32));
    return as_float(b_.CreateShl(bits, word(16)));
  }
  // The exponent is moved by a multiplication, which is exact for subnormal numbers, too.
  Value* widen_f16(Value* v) {
    Value* bits = b_.CreateZExt(b_.CreateBitCast(v, type(DType::kUInt16)), type(DType::kUInt32));
    Value *magnitude = b_.CreateAnd(bits, word(0x7fff)),
          *sign = b_.CreateShl(b_.CreateAnd(bits, word(0x8000)), word(16));
    Value* moved = b_.CreateShl(magnitude, word(13));
    Value* finite = as_bits(
        b_.CreateFMul(as_float(moved), llvm::ConstantFP::get(type(DType::kFloat32), 0x1p112)));
    Value* special = b_.CreateOr(moved, word(0x7f800000));  // infinities and NaN
    Value* is_finite = b_.CreateICmpULT(magnitude, word(0x7c00));
    return as_float(b_.CreateOr(b_.CreateSelect(is_finite, finite, special), sign));
  }

  Value* odd_single(Value* v) {
    Value *near = b_.CreateFPTrunc(v, type(DType::kFloat32)), *bits = as_bits(near),
          *back = b_.CreateFPExt(near, v->getType());
    auto magnitude = [&](Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
    Value* beyond = b_.CreateFCmpOGT(magnitude(back), magnitude(v));
    Value* odd = b_.CreateSelect(beyond, b_.CreateSub(bits, word(1)), b_.CreateAdd(bits, word(1)));
    Value* is_even = b_.CreateICmpEQ(b_.CreateAnd(bits, word(1)), word(0));
    Value* moves = b_.CreateAnd(is_even, b_.CreateFCmpONE(back, v));
    return as_float(b_.CreateSelect(moves, odd, bits));
  }

  Value* narrow_bf16(Value* v) {
    Value* bits = as_bits(v);
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, word(16)), word(1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, word(0x7fff)), odd);
    Value* quiet = b_.CreateOr(bits, word(0x00400000));
    Value* r = b_.CreateLShr(b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded), word(16));
    return b_.CreateTrunc(r, type(DType::kUInt16));
  }
  Value* narrow_f16(Value* v) {
    Value* bits = as_bits(v);
    Value *sign = b_.CreateAnd(bits, word(0x80000000)), *a = b_.CreateXor(bits, sign);
    // Normal numbers: the exponent is moved, the mantissa rounded; a carry goes into the exponent.
    Value* odd = b_.CreateAnd(b_.CreateLShr(a, word(13)), word(1));
    Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(a, word(0xc8000fff)), odd), word(13));
    // Below 2^-14: added to a number whose last bit is the smallest half.
    Value* magic = word(0x3f000000);
    Value* subnormal = b_.CreateSub(as_bits(b_.CreateFAdd(as_float(a), as_float(magic))), magic);
    Value* large =
        b_.CreateSelect(b_.CreateICmpUGT(a, word(0x7f800000)), word(0x7e00), word(0x7c00));
    Value* r = b_.CreateSelect(b_.CreateICmpULT(a, word(0x38800000)), subnormal, normal);
    r = b_.CreateSelect(b_.CreateICmpUGE(a, word(0x47800000)), large, r);
    return b_.CreateTrunc(b_.CreateOr(r, b_.CreateLShr(sign, word(16))), type(DType::kUInt16));
  }

 private:
  llvm::Type* type(DType t) { return llvm_type(b_, {t, lanes_}); }
  Value* word(uint32_t bits) { return llvm::ConstantInt::get(type(DType::kUInt32), bits); }
  Value* as_bits(Value* v) { return b_.CreateBitCast(v, type(DType::kUInt32)); }
  Value* as_float(Value* v) { return b_.CreateBitCast(v, type(DType::kFloat32)); }

  llvm::IRBuilderBase& b_;
  int lanes_;
};

}  // namespace

bool emulates_halves(const ir::MachineDescription& machine, DType type) {
  if (type == DType::kBFloat16) return !machine.has("avx512bf16");
  return type == DType::kFloat16 && !machine.has("f16c");
}
Value* widen_half(llvm::IRBuilderBase& b, Value* value, DType from) {
  Halves h(b, value);
  return from == DType::kBFloat16 ? h.widen_bf16(value) : h.widen_f16(value);
}
Value* odd_single(llvm::IRBuilderBase& b, Value* value) {
  return Halves(b, value).odd_single(value);
}
Value* narrow_half(llvm::IRBuilderBase& b, Value* value, DType to) {
  Halves h(b, value);
  return to == DType::kBFloat16 ? h.narrow_bf16(value) : h.narrow_f16(value);
}

}  // namespace tilewright::cpu
