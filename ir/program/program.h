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

// How the elements of a view correspond to those of the buffer that it views. The layouts of both agree
// with it: an element has one place in memory, whichever of the two names it.
struct ViewMap {
  // kSame: index for index. kReshaped: element for element, both in row-major order. kTransposed: dimension
  // d of the view is dims[d] of the other. kPart: dimension d of the view runs along dims[d] of the other,
  // steps[d] elements at a time.
  enum class Kind : uint8_t { kSame, kReshaped, kTransposed, kPart } kind = Kind::kSame;
  std::vector<int> dims;
  std::vector<int64_t> steps;
};

// A tensor of the run: an input, a result, a weight or what lies between. Instructions name it by
// its place in Program::buffers.
struct ProgramBuffer {
  // As the model or the compiler calls the value, and its type with symbolic extents.
  std::string name;
  TensorType type;
  Expr elements;  // of the storage: more than the type's product where a layout pads
  // How elements lie in the storage, and where the storage comes from (kind).
  Layout layout;
  StorageKind kind = StorageKind::kTemporary;
  ConstantRef constant;   // kConstant: row-major contents; laid out by `layout` in the executable
  int32_t alias_of = -1;  // a view of another buffer, from this byte of it on
  int64_t alias_offset = 0;
  ViewMap view;                         // how a view maps the elements of alias_of
  bool dynamic = false;                 // its size depends on a symbol that the run defines
  bool updated = false;                 // kInput: a run may store to it
  int32_t first_use = 0, last_use = 0;  // instructions of the main block, both included
};

// Runs a kernel. One buffer per parameter, one extent per scalar; profile: a row, or -1.
struct CallInstruction {
  // Index in Program::kernels; the others as the comment above says.
  int32_t kernel = -1;
  std::vector<int32_t> buffers;
  std::vector<Expr> scalars;
  int32_t profile = -1;
};
// symbol = element `index` of an i64 `buffer`; an error where it is not in [0, limit]. `what`: what a value below 0
// means; empty: it has no meaning of its own.
struct DefineSymbolInstruction {
  Var symbol;
  int32_t buffer;
  int64_t index;
  int64_t limit;
  std::string what;
};
// From here on the dynamic `buffer` has storage, of the size that its extents have now.
struct AllocateInstruction {
  int32_t buffer;
};
// `to` <- `from`: all bytes, of buffers of one size in storage.
struct CopyInstruction {
  int32_t to, from;
};
// Enters then_block or else_block (-1: nothing) by the bool scalar in buffer `condition`.
struct IfInstruction {
  int32_t condition;
  int32_t then_block, else_block;
};
struct FailInstruction {  // ends the run with an error
  // What the error says.
  std::string message;
};
struct CheckIndicesInstruction {  // ends the run with an error when an index is out of range
  int32_t indices, farthest;      // as checked_indices has them (ir/ops/index_checks.cpp)
  // Of the dimensions dim, dim + 1, ... that indices point into; `node`: whom the error names.
  std::vector<Expr> extents;
  int64_t dim = 0;
  std::string node;
};
struct RequireInstruction {  // ends the run with an error when the extents are not as compiled for
  // Extents over symbols that are defined here.
  Expr a, b;
  Relation relation = Relation::kEqual;
  std::string what;  // "mul 'y': extents n and m"
};
// Bytes [begin, end) of `buffer`, which the caller sees, have their values for this run: the session's Collectives
// get them (runtime/collectives.h). Nothing may read or write them afterwards.
struct StartInstruction {
  int32_t buffer;
  int64_t begin, end;
  int64_t number;  // from 0 on, in the order of the main block
};
struct LoopInstruction {  // as runtime's LoopDesc
  // Buffers and the block of the body; -1: none.
  int32_t trip_count = -1, initial_condition = -1, iteration = -1, body = -1, body_condition = -1;
  std::vector<std::pair<int32_t, int32_t>> carried;  // (state, computed by the body)
  std::vector<std::pair<int32_t, int32_t>> scans;    // (element, stacked result)
  Var count;                                         // number of iterations run; null: unused
};
// All instructions. std::visit over it leaves none out.
using ProgramInstruction =
    std::variant<CallInstruction, DefineSymbolInstruction, AllocateInstruction, CopyInstruction,
                 IfInstruction, LoopInstruction, FailInstruction, CheckIndicesInstruction,
                 RequireInstruction, StartInstruction>;

// What the profiler prints for a call, and what a call does at least: operations and bytes of
// operands.
struct ProfileEntry {
  std::vector<std::string> nodes;  // of the source model
  // Of the kernel called; operations and bytes are expressions over the program's symbols.
  std::string kernel;
  Expr flops, bytes;
};

// One variant of a model, compiled: graph control flow as blocks of instructions, operators as
// kernels.
struct Program {
  // The graph's, and the numerics that its kernels obey.
  std::string name;
  Numerics numerics = Numerics::kStandard;
  std::vector<Var> symbols;  // those of the inputs first
  // By number; `inputs` and `outputs` name some of them in the order of the signature.
  std::vector<ProgramBuffer> buffers;
  std::vector<int32_t> inputs, outputs;
  std::vector<Kernel> kernels;         // flat loops, distinct
  std::vector<std::string> schedules;  // of each, the steps that led to it, one a line
  std::vector<std::vector<ProgramInstruction>> blocks;  // the first is the main one
  // By the number that calls state.
  std::vector<ProfileEntry> profile;
};

}  // namespace tilewright::ir
