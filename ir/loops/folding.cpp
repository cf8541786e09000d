// Constant folding and algebraic identities, applied as nodes are made: trees stay small, and x * 1
// never exists. Division by 0 and by -1 is left to the run, whose meaning it has; x * 0 is folded
// for integers only, as a float may be NaN.
#include "ir/loops/folding.h"

#include "ir/loops/float16.h"

namespace tilewright::ir {

int64_t wrap(int64_t v, DType t) {
  switch (t) {
    case DType::kInt8: return static_cast<int8_t>(v);
    case DType::kInt16: return static_cast<int16_t>(v);
    case DType::kInt32: return static_cast<int32_t>(v);
    case DType::kUInt8: return static_cast<uint8_t>(v);
    case DType::kUInt16: return static_cast<uint16_t>(v);
    case DType::kUInt32: return static_cast<uint32_t>(v);
    case DType::kBool: return v != 0;
    default: return v;
  }
}

Expr fold_integers(BinaryOp op, int64_t a, int64_t b, DType t) {
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  auto value = [&](uint64_t v) { return int_imm(wrap(static_cast<int64_t>(v), t), t); };
  const bool less = t == DType::kUInt64 ? u(a) < u(b) : a < b;
  switch (op) {
    case BinaryOp::kAdd: return value(u(a) + u(b));
    case BinaryOp::kSub: return value(u(a) - u(b));
    case BinaryOp::kMul: return value(u(a) * u(b));
    case BinaryOp::kDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      if (b == 0 || b == -1 || t == DType::kUInt64) return nullptr;
      const int64_t q = a / b, r = a % b;
      const bool adjust = r != 0 && (r < 0) != (b < 0);
      if (op == BinaryOp::kDiv) return value(u(q));
      if (op == BinaryOp::kTruncMod) return value(u(r));
      return op == BinaryOp::kFloorDiv ? value(u(adjust ? q - 1 : q))
                                       : value(u(adjust ? r + b : r));
    }
    case BinaryOp::kMin: return value(u(less ? a : b));
    case BinaryOp::kMax: return value(u(less ? b : a));
    case BinaryOp::kAnd: return value(u(a) & u(b));
    case BinaryOp::kOr: return value(u(a) | u(b));
    case BinaryOp::kXor: return value(u(a) ^ u(b));
    case BinaryOp::kEq: return bool_imm(a == b);
    case BinaryOp::kNe: return bool_imm(a != b);
    case BinaryOp::kLt: return bool_imm(less);
    case BinaryOp::kLe: return bool_imm(less || a == b);
    case BinaryOp::kGt: return bool_imm(!less && a != b);
    case BinaryOp::kGe: return bool_imm(!less);
    case BinaryOp::kMaxNumber:
    case BinaryOp::kPow:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return nullptr;
  }
  return nullptr;
}

Expr fold_identity(BinaryOp op, const Expr& a, const Expr& b) {
  const bool a0 = is_zero(a), b0 = is_zero(b);
  switch (op) {
    case BinaryOp::kAdd: return a0 ? b : b0 ? a : nullptr;
    case BinaryOp::kSub: return b0 ? a : a.same_as(b) ? int_imm(0, a.dtype()) : nullptr;
    case BinaryOp::kMul: return a0 || is_one(b) ? a : b0 || is_one(a) ? b : nullptr;
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv: return a0 || is_one(b) ? a : nullptr;
    case BinaryOp::kFloorMod:
    case BinaryOp::kTruncMod: return a0 ? a : is_one(b) ? int_imm(0, a.dtype()) : nullptr;
    case BinaryOp::kMin:
    case BinaryOp::kMax: return a.same_as(b) ? a : nullptr;
    case BinaryOp::kAnd:
      if (a.same_as(b)) return a;
      if (a.dtype() != DType::kBool) return nullptr;
      return a0 || is_one(b) ? a : b0 || is_one(a) ? b : nullptr;
    case BinaryOp::kOr:
      if (a.same_as(b)) return a;
      if (a.dtype() != DType::kBool) return nullptr;
      return a0 || is_one(b) ? b : b0 || is_one(a) ? a : nullptr;
    default: return nullptr;
  }
}

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return static_cast<float>(value);
    case DType::kFloat16: return Half::to_float(Half::from_double(value));
    case DType::kBFloat16: return BFloat::to_float(BFloat::from_double(value));
    default: return value;
  }
}
}  // namespace tilewright::ir
