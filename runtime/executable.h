// The executable: what a compiled model is, in memory and in a shared object. Kernels, constants
// and the program the session runs. Plain data; the compiler assembles it
// (codegen/assemble_executable), the session executes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/numerics.h"
#include "runtime/core/result.h"
#include "runtime/kernel_abi.h"

namespace tilewright {

// One step of an integer expression in postfix order; the session evaluates it over the symbol
// values.
enum class SizeOp : uint8_t {
  kConstant,
  kSymbol,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kAnd,
  kOr,
  kNot,
  kSelect
};
struct SizeStep {
  // Whether it pushes a number or replaces the topmost operands by their result.
  SizeOp op;
  int64_t value = 0;  // kConstant: the number; kSymbol: the symbol's index
};
using SizeExpr =
    std::vector<SizeStep>;  // kSelect pops (condition, a, b) and pushes condition ? a : b

// kRunKey: two u32 that the session gives for each run (SessionOptions::seed).
enum class BufferKind : uint8_t { kInput, kOutput, kConstant, kTemporary, kRunKey };
struct BufferDesc {
  // The value's name in the model, or the compiler's for what lies between; errors name it.
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<SizeExpr> dims;  // logical extents, row-major for inputs and outputs
  SizeExpr bytes;              // storage; at least product(dims) * size
  // Who owns the storage.
  BufferKind kind = BufferKind::kTemporary;
  int64_t constant_offset = -1;  // kConstant: byte offset in the constant section
  int32_t alias_of = -1;         // same storage as this other buffer (a view); -1: own storage
  int64_t alias_offset = 0;      // of a view: bytes behind where that begins, a multiple of 64
  bool dynamic =
      false;  // size depends on a symbol that the run itself defines: allocated at kAllocate
  bool updated = false;         // kInput: the run leaves new contents in the caller's tensor
  int32_t default_buffer = -1;  // kInput: the constant that it is where the caller gives nothing
  // Liveness over the instruction numbers of the main block, both ends included (inside a branch or
  // a body: those of the enclosing instruction). Two buffers whose intervals meet never share
  // memory.
  int32_t first_use = 0, last_use = 0;
};

enum class Op : uint8_t {
  kCall,          // kernel, buffers, scalars
  kDefineSymbol,  // symbol `target` = element `index` of int64 buffer buffers[0]; must lie in [0,
                  // limit]
  kAllocate,      // buffers[0] is dynamic: its size is known from here on
  kCopy,          // buffers[0] <- buffers[1], same bytes
  kIf,            // buffers[0]: bool scalar; block_a when true, block_b otherwise
  kLoop,          // see LoopDesc
  kFail,          // ends the run with the error `message`
  kCheckIndices,  // buffers[0]: indices; buffers[1]: for each of `scalars`, the extents that they
                  // point into, the largest of index + extent as u64: an error of the node
                  // `message` where that is twice the extent or more. `index`: the dimension of the
  // first; -1: they are no indices, buffers[1] has the largest as u64, which must be
  // less than the extent
  kRequire,  // an error, `message` and the two extents, when scalars[0] is not scalars[1]; with
             // index 1, when it is larger; with 2, when they are not equal and neither is 1
  kStart,  // bytes [index, limit) of buffers[0], an output or an updated input, have their values:
           // Collectives::start with number `target`. In the main block alone
};
struct Instruction {
  // Which of the fields below count, and how, follows from the operation (see Op).
  Op op = Op::kCall;
  int32_t target = -1;  // kCall: kernel; kDefineSymbol: symbol; kLoop: index in loops
  // Indices in Variant::buffers, in the order of the operation's operands.
  std::vector<int32_t> buffers;
  std::vector<SizeExpr> scalars;       // kCall: one per scalar parameter; kCheckIndices: extents
  int64_t index = 0, limit = 0;        // kDefineSymbol, kCheckIndices
  int32_t block_a = -1, block_b = -1;  // kIf: in Variant::blocks, -1: nothing to do
  int32_t profile = -1;                // row of Executable::profile, or -1
  std::string message;                 // kFail, kCheckIndices, kRequire; kDefineSymbol: of a value below 0
};

// kLoop: for (i = 0; i < trip_count && cond; ++i) {
//   iteration <- i; run body; append scans; cond <- body_cond;
//   carried[k].first <- carried[k].second, all at once }
// What the body computed is read before any state changes, so a scan element, the condition and
// the computed values may be views of state buffers.
struct LoopDesc {
  int32_t trip_count = -1;    // int64 scalar buffer; -1: no bound
  int32_t initial_cond = -1;  // bool scalar buffer; -1: true
  int32_t iteration = -1;     // int64 scalar buffer that the body reads; -1: unused
  int32_t body = -1;          // block
  int32_t body_cond = -1;     // bool scalar buffer the body writes; -1: true
  std::vector<std::pair<int32_t, int32_t>>
      carried;  // (state buffer, buffer the body computed): copied after each iteration
  // element: written by each iteration; result: dynamic and no view, [iterations, element...],
  // allocated by the loop itself
  struct Scan {
    int32_t element, result;
  };
  std::vector<Scan> scans;
  int32_t count_symbol =
      -1;  // symbol that holds the number of iterations run, defined after the loop; -1: unused
};

// One compiled function and the memory that a call of it asks for. Several calls may share it, with
// other buffers.
struct KernelDesc {
  // Its symbol; the profiler and errors print it.
  std::string name;
  TwKernel function = nullptr;                // resolved at load
  SizeExpr call_workspace, worker_workspace;  // bytes over the kernel's own scalars: kSymbol n is
                                              // scalar parameter n; empty: 0
  std::string schedule;  // the steps that led to its loops, one a line (passes/schedule/trace.h)
};

// What the profiler prints for one call: the model's own nodes.
struct ProfileRow {
  std::string nodes;  // names of the source nodes, comma-separated
  // The function called, and what one call does: floating-point operations, and bytes of the
  // operands that must move at least.
  std::string kernel;
  SizeExpr flops, bytes;
};

// One compiled form of the model. A model has several variants: specialised ones (all input extents
// fixed) come first.
struct Variant {
  std::vector<std::string> symbols;  // names; input symbols first
  // Instructions, kernels' arguments and other buffers (aliases) name buffers by their place here.
  std::vector<BufferDesc> buffers;
  std::vector<int32_t> inputs, outputs;  // buffers, in the model's order; two outputs may alias
  // The functions, and the blocks of instructions that call them.
  std::vector<KernelDesc> kernels;
  std::vector<std::vector<Instruction>> blocks;  // blocks[0] is the main block
  // Named by kLoop's `target`; and by `profile` of an instruction.
  std::vector<LoopDesc> loops;
  std::vector<ProfileRow> profile;
};

// Value of the symbol tilewright_abi of a compiled model; changes with kernel_abi.h, this header
// or the serialised form.
inline constexpr uint32_t kExecutableAbi = 12;

// A compiled model: all variants share one section of constants. Immutable once assembled; sessions
// of it may run at the same time.
struct Executable {
  std::string producer;  // "tilewright 0.1.0"
  // As the model's file names its graph; may be empty.
  std::string model_name;
  std::string cpu;                        // the CPU the code was made for, e.g. "znver5"
  std::vector<std::string> cpu_features;  // required: "avx512f", "avx512vl", ...
  // The number of threads that schedules were chosen for; any other number runs and gives equal
  // results.
  int64_t schedule_threads = 1;
  Numerics numerics = Numerics::kStandard;  // at which it was compiled
  // At least one, all with the same names and element types of inputs and outputs.
  std::vector<Variant> variants;
  const uint8_t* constants = nullptr;  // 64-byte aligned
  int64_t constants_bytes = 0;         // of the section at `constants`
  std::shared_ptr<void> owner;  // keeps code and constants alive: JIT code, a library, a file
};

// Serialised form of everything but code and constants: little-endian, versioned, checked when
// read.
std::vector<uint8_t> serialize_executable(const Executable& executable);
Result<Executable> deserialize_executable(const uint8_t* data, size_t size);

// Opens a model compiled to a shared object, which exports
//   uint32_t tilewright_abi;
//   uint8_t tilewright_metadata[]; uint64_t tilewright_metadata_size;    (the serialised form)
//   uint8_t tilewright_constants[]; uint64_t tilewright_constants_size;  (64-byte aligned)
//   TwKernel tilewright_kernels[]; uint64_t tilewright_kernel_count;     (over all variants)
// and ends with a seal (seal.h) that was made with `label`. The file may be replaced by another one
// (rename) while the executable lives, but not be written to: its pages are those of the file.
// Errors: not a Tilewright model, damaged, without a seal, another ABI version, a CPU that lacks a
// required feature (named), rewritten while another executable from the file lives.
Result<std::shared_ptr<Executable>> load_executable(const std::string& path,
                                                    std::string_view label = {});

}  // namespace tilewright
