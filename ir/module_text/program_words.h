// Words of the text form of programs: those that begin an instruction, and kinds of storage. An
// instruction without its word does not compile.
#pragma once

#include <string_view>

#include "ir/program/program.h"
#include "ir/text/parser_exprs.h"

namespace tilewright::ir {

// One overload for each alternative of ProgramInstruction.
constexpr std::string_view word_of(Of<CallInstruction>) { return "call"; }
constexpr std::string_view word_of(Of<DefineSymbolInstruction>) { return "define"; }
constexpr std::string_view word_of(Of<AllocateInstruction>) { return "allocate"; }
constexpr std::string_view word_of(Of<CopyInstruction>) { return "copy"; }
constexpr std::string_view word_of(Of<IfInstruction>) { return "if"; }
constexpr std::string_view word_of(Of<LoopInstruction>) { return "loop"; }
constexpr std::string_view word_of(Of<FailInstruction>) { return "fail"; }
constexpr std::string_view word_of(Of<CheckIndicesInstruction>) { return "check_indices"; }
constexpr std::string_view word_of(Of<RequireInstruction>) { return "require"; }
constexpr std::string_view word_of(Of<StartInstruction>) { return "start"; }

// All kinds, for the parser to try; their words also begin the lines of buffers.
inline constexpr StorageKind kStorageKinds[] = {StorageKind::kInput, StorageKind::kOutput,
                                                StorageKind::kConstant, StorageKind::kTemporary,
                                                StorageKind::kRunKey};
constexpr std::string_view word_of(StorageKind kind) {
  switch (kind) {
    case StorageKind::kInput: return "input";
    case StorageKind::kOutput: return "output";
    case StorageKind::kConstant: return "constant";
    case StorageKind::kTemporary: return "temporary";
    case StorageKind::kRunKey: return "run_key";
  }
  return "";
}

}  // namespace tilewright::ir
