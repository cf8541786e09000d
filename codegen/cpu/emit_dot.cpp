#include "codegen/cpu/emit_dot.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/cpu/vector_math.h"
#include "ir/loops/nodes.h"

namespace tilewright::cpu {

namespace {

using llvm::Value;

unsigned lanes_of(Value* v) {
  return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
}
// The instruction that takes `lanes` sums at once, of bytes or of i16; 0 when there is none.
llvm::Intrinsic::ID dot_instruction(const ir::MachineDescription& m, unsigned lanes, bool bytes) {
  using namespace llvm::Intrinsic;
  const bool wide = m.has("avx512vnni");
  if (lanes == 16 && wide) return bytes ? x86_avx512_vpdpbusd_512 : x86_avx512_vpdpwssd_512;
  const bool narrow = m.has("avxvnni") || (wide && m.has("avx512vl"));
  if (lanes == 8 && narrow) return bytes ? x86_avx512_vpdpbusd_256 : x86_avx512_vpdpwssd_256;
  if (lanes == 4 && narrow) return bytes ? x86_avx512_vpdpbusd_128 : x86_avx512_vpdpwssd_128;
  return 0;
}
llvm::Intrinsic::ID float_instruction(const ir::MachineDescription& m, unsigned lanes) {
  using namespace llvm::Intrinsic;
  if (!m.has("avx512bf16")) return 0;
  if (lanes == 16) return x86_avx512bf16_dpbf16ps_512;
  if (!m.has("avx512vl")) return 0;
  if (lanes == 8) return x86_avx512bf16_dpbf16ps_256;
  if (lanes == 4) return x86_avx512bf16_dpbf16ps_128;
  return 0;
}
llvm::Intrinsic::ID pair_instruction(const ir::MachineDescription& m, unsigned lanes) {
  if (lanes == 16 && m.has("avx512bw")) return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  if (lanes == 8 && m.has("avx2")) return llvm::Intrinsic::x86_avx2_pmadd_wd;
  if (lanes == 4) return llvm::Intrinsic::x86_sse2_pmadd_wd;
  return 0;
}

class EmitDot {
 public:
  EmitDot(llvm::IRBuilderBase& builder, const ir::MachineDescription& machine)
      : b_(builder), machine_(machine) {}

  Value* run(Value* sum, Value* a, Value* w) {
    const unsigned lanes = lanes_of(sum), terms = lanes_of(a) / lanes;
    if (sum->getType()->isFPOrFPVectorTy()) return of_floats(sum, a, w, lanes);
    if (auto id = dot_instruction(machine_, lanes, terms == 4)) {
      auto* f = llvm::Intrinsic::getOrInsertDeclaration(b_.GetInsertBlock()->getModule(), id);
      llvm::Type* operand = f->getFunctionType()->getParamType(1);
      return b_.CreateCall(f, {sum, b_.CreateBitCast(a, operand), b_.CreateBitCast(w, operand)});
    }
    if (auto id = pair_instruction(machine_, lanes))
      return terms == 4 ? by_pairs(id, sum, a, w)
                        : b_.CreateAdd(sum, b_.CreateIntrinsic(id, {}, {a, w}));
    return by_terms(sum, a, w, terms);
  }

 private:
  Value* of_floats(Value* sum, Value* a, Value* w, unsigned lanes) {
    if (auto id = float_instruction(machine_, lanes))
      return b_.CreateIntrinsic(id, {}, {sum, a, w});
    for (int q = 0; q < 2; ++q) {
      std::vector<int> at;
      for (unsigned l = 0; l < lanes; ++l) at.push_back(static_cast<int>(2 * l) + q);
      Value *x = widen_half(b_, b_.CreateShuffleVector(a, at), DType::kBFloat16),
            *y = widen_half(b_, b_.CreateShuffleVector(w, at), DType::kBFloat16);
      sum = b_.CreateFAdd(sum, b_.CreateFMul(x, y));
    }
    return sum;
  }
  // Bytes 0 and 2 of each i32 make one 16-bit pair, bytes 1 and 3 the other.
  Value* by_pairs(llvm::Intrinsic::ID id, Value* sum, Value* a, Value* w) {
    llvm::Type* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * lanes_of(sum));
    Value *eight = llvm::ConstantInt::get(halves, 8), *x = b_.CreateBitCast(a, halves),
          *y = b_.CreateBitCast(w, halves);
    Value* even = b_.CreateIntrinsic(id, {},
                                     {b_.CreateAnd(x, llvm::ConstantInt::get(halves, 0xff)),
                                      b_.CreateAShr(b_.CreateShl(y, eight), eight)});
    Value* odd = b_.CreateIntrinsic(id, {}, {b_.CreateLShr(x, eight), b_.CreateAShr(y, eight)});
    return b_.CreateAdd(b_.CreateAdd(sum, even), odd);
  }
  Value* by_terms(Value* sum, Value* a, Value* w, unsigned terms) {
    const unsigned lanes = lanes_of(sum);
    for (unsigned q = 0; q < terms; ++q) {
      std::vector<int> at;
      for (unsigned l = 0; l < lanes; ++l) at.push_back(static_cast<int>(l * terms + q));
      Value* part = b_.CreateShuffleVector(a, at);
      Value *x = terms == 4 ? b_.CreateZExt(part, sum->getType())
                            : b_.CreateSExt(part, sum->getType()),
            *y = b_.CreateSExt(b_.CreateShuffleVector(w, at), sum->getType());
      sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
    }
    return sum;
  }

  llvm::IRBuilderBase& b_;
  const ir::MachineDescription& machine_;
};

}  // namespace

Value* emit_dot(llvm::IRBuilderBase& b, const ir::MachineDescription& machine, Value* sum, Value* a,
                Value* b_operand) {
  return EmitDot(b, machine).run(sum, a, b_operand);
}

}  // namespace tilewright::cpu
