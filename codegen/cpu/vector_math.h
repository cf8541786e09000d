// Elementary functions as inline vector code: polynomials, range reduction and selects, for any lane count.
#pragma once

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

enum class MathOp {
  kExp, kLog, kTanh, kErf, kSigmoid, kExpm1, kLog1p,
  kSin, kCos, kTan, kAsin, kAcos, kAtan,
  kSinh, kCosh, kAsinh, kAcosh, kAtanh, kRsqrt,
};
inline constexpr int kMathOpCount = static_cast<int>(MathOp::kRsqrt) + 1;

// Up to here sin, cos and tan of double are accurate; beyond, sin and tan give 0 and cos 1. Float has no limit.
inline constexpr double kLargestDoubleAngle = 0x1p45;

struct MathOptions {
  bool has_fma = true;  // false: no llvm.fma is emitted (it would become a call of libm on such a target)
};

// Emits op(x) at the insertion point; x is float or double, a scalar or a fixed vector of any lane count.
llvm::Value* emit_math(llvm::IRBuilderBase& b, MathOp op, llvm::Value* x, const MathOptions& options = {});

// Emits x to the power y (same type), with every special case of IEEE 754's pow.
llvm::Value* emit_pow(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, const MathOptions& options = {});

}  // namespace tilewright::cpu
