// Elementary functions as inline vector code: polynomials, range reduction and selects, for any
// lane count.
#pragma once

#include "ir/machine.h"
#include "runtime/core/dtype.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

// The functions that have no instruction of their own; each is a row of the table below.
enum class MathOp {
  kExp,
  kLog,
  kTanh,
  kErf,
  kSigmoid,
  kExpm1,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kRsqrt,
};
// For tests that go through all of them.
inline constexpr int kMathOpCount = static_cast<int>(MathOp::kRsqrt) + 1;

// Up to here sin, cos and tan of double are accurate; beyond, sin and tan give 0 and cos 1. Float
// has no limit.
inline constexpr double kLargestDoubleAngle = 0x1p45;

// What the target offers beyond basic arithmetic; results keep their bounds without any of it.
struct MathOptions {
  bool has_fma =
      true;  // false: no llvm.fma is emitted (it would become a call of libm on such a target)
  bool has_scale = false;  // AVX-512 in whole registers: x * 2^n, rounded once, by one instruction
};

// Largest error measured, in ULPs (bound asserted by tests/codegen/test_vector_math.cpp), and ns
// per element with FMA and AVX-512 on one core. NaN, infinities, -0 and denormals follow C; the
// code calls nothing (tested on x86-64, AVX2 and AVX-512), and a scalar gives the same bits as a
// lane of a vector. The bounds hold without FMA.
//
//   op       float       double      <16 x float>  <8 x double>
//   exp      0.88 (2)    0.86 (4)    0.15 ns       0.45 ns
//   log      0.79 (2)    0.77 (4)    0.25          0.59
//   tanh     1.55 (2)    2.39 (4)    0.21          0.62
//   erf      3.11 (4)    1.14 (16)   0.16          1.08
//   sigmoid  1.72 (2)    1.58 (4)    0.18          0.51
//   expm1    1.58 (2)    1.95 (16)   0.12          0.40
//   log1p    1.35 (2)    1.28 (16)   0.26          0.51
//   sin      1.49 (2)    0.82 (16)   0.54          1.01
//   cos      1.48 (2)    0.84 (16)   0.54          0.98
//   tan      3.04 (4)    2.13 (16)   0.58          1.07
//   asin     0.51 (4)    1.95 (16)   0.60          0.55
//   acos     0.51 (4)    1.14 (16)   0.73          0.68
//   atan     0.51 (4)    1.71 (16)   0.56          0.52
//   sinh     0.51 (4)    1.63 (16)   0.68          0.66
//   cosh     0.51 (4)    1.24 (16)   0.60          0.49
//   asinh    0.51 (4)    1.65 (16)   1.28          1.30
//   acosh    0.51 (4)    1.77 (16)   1.11          1.34
//   atanh    0.51 (4)    1.81 (16)   0.92          1.02
//   rsqrt    1.48 (2)    1.49 (2)    0.11          0.37
//   pow      0.51 (4)    1.20 (16)   1.84          2.47
//
// Emits op(x) at the insertion point; x is float or double, a scalar or a fixed vector of any lane
// count.
llvm::Value* emit_math(llvm::IRBuilderBase& b, MathOp op, llvm::Value* x,
                       const MathOptions& options = {});

// Emits x to the power y (same type), with every special case of IEEE 754's pow.
llvm::Value* emit_pow(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y,
                      const MathOptions& options = {});

// Half precision on CPUs without instructions to convert it: held as bits of u16 and converted by
// integer arithmetic, so that no code needs a compiler's support library.

// Whether values of this type are converted by the functions below.
bool emulates_halves(const ir::MachineDescription& machine, DType type);

// A scalar or vector of f16 or bf16 as f32, exactly.
llvm::Value* widen_half(llvm::IRBuilderBase& b, llvm::Value* value, DType from);
// A scalar or vector of f32 as f16 or bf16, rounded to the nearest, halves to even; NaN stays NaN.
llvm::Value* narrow_half(llvm::IRBuilderBase& b, llvm::Value* value, DType to);
// A scalar or vector of f64 as f32 that rounds to the same half as the f64 does: what is inexact
// becomes odd ("round to odd", Boldo and Melquiond 2008), so that no tie is made.
llvm::Value* odd_single(llvm::IRBuilderBase& b, llvm::Value* value);

}  // namespace tilewright::cpu
