#include "codegen/cpu/emit_dot.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "ir/loops/nodes.h"

namespace tilewright::cpu {

namespace {

using llvm::Value;

bool has(const ir::MachineDescription& m, const char* feature) {
  return std::find(m.features.begin(), m.features.end(), feature) != m.features.end();
}
unsigned lanes_of(Value* v) {
  return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
}
// The instruction that takes `lanes` sums at once, of bytes or of i16; 0 when there is none.
llvm::Intrinsic::ID dot_instruction(const ir::MachineDescription& m, unsigned lanes, bool bytes) {
  using namespace llvm::Intrinsic;
  const bool wide = has(m, "avx512vnni");
  if (lanes == 16 && wide) return bytes ? x86_avx512_vpdpbusd_512 : x86_avx512_vpdpwssd_512;
  const bool narrow = has(m, "avxvnni") || (wide && has(m, "avx512vl"));
  if (lanes == 8 && narrow) return bytes ? x86_avx512_vpdpbusd_256 : x86_avx512_vpdpwssd_256;
  if (lanes == 4 && narrow) return bytes ? x86_avx512_vpdpbusd_128 : x86_avx512_vpdpwssd_128;
  return 0;
}
llvm::Intrinsic::ID pair_instruction(const ir::MachineDescription& m, unsigned lanes) {
  if (lanes == 16 && has(m, "avx512bw")) return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  if (lanes == 8 && has(m, "avx2")) return llvm::Intrinsic::x86_avx2_pmadd_wd;
  if (lanes == 4) return llvm::Intrinsic::x86_sse2_pmadd_wd;
  return 0;
}

class EmitDot {
 public:
  EmitDot(llvm::IRBuilderBase& builder, const ir::MachineDescription& machine)
      : b_(builder), machine_(machine) {}

  Value* run(Value* sum, Value* a, Value* w) {
    const unsigned lanes = lanes_of(sum), terms = lanes_of(a) / lanes;
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
