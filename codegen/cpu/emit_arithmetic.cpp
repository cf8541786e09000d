// Arithmetic of the loop IR as LLVM IR with the same meaning for every input: no undefined
// behaviour of LLVM's (shifts by the width, INT_MIN / -1, conversions out of range) is left open,
// since operators of a model may do all of that. Halves are widened to f32, computed and narrowed;
// nothing may call the C library, which a compiled model does not have.
#include "codegen/cpu/emit_arithmetic.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "codegen/cpu/vector_math.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

using llvm::Value;

// Elementary functions that vector_math.h writes as inline polynomials; others are instructions.
std::optional<MathOp> math_op(UnaryOp op) {
  switch (op) {
    case UnaryOp::kExp: return MathOp::kExp;
    case UnaryOp::kLog: return MathOp::kLog;
    case UnaryOp::kSin: return MathOp::kSin;
    case UnaryOp::kCos: return MathOp::kCos;
    case UnaryOp::kTan: return MathOp::kTan;
    case UnaryOp::kAsin: return MathOp::kAsin;
    case UnaryOp::kAcos: return MathOp::kAcos;
    case UnaryOp::kAtan: return MathOp::kAtan;
    case UnaryOp::kSinh: return MathOp::kSinh;
    case UnaryOp::kCosh: return MathOp::kCosh;
    case UnaryOp::kTanh: return MathOp::kTanh;
    case UnaryOp::kAsinh: return MathOp::kAsinh;
    case UnaryOp::kAcosh: return MathOp::kAcosh;
    case UnaryOp::kAtanh: return MathOp::kAtanh;
    case UnaryOp::kErf: return MathOp::kErf;
    case UnaryOp::kExpm1: return MathOp::kExpm1;
    case UnaryOp::kLog1p: return MathOp::kLog1p;
    case UnaryOp::kSigmoid: return MathOp::kSigmoid;
    case UnaryOp::kNeg:
    case UnaryOp::kNot:
    case UnaryOp::kAbs:
    case UnaryOp::kSqrt:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRoundEven:
    case UnaryOp::kTrunc:
    case UnaryOp::kRounded:
    case UnaryOp::kWatched:
    case UnaryOp::kIsNan:
    case UnaryOp::kIsInf: return std::nullopt;
  }
  return std::nullopt;
}

class Arithmetic {
 public:
  Arithmetic(llvm::IRBuilderBase& builder, const MachineDescription& machine)
      : b_(builder), machine_(machine) {}

  Value* cast(const Cast& c, Value* v) {
    const DType from = c.value.dtype(), to = c.type.dtype;
    llvm::Type* type = type_of(c.type);
    if (to == DType::kBool)
      return is_float(from) ? b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()))
                            : b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    if (is_float(from) && is_float(to)) {
      if (byte_size(from) == 2 && byte_size(to) == 2)
        return b_.CreateFPTrunc(b_.CreateFPExt(v, type_of({DType::kFloat32, c.type.lanes})), type);
      return byte_size(to) > byte_size(from) ? b_.CreateFPExt(v, type) : b_.CreateFPTrunc(v, type);
    }
    if (is_float(from)) {
      if (byte_size(to) <= 2 && byte_size(from) <= 4) return small_integer(v, c.type);
      const auto id = is_unsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
      return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
    }
    const bool zero_extend = is_unsigned(from) || from == DType::kBool;
    if (is_float(to)) return zero_extend ? b_.CreateUIToFP(v, type) : b_.CreateSIToFP(v, type);
    return zero_extend ? b_.CreateZExtOrTrunc(v, type) : b_.CreateSExtOrTrunc(v, type);
  }

  // Limited as a float, which takes vectors where the saturating conversion goes lane by lane.
  Value* small_integer(Value* v, ScalarType to) {
    llvm::Type* wide = type_of({DType::kFloat32, to.lanes});
    if (v->getType() != wide) v = b_.CreateFPExt(v, wide);
    const bool is_u = is_unsigned(to.dtype);
    const int bits = 8 * byte_size(to.dtype);
    auto number = [&](double x) { return llvm::ConstantFP::get(wide, x); };
    Value *low = number(is_u ? 0 : -std::ldexp(1, bits - 1)),
          *high = number(std::ldexp(1, is_u ? bits : bits - 1) - 1);
    if (!is_u) v = b_.CreateSelect(b_.CreateFCmpUNO(v, v), number(0), v);
    v = b_.CreateSelect(b_.CreateFCmpOGT(v, low), v, low);  // NaN gives the bound
    v = b_.CreateSelect(b_.CreateFCmpOLT(v, high), v, high);
    return b_.CreateTrunc(b_.CreateFPToSI(v, type_of({DType::kInt32, to.lanes})), type_of(to));
  }

  // floor, ceil, trunc or roundeven. Without SSE 4.1 LLVM would call the C library: there a number
  // below 2^23 (2^52) is rounded by what a sum with that keeps of it.
  Value* whole_number(llvm::Intrinsic::ID id, Value* v) {
    if (machine_.has("sse4.1")) return b_.CreateUnaryIntrinsic(id, v);
    auto number = [&](double x) { return llvm::ConstantFP::get(v->getType(), x); };
    auto like_v = [&](Value* x) {
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, v);
    };
    Value *whole = number(v->getType()->getScalarType()->isDoubleTy() ? 0x1p52 : 0x1p23),
          *one = number(1), *a = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
    Value* r = b_.CreateFSub(b_.CreateFAdd(a, whole), whole);
    if (id == llvm::Intrinsic::trunc)
      r = b_.CreateSelect(b_.CreateFCmpOGT(r, a), b_.CreateFSub(r, one), r);
    r = like_v(r);
    if (id == llvm::Intrinsic::floor)
      r = b_.CreateSelect(b_.CreateFCmpOGT(r, v), b_.CreateFSub(r, one), r);
    if (id == llvm::Intrinsic::ceil)
      r = b_.CreateSelect(b_.CreateFCmpOLT(r, v), b_.CreateFAdd(r, one), r);
    return b_.CreateSelect(b_.CreateFCmpOLT(a, whole), like_v(r), v);
  }

  Value* unary(const Unary& u, Value* v) {
    const DType t = u.value.dtype();
    const bool half = t == DType::kFloat16 || t == DType::kBFloat16;
    auto intrinsic = [&](llvm::Intrinsic::ID id) {
      return static_cast<Value*>(b_.CreateUnaryIntrinsic(id, v));
    };
    switch (u.op) {
      case UnaryOp::kNeg: return is_float(t) ? b_.CreateFNeg(v) : b_.CreateNeg(v);
      case UnaryOp::kNot: return b_.CreateNot(v);
      case UnaryOp::kAbs:
        if (is_float(t)) return intrinsic(llvm::Intrinsic::fabs);
        if (is_unsigned(t)) return v;
        return b_.CreateIntrinsic(llvm::Intrinsic::abs, {v->getType()}, {v, b_.getFalse()});
      case UnaryOp::kSqrt: return intrinsic(llvm::Intrinsic::sqrt);
      case UnaryOp::kFloor: return is_float(t) ? whole_number(llvm::Intrinsic::floor, v) : v;
      case UnaryOp::kCeil: return is_float(t) ? whole_number(llvm::Intrinsic::ceil, v) : v;
      case UnaryOp::kRoundEven:
        return is_float(t) ? whole_number(llvm::Intrinsic::roundeven, v) : v;
      case UnaryOp::kTrunc: return is_float(t) ? whole_number(llvm::Intrinsic::trunc, v) : v;
      case UnaryOp::kRounded:
      case UnaryOp::kWatched: return v;
      case UnaryOp::kIsNan: return b_.CreateFCmpUNO(v, v);
      case UnaryOp::kIsInf:
        return b_.CreateFCmpOEQ(intrinsic(llvm::Intrinsic::fabs),
                                llvm::ConstantFP::getInfinity(v->getType()));
      default: break;
    }
    auto op = math_op(u.op);
    TW_CHECK(op && is_float(t));
    if (half) v = b_.CreateFPExt(v, type_of({DType::kFloat32, u.type.lanes}));
    v = emit_math(b_, *op, v, math_options());
    return half ? b_.CreateFPTrunc(v, type_of(u.type)) : v;
  }

  MathOptions math_options() const {
    return {.has_fma = machine_.has_fma,
            .has_scale = machine_.vector_bytes == 64 && machine_.has("avx512f")};
  }

  Value* binary(const Binary& e, Value* a, Value* y) {
    return is_float(e.a.dtype()) ? float_binary(e, a, y) : emit_integers(b_, e, a, y);
  }
  Value* float_binary(const Binary& e, Value* a, Value* y) {
    const bool half = byte_size(e.a.dtype()) == 2;
    switch (e.op) {
      case BinaryOp::kAdd: return b_.CreateFAdd(a, y);
      case BinaryOp::kSub: return b_.CreateFSub(a, y);
      case BinaryOp::kMul: return b_.CreateFMul(a, y);
      case BinaryOp::kDiv: return b_.CreateFDiv(a, y);
      case BinaryOp::kMin: return float_extremum(a, y, false);
      case BinaryOp::kMax: return float_extremum(a, y, true);
      case BinaryOp::kMaxNumber: return b_.CreateSelect(b_.CreateFCmpOGT(y, a), y, a);
      case BinaryOp::kFloorDiv: return whole_number(llvm::Intrinsic::floor, b_.CreateFDiv(a, y));
      case BinaryOp::kTruncMod:
      case BinaryOp::kFloorMod: return float_remainder(e, a, y);
      case BinaryOp::kPow: {
        if (!half) return emit_pow(b_, a, y, math_options());
        llvm::Type* wide = type_of({DType::kFloat32, e.type.lanes});
        return b_.CreateFPTrunc(
            emit_pow(b_, b_.CreateFPExt(a, wide), b_.CreateFPExt(y, wide), math_options()),
            type_of(e.type));
      }
      case BinaryOp::kEq: return b_.CreateFCmpOEQ(a, y);
      case BinaryOp::kNe: return b_.CreateFCmpUNE(a, y);
      case BinaryOp::kLt: return b_.CreateFCmpOLT(a, y);
      case BinaryOp::kLe: return b_.CreateFCmpOLE(a, y);
      case BinaryOp::kGt: return b_.CreateFCmpOGT(a, y);
      case BinaryOp::kGe: return b_.CreateFCmpOGE(a, y);
      default: break;
    }
    TW_CHECK(!"no float operation");
    return nullptr;
  }
  // NaN when either is; of two zeros, either, but for exact kernels. The first operand is what x86
  // looks at for NaN apart from the maximum: given y, a chain of maxima over `a` does not wait for
  // that.
  Value* float_extremum(Value* a, Value* y, bool largest) {
    llvm::FastMathFlags flags = b_.getFastMathFlags();
    flags.setNoSignedZeros(!is_exact(b_));
    return b_.CreateBinaryIntrinsic(largest ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum,
                                    y, a, flags);
  }
  // x - q * m with one rounding. Without FMA the product is taken apart (Dekker 1971), its factors
  // scaled so that no half of them overflows.
  Value* minus_product(Value* x, Value* q, Value* m) {
    llvm::Type* type = x->getType();
    if (machine_.has_fma)
      return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b_.CreateFNeg(q), m, x});
    auto number = [&](double v) { return llvm::ConstantFP::get(type, v); };
    Value* is_large =
        b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, m), number(0x1p900));
    Value* down = b_.CreateSelect(is_large, number(0x1p-64), number(1));
    Value* small = b_.CreateFMul(x, down);
    m = b_.CreateFMul(m, down);
    auto upper = [&](Value* v) {
      Value* wide = b_.CreateFMul(v, number(0x1p27 + 1));
      return b_.CreateFSub(wide, b_.CreateFSub(wide, v));
    };
    Value *product = b_.CreateFMul(q, m), *q1 = upper(q), *q2 = b_.CreateFSub(q, q1),
          *m1 = upper(m), *m2 = b_.CreateFSub(m, m1);
    Value* error = b_.CreateFSub(b_.CreateFMul(q1, m1), product);
    error = b_.CreateFAdd(error, b_.CreateFMul(q1, m2));
    error = b_.CreateFAdd(error, b_.CreateFMul(q2, m1));
    error = b_.CreateFAdd(error, b_.CreateFMul(q2, m2));
    Value* rest = b_.CreateFSub(b_.CreateFSub(small, product), error);
    rest = b_.CreateFMul(rest, b_.CreateSelect(is_large, number(0x1p64), number(1)));
    return b_.CreateSelect(b_.CreateFCmpOEQ(q, number(0)), x, rest);
  }
  // Exact while the quotient is below 2^53: computed in double, a - q * y with one rounding.
  Value* float_remainder(const Binary& e, Value* a, Value* y) {
    llvm::Type* wide = type_of({DType::kFloat64, e.type.lanes});
    Value *x = b_.CreateFPExt(a, wide), *m = b_.CreateFPExt(y, wide);
    if (e.a.dtype() == DType::kFloat64) {
      x = a;
      m = y;
    }
    Value* q =
        whole_number(e.op == BinaryOp::kFloorMod ? llvm::Intrinsic::floor : llvm::Intrinsic::trunc,
                     b_.CreateFDiv(x, m));
    Value* r = minus_product(x, q, m);
    // Division of a finite number by an infinity leaves it; the sign of a zero is that of x.
    auto magnitude = [&](Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
    llvm::Constant* infinity = llvm::ConstantFP::getInfinity(wide);
    if (e.op == BinaryOp::kTruncMod) {
      Value* leaves = b_.CreateAnd(b_.CreateFCmpOEQ(magnitude(m), infinity),
                                   b_.CreateFCmpOLT(magnitude(x), infinity));
      r = b_.CreateSelect(leaves, x, r);
      r = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, r, x);
    }
    if (e.a.dtype() == DType::kFloat64) return r;
    llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
    b_.clearFastMathFlags();  // as in emit_cast
    return b_.CreateFPTrunc(byte_size(e.a.dtype()) == 2 ? odd_single(b_, r) : r, a->getType());
  }

 private:
  llvm::Type* type_of(ScalarType t) { return llvm_type(b_, t); }

  llvm::IRBuilderBase& b_;
  const MachineDescription& machine_;
};

}  // namespace

bool is_exact(const llvm::IRBuilderBase& b) { return !b.getFastMathFlags().allowContract(); }

llvm::Type* llvm_type(llvm::IRBuilderBase& b_, ScalarType type, bool in_memory) {
  auto scalar = [&]() -> llvm::Type* {
    switch (type.dtype) {
      case DType::kFloat32: return b_.getFloatTy();
      case DType::kFloat64: return b_.getDoubleTy();
      case DType::kFloat16: return b_.getHalfTy();
      case DType::kBFloat16: return b_.getBFloatTy();
      case DType::kBool: return in_memory ? b_.getInt8Ty() : b_.getInt1Ty();
      default: return b_.getIntNTy(static_cast<unsigned>(8 * byte_size(type.dtype)));
    }
  };
  return type.lanes == 1 ? scalar()
                         : llvm::FixedVectorType::get(scalar(), static_cast<unsigned>(type.lanes));
}

// Operators on halves that are converted by integer arithmetic work on them as f32; an operand's
// type is that of a variable in its place.
namespace {

Expr single(int lanes) { return Var("x", {DType::kFloat32, lanes}); }

}  // namespace

Value* emit_cast(llvm::IRBuilderBase& b, const MachineDescription& m, const Cast& e, Value* v) {
  const DType from = e.value.dtype(), to = e.type.dtype;
  // Two conversions in a row round twice: fast math would make one of them.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  Cast wide = e;
  if (from == DType::kFloat64 && is_float(to) && byte_size(to) == 2) {
    v = odd_single(b, v);
    wide.value = single(e.type.lanes);
  }
  if (emulates_halves(m, from)) {
    v = widen_half(b, v, from);
    wide.value = single(e.type.lanes);
    if (to == DType::kFloat32) return v;
  }
  if (!emulates_halves(m, to)) return Arithmetic(b, m).cast(wide, v);
  wide.type.dtype = DType::kFloat32;
  if (wide.value.dtype() != DType::kFloat32) v = Arithmetic(b, m).cast(wide, v);
  return narrow_half(b, v, to);
}
Value* emit_unary(llvm::IRBuilderBase& b, const MachineDescription& m, const Unary& e, Value* v) {
  const DType t = e.value.dtype();
  if (!emulates_halves(m, t)) return Arithmetic(b, m).unary(e, v);
  Unary wide = e;
  wide.value = single(e.type.lanes);
  const bool test = e.type.dtype == DType::kBool;
  if (!test) wide.type.dtype = DType::kFloat32;
  Value* r = Arithmetic(b, m).unary(wide, widen_half(b, v, t));
  return test ? r : narrow_half(b, r, t);
}
Value* emit_binary(llvm::IRBuilderBase& b, const MachineDescription& m, const Binary& e, Value* x,
                   Value* y) {
  const DType t = e.a.dtype();
  if (!emulates_halves(m, t)) return Arithmetic(b, m).binary(e, x, y);
  Binary wide = e;
  wide.a = wide.b = single(e.type.lanes);
  const bool test = e.type.dtype == DType::kBool;
  if (!test) wide.type.dtype = DType::kFloat32;
  Value* r = Arithmetic(b, m).binary(wide, widen_half(b, x, t), widen_half(b, y, t));
  return test ? r : narrow_half(b, r, t);
}

}  // namespace tilewright::cpu
