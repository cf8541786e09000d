// The program: what a session runs. Buffers, kernels and instructions over symbolic sizes; codegen
// turns it into an executable.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/nodes.h"
#include "runtime/core/numerics.h"

namespace tilewright::ir {

// kRunKey: two words that the session gives for each run, as random numbers want them.
enum class StorageKind : uint8_t { kInput, kOutput, kConstant, kTemporary, kRunKey };

struct ProgramBuffer {
  std::string name;
  TensorType type;
  Expr elements;  // of the storage: more than the type's product where a layout pads
  Layout layout;
  StorageKind kind = StorageKind::kTemporary;
  ConstantRef constant;   // kConstant: row-major contents; laid out by `layout` in the executable
  int32_t alias_of = -1;  // a view of another buffer
  bool dynamic = false;   // its size depends on a symbol that the run defines
  int32_t first_use = 0, last_use = 0;  // instructions of the main block, both included
};

struct CallInstruction {
  int32_t kernel = -1;
  std::vector<int32_t> buffers;
  std::vector<Expr> scalars;
  int32_t profile = -1;
};
struct DefineSymbolInstruction {
  Var symbol;
  int32_t buffer;
  int64_t index;
  int64_t limit;
};
struct AllocateInstruction {
  int32_t buffer;
};
struct CopyInstruction {
  int32_t to, from;
};
struct IfInstruction {
  int32_t condition;
  int32_t then_block, else_block;
};
struct FailInstruction {  // ends the run with an error
  std::string message;
};
struct CheckIndicesInstruction {  // ends the run with an error when an index is out of range
  int32_t indices, farthest;      // as checked_indices has them (ir/ops/index_checks.cpp)
  std::vector<Expr> extents;
  int64_t dim = 0;
  std::string node;
};
struct RequireInstruction {  // ends the run with an error when the extents are not as compiled for
  Expr a, b;
  bool equal = true;  // else: a is at most b
  std::string what;   // "mul 'y': extents n and m"
};
struct LoopInstruction {  // as runtime's LoopDesc
  int32_t trip_count = -1, initial_condition = -1, iteration = -1, body = -1, body_condition = -1;
  std::vector<std::pair<int32_t, int32_t>> carried;  // (state, computed by the body)
  std::vector<std::pair<int32_t, int32_t>> scans;    // (element, stacked result)
  Var count;                                         // number of iterations run; null: unused
};
using ProgramInstruction =
    std::variant<CallInstruction, DefineSymbolInstruction, AllocateInstruction, CopyInstruction,
                 IfInstruction, LoopInstruction, FailInstruction, CheckIndicesInstruction,
                 RequireInstruction>;

struct ProfileEntry {
  std::vector<std::string> nodes;  // of the source model
  std::string kernel;
  Expr flops, bytes;
};

struct Program {
  std::string name;
  Numerics numerics = Numerics::kStandard;
  std::vector<Var> symbols;  // those of the inputs first
  std::vector<ProgramBuffer> buffers;
  std::vector<int32_t> inputs, outputs;
  std::vector<Kernel> kernels;                          // flat loops, distinct
  std::vector<std::string> schedules;                   // of each, the steps that led to it
  std::vector<std::vector<ProgramInstruction>> blocks;  // the first is the main one
  std::vector<ProfileEntry> profile;
};

}  // namespace tilewright::ir
