// LLVM 22.1 ends with a pass that puts `vpmovd2m k, x; kmov r, k` (signs to a mask to an integer)
// into `vmovmskps r, x` and drops the mask, also when an instruction that reads and writes the mask
// follows (a shift, a gather: llvm/llvm-project#198197), and when x is one of the registers 16 to
// 31, which the shorter form cannot name (#191304). It gives the pattern up where the mask is
// written before it is read as an integer, so each such mask is moved to itself first.
#include "codegen/cpu/emit_object.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/MachineInstrBuilder.h>
#include <llvm/CodeGen/TargetInstrInfo.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <iterator>

namespace tilewright::cpu {

namespace {

// vpmovb2m, vpmovw2m, vpmovd2m, vpmovq2m of any width.
bool is_mask_of_signs(llvm::StringRef opcode) {
  return opcode.starts_with("VPMOV") && opcode.substr(6).starts_with("2M");
}
bool reads_mask_as_integer(llvm::StringRef opcode) {
  return opcode.starts_with("KMOV") && opcode.ends_with("rk");
}

// A pass over machine instructions, after register allocation; see above.
class KeepMasksOfSigns : public llvm::MachineFunctionPass {
 public:
  KeepMasksOfSigns() : MachineFunctionPass(id_) {}
  llvm::StringRef getPassName() const override { return "Masks of signs stay"; }

  bool runOnMachineFunction(llvm::MachineFunction& f) override {
    info_ = f.getSubtarget().getInstrInfo();
    registers_ = f.getSubtarget().getRegisterInfo();
    bool changed = false;
    for (llvm::MachineBasicBlock& block : f)
      for (llvm::MachineInstr& i : block) {
        const llvm::StringRef opcode = info_->getName(i.getOpcode());
        if (!is_mask_of_signs(opcode) || !is_read_as_integer_first(i)) continue;
        move_to_itself(i, opcode);
        changed = true;
      }
    return changed;
  }

 private:
  bool is_read_as_integer_first(const llvm::MachineInstr& def) const {
    const llvm::Register mask = def.getOperand(0).getReg();
    for (const auto* i = def.getNextNode(); i; i = i->getNextNode()) {
      if (i->readsRegister(mask, registers_))
        return reads_mask_as_integer(info_->getName(i->getOpcode()));
      if (i->modifiesRegister(mask, registers_)) return false;
    }
    return false;
  }
  // Masks of bytes and words, of up to 64 lanes, are known to targets that move 64; others have 16.
  void move_to_itself(llvm::MachineInstr& def, llvm::StringRef opcode) const {
    const bool wide = opcode.starts_with("VPMOVB2M") || opcode.starts_with("VPMOVW2M");
    const llvm::Register mask = def.getOperand(0).getReg();
    llvm::BuildMI(*def.getParent(), std::next(def.getIterator()), def.getDebugLoc(),
                  info_->get(opcode_named(wide ? "KMOVQkk" : "KMOVWkk")), mask)
        .addReg(mask);
  }
  unsigned opcode_named(llvm::StringRef name) const {
    unsigned opcode = 0;
    while (info_->getName(opcode) != name) TW_CHECK(++opcode < info_->getNumOpcodes());
    return opcode;
  }

  static char id_;
  const llvm::TargetInstrInfo* info_ = nullptr;
  const llvm::TargetRegisterInfo* registers_ = nullptr;
};
char KeepMasksOfSigns::id_ = 0;

// What the target adds, and the pass above before the one that it protects from.
class Passes : public llvm::legacy::PassManager {
 public:
  void add(llvm::Pass* pass) override {
    const llvm::PassInfo* info = llvm::Pass::lookupPassInfo(pass->getPassID());
    if (info && info->getPassArgument() == "x86-compress-evex") {
      PassManager::add(new KeepMasksOfSigns);
      keeps_masks_ = true;
    }
    PassManager::add(pass);
  }
  bool keeps_masks() const { return keeps_masks_; }

 private:
  bool keeps_masks_ = false;
};

}  // namespace

Result<std::vector<uint8_t>> emit_object(llvm::Module& module, llvm::TargetMachine& target,
                                         FileType type) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream os(buffer);
  Passes passes;
  const auto llvm_type = type == FileType::kObject ? llvm::CodeGenFileType::ObjectFile
                                                   : llvm::CodeGenFileType::AssemblyFile;
  if (target.addPassesToEmitFile(passes, os, nullptr, llvm_type))
    return internal_error("LLVM cannot emit code for this target");
  TW_CHECK(passes.keeps_masks());
  passes.run(module);
  return std::vector<uint8_t>(buffer.begin(), buffer.end());
}

}  // namespace tilewright::cpu
