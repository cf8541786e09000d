#include "codegen/cpu/emit_halves.h"

#include <llvm/IR/IRBuilder.h>

#include "codegen/cpu/emit_arithmetic.h"

namespace tilewright::cpu {

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

  Value* narrow_bf16(Value* v) {
    Value* bits = as_bits(v);
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, word(16)), word(1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, word(0x7fff)), odd);
    Value* quiet = b_.CreateOr(bits, word(0x00400000));
    Value* r = b_.CreateLShr(b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded), word(16));
    return as_half(r, DType::kBFloat16);
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
    return as_half(b_.CreateOr(r, b_.CreateLShr(sign, word(16))), DType::kFloat16);
  }

 private:
  llvm::Type* type(DType t) { return llvm_type(b_, {t, lanes_}); }
  Value* word(uint32_t bits) { return llvm::ConstantInt::get(type(DType::kUInt32), bits); }
  Value* as_bits(Value* v) { return b_.CreateBitCast(v, type(DType::kUInt32)); }
  Value* as_float(Value* v) { return b_.CreateBitCast(v, type(DType::kFloat32)); }
  Value* as_half(Value* v, DType t) {
    return b_.CreateBitCast(b_.CreateTrunc(v, type(DType::kUInt16)), type(t));
  }

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
Value* narrow_half(llvm::IRBuilderBase& b, Value* value, DType to) {
  Halves h(b, value);
  return to == DType::kBFloat16 ? h.narrow_bf16(value) : h.narrow_f16(value);
}

}  // namespace tilewright::cpu
