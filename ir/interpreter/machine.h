// The register machine that the interpreter compiles kernels to. An instruction is a function and
// the registers it works on; a register is a slot of 8 bytes, a vector is consecutive slots.
// Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/interpreter/scalar_ops.h"
#include "ir/loops/layout.h"
#include "runtime/core/result.h"

namespace tilewright::ir::interpreter {

struct Machine;
struct Inst;
// What an instruction does ("direct threaded code": the instruction holds the function's address).
using Handler = void (*)(Machine&, const Inst&);

// No register: an operand that an instruction does without.
inline constexpr uint32_t kNoReg = ~uint32_t{0};

// dst, a, b, c: registers, or what the handler says (a position to jump to, a row of a table); n:
// lanes.
struct Inst {
  // Called with the machine and this instruction; it moves `pc` only for jumps.
  Handler handler;
  uint32_t dst, a, b, c;
  int32_t n;
};

// A buffer while the kernel runs.
struct LiveBuffer {
  // As messages name it, and how its elements are found: those of `shape`, through `layout`.
  std::string name;
  DType dtype;
  Layout layout;
  uint8_t* data = nullptr;
  bool dense = true;  // row-major and no layout: the fast path
  // Concrete extents; `axes` is the layout applied to them, `elements` the room in storage.
  Shape shape;
  std::vector<PhysicalAxis> axes;
  int64_t elements = 0;
  std::vector<uint64_t> storage;  // when the machine owns it
  std::vector<uint8_t>
      written;  // one flag per element when uninitialised reads are to be found, else empty
};

// An index of an access: one register for each lane, or one for all.
struct Operand {
  // Lane l is in register reg + l * lane_stride.
  uint32_t reg;
  uint32_t lane_stride;  // 0: one value for all lanes
};

// One load or store: which buffer, where its indices are, and the loops around it (for messages).
struct Access {
  // Index in MachineCode::buffers; flat: one index into the storage.
  uint32_t buffer;
  bool flat;
  std::vector<Operand> indices;
  // Names and registers of the loops around, whose values an error prints.
  std::vector<std::pair<std::string, uint32_t>> scope;
};

// The axes of one block: value and extent of each, and which are reductions.
struct BlockAxes {
  // Of the block, and below of an axis; values and extents are registers.
  std::string name;
  struct Axis {
    // Names are for messages; value and extent are registers.
    std::string name;
    uint32_t value, extent;
    bool reduce;
  };
  std::vector<Axis> axes;
};

// A compiled kernel: instructions and the tables that they refer to by row.
struct MachineCode {
  // Ends with a halt.
  std::vector<Inst> code;
  std::vector<LiveBuffer> buffers;
  std::vector<Access> accesses;
  std::vector<BlockAxes> blocks;
  std::vector<Slot> constants;
  std::vector<std::pair<uint32_t, uint32_t>>
      shapes;  // allocation: first row and count of `shape_regs`, by buffer
  // Registers of extents, all buffers' one after the other.
  std::vector<uint32_t> shape_regs;
  uint32_t first_constant = 0;          // registers of the constants begin here
  std::vector<uint64_t> workspaces[2];  // of the call, and of the one worker that there is
};

// The state of a run.
struct Machine {
  // The registers, the next instruction, and the one that ends the run.
  Slot* r = nullptr;
  const Inst* pc = nullptr;
  const Inst* halt = nullptr;
  bool running = true;
  // See InterpretOptions; `error` is the first one, which ends the run.
  bool check_uninitialised = false;
  MachineCode* program = nullptr;
  std::optional<Error> error;

  // For handlers: go on at `position`, or at the end with an error.
  void jump(uint32_t position) { pc = program->code.data() + position; }
  void fail(std::string message) {
    error = internal_error(std::move(message));
    pc = halt;
  }
};

// Handlers, null where an operation has no meaning for the type. `vector`: for n lanes instead of
// one. binary: dst = a op b, c: mask of the lanes where a division by zero is an error (kNoReg:
// all). unary: dst = op a.
Handler binary_handler(BinaryOp op, DType t, bool vector);
Handler unary_handler(UnaryOp op, DType t, bool vector);
Handler cast_handler(DType from, DType to);
Handler bitcast_handler(DType from, DType to);

// load: dst, a: access, c: mask (lanes that are off give 0). store: a: access, b: value, c: mask.
Handler load_handler(DType t, bool vector);
Handler store_handler(DType t, bool vector);
// a: buffer; shape from the program's tables; b: where it begins in workspace n, kNoReg: apart; c:
// not kNoReg for a parameter.
void allocate_handler(Machine& m, const Inst& i);
void workspaces_handler(Machine& m, const Inst& i);  // a, b: bytes of the two
// The value of an immediate or of memory as a slot.
Slot decode(DType t, const void* bytes);

// Control: sets `running` to false; goes to c.
void halt_handler(Machine& m, const Inst& i);
void jump_handler(Machine& m, const Inst& i);           // c: position
void jump_if_false_handler(Machine& m, const Inst& i);  // a: condition, c: position
void for_begin_handler(Machine& m,
                       const Inst& i);  // dst: variable, a: extent, c: position behind the loop
void for_next_handler(Machine& m,
                      const Inst& i);  // dst: variable, a: extent, c: position of the body
void check_axes_handler(Machine& m,
                        const Inst& i);  // a: block; an axis outside its extent is an error
void jump_if_not_first_handler(
    Machine& m, const Inst& i);  // a: block, c: position; unless all reduce axes are 0
void copy_handler(Machine& m, const Inst& i);       // dst = a, n slots
void broadcast_handler(Machine& m, const Inst& i);  // dst (n lanes) = a
void repeat_handler(Machine& m, const Inst& i);     // dst (n lanes) = a (b: lanes), over and over
template <uint32_t terms>
void dot_handler(Machine& m, const Inst& i);        // dst = c + a . b, by lane (Dot)
void float_dot_handler(Machine& m, const Inst& i);  // the same, two terms of bf16 in f32
// dst = a (c: lanes) over and over, + b more each time, int64
void ramp_handler(Machine& m, const Inst& i);
void every_handler(Machine& m, const Inst& i);   // dst = lanes b, b + c, ... of a
void spread_handler(Machine& m, const Inst& i);  // lanes 0, b, 2 * b, ... of dst = a
void select_handler(Machine& m, const Inst& i);  // dst = c ? a : b, by lane
void any_handler(Machine& m, const Inst& i);     // dst = whether a lane of a is on

}  // namespace tilewright::ir::interpreter
