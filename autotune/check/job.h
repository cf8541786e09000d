// What a tuner and the process that checks its candidates share: a piece of memory with this header,
// then jobs, operands and scalars, and another with what the operands hold, which the process only
// reads. Plain data of one build; offsets are in bytes.
#pragma once

#include <cstdint>

namespace tilewright::autotune {

enum class CheckState : int32_t {
  kWaiting,
  kRunning,   // where the process ended: the job that it ended in
  kEnded,     // so that it is no longer running
  kEqual,     // results are as they must be
  kDiffers,   // CheckJob says where
  kNoMemory,  // the process may not have as much as the kernel wants
};

// One call of one kernel. Its state is written before the kernel runs and after its results were
// compared, so that a parent who finds kRunning in the memory of a process that is gone knows the
// culprit, and that the verdicts before it stand.
struct CheckJob {
  int32_t call = 0;                         // instruction of the main block
  int32_t first_operand = 0, operands = 0;  // in the kernel's order
  int32_t first_scalar = 0, scalars = 0;
  CheckState state = CheckState::kWaiting;
  double seconds = 0;   // that it may take
  int32_t operand = 0;  // kDiffers: which, and its element
  int64_t element = 0;
  double found = 0, expected = 0;
};

// A parameter of a kernel. What a kernel may only read lies on pages that cannot be written.
struct CheckOperand {
  int64_t bytes = 0;
  // Of the contents: what it holds before the call (-1: a constant of the executable) and what it must
  // hold afterwards (-1: it is only read).
  int64_t before = -1, after = -1;
  int32_t dtype = 0;
  int32_t constant = -1;  // in Variant::buffers
  int32_t unknown = 0;    // it is written, and nobody knows what it must hold then
};

struct CheckHeader {
  int32_t jobs = 0, operands = 0, scalars = 0;
  int32_t workers = 1;    // that a kernel believes to have
  int32_t same_bits = 0;  // else sums may be made in another order
  int64_t jobs_at = 0, operands_at = 0, scalars_at = 0, bytes = 0;
  int64_t contents_bytes = 0;
};

}  // namespace tilewright::autotune
