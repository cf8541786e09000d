#include "codegen/cpu/llvm_faults.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Passes/PassBuilder.h>

#include <bit>
#include <vector>

namespace tilewright::cpu {

namespace {

using llvm::Value;

std::vector<llvm::IntrinsicInst*> calls_of(llvm::Function& f, llvm::Intrinsic::ID id) {
  std::vector<llvm::IntrinsicInst*> calls;
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : block)
      if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
          call && call->getIntrinsicID() == id)
        calls.push_back(call);
  return calls;
}

// Might memory change after `load` and before `use`? Yes when they are in different blocks.
bool may_be_written(const llvm::Instruction& load, const llvm::Instruction& use) {
  if (load.getParent() != use.getParent()) return true;
  for (const llvm::Instruction* i = load.getNextNode(); i && i != &use; i = i->getNextNode())
    if (i->mayWriteToMemory()) return true;
  return false;
}

// The passes of the header, each with the fault that it avoids; all are to go when LLVM is mended.
struct KeepMaskedLoads : llvm::PassInfoMixin<KeepMaskedLoads> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
    bool changed = false;
    for (llvm::IntrinsicInst* load : calls_of(f, llvm::Intrinsic::masked_load)) {
      std::vector<llvm::SelectInst*> selects;
      for (llvm::User* user : load->users())
        if (auto* select = llvm::dyn_cast<llvm::SelectInst>(user);
            select && may_be_written(*load, *select))
          selects.push_back(select);
      if (selects.empty()) continue;
      llvm::IRBuilder<> b(load->getNextNode());
      Value* frozen = b.CreateFreeze(load);
      for (llvm::SelectInst* select : selects) select->replaceUsesOfWith(load, frozen);
      changed = true;
    }
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

// Lanes [first, first + count) of v, a power of two of them.
Value* lanes(llvm::IRBuilder<>& b, Value* v, unsigned first, unsigned count) {
  if (count == 1) return b.CreateExtractElement(v, first);
  std::vector<int> from(count);
  for (unsigned i = 0; i < count; ++i) from[i] = static_cast<int>(first + i);
  return b.CreateShuffleVector(v, from);
}

// Each run of lanes that are on, by stores of as many lanes as powers of two allow.
void store_runs(llvm::IntrinsicInst& store, const llvm::Constant& mask) {
  Value *v = store.getArgOperand(0), *p = store.getArgOperand(1);
  auto* type = llvm::cast<llvm::FixedVectorType>(v->getType());
  const unsigned n = type->getNumElements();
  const llvm::Align each(type->getScalarSizeInBits() / 8);
  llvm::IRBuilder<> b(&store);
  auto is_on = [&](unsigned i) { return i < n && !mask.getAggregateElement(i)->isNullValue(); };
  for (unsigned first = 0; first < n;) {
    unsigned end = first;
    while (is_on(end)) ++end;
    if (end == first) {
      ++first;
      continue;
    }
    const unsigned count = std::bit_floor(end - first);
    Value* at = b.CreateConstInBoundsGEP1_64(type->getElementType(), p, first);
    b.CreateAlignedStore(count == n ? v : lanes(b, v, first, count), at, each);
    first += count;
  }
  store.eraseFromParent();
}

// Returns whether the stored value can be a truncation. Floats of 32 and 64 bits come from
// arithmetic, and no integer is wider than 64 bits.
bool may_be_narrowed(const llvm::IntrinsicInst& store) {
  const llvm::Type* each = store.getArgOperand(0)->getType()->getScalarType();
  return !each->isFloatTy() && each->getScalarSizeInBits() < 64;
}

struct SplitMaskedStores : llvm::PassInfoMixin<SplitMaskedStores> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
    bool changed = false;
    for (llvm::IntrinsicInst* store : calls_of(f, llvm::Intrinsic::masked_store)) {
      const auto* mask = llvm::dyn_cast<llvm::Constant>(store->getArgOperand(2));
      if (!mask || !may_be_narrowed(*store)) continue;
      store_runs(*store, *mask);
      changed = true;
    }
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

bool is_narrowed(const Value& v) {
  for (const llvm::User* user : v.users())
    if (llvm::isa<llvm::FPTruncInst>(user)) return true;
  return false;
}

struct CopySignsByBits : llvm::PassInfoMixin<CopySignsByBits> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
    bool changed = false;
    for (llvm::IntrinsicInst* call : calls_of(f, llvm::Intrinsic::copysign)) {
      llvm::Type* type = call->getType();
      if (!type->getScalarType()->isDoubleTy() || !is_narrowed(*call)) continue;
      llvm::IRBuilder<> b(call);
      auto bits = [&](unsigned k) {
        return b.CreateBitCast(call->getArgOperand(k), type->getWithNewType(b.getInt64Ty()));
      };
      Value* number = b.CreateAnd(bits(0), uint64_t{INT64_MAX});
      Value* sign = b.CreateAnd(bits(1), uint64_t{1} << 63);
      call->replaceAllUsesWith(b.CreateBitCast(b.CreateOr(number, sign), type));
      call->eraseFromParent();
      changed = true;
    }
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

}  // namespace

void register_fault_passes(llvm::PassBuilder& builder) {
  builder.registerPipelineParsingCallback([](llvm::StringRef name,
                                             llvm::FunctionPassManager& passes,
                                             llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
    if (name == "keep-masked-loads")
      passes.addPass(KeepMaskedLoads());
    else if (name == "split-masked-stores")
      passes.addPass(SplitMaskedStores());
    else if (name == "copy-signs-by-bits")
      passes.addPass(CopySignsByBits());
    else
      return false;
    return true;
  });
}

}  // namespace tilewright::cpu
