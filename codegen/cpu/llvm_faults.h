// Forms of LLVM IR that LLVM 22.1 translates wrongly, put into others of the same meaning.
#pragma once

namespace llvm {
class PassBuilder;
}

namespace tilewright::cpu {

// Makes three function passes known by name, for pipelines given as text:
// keep-masked-loads, to run before instcombine: `select(m, masked.load(p, m), y)` becomes one load
//   where the select stands, even when a store between the two writes what is loaded
//   (llvm/llvm-project#215453). Such loads are frozen, which instcombine does not look through.
// split-masked-stores, to run last: of a truncating masked store whose constant mask has one lane
//   on, perhaps after types too wide for the target were halved, a whole register is stored
//   (llvm/llvm-project#179489). Masked stores of constant masks become stores of their runs, but
//   for floats of 32 bits and elements of 64 bits, which no truncation makes; a single element of
//   64 bits, taken out of pairs of 32 bits for such a run, is what no instruction can be selected
//   for (zero_extend_vector_inreg of 256 bits).
// copy-signs-by-bits, to run last: a copysign of f64 that is narrowed to f32 and then to 16 bits
//   becomes one of 16 bits with a sign still of 64, which a function of a library rounds. Signs of
//   narrowed f64 are copied as bits.
void register_fault_passes(llvm::PassBuilder& builder);

}  // namespace tilewright::cpu
