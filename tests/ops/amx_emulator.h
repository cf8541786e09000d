// Runs machine code with AMX instructions on a CPU that lacks them: each is an invalid opcode
// there, and a handler of SIGILL does what it would have done. On a CPU that has AMX nothing is
// emulated.
#pragma once

#include <csignal>
#include <cstdint>

namespace tilewright {

// While it lives; one at a time. Threads have their own tile registers. An invalid opcode that is
// no AMX instruction, or one that the tiles' configuration forbids, ends the process as ever.
class AmxEmulator {
 public:
  // Installs the handler of SIGILL, which the destructor takes away.
  AmxEmulator();
  ~AmxEmulator();
  // Products of tiles and writes of tiles to memory that were emulated, by all threads.
  int64_t products() const;
  int64_t stores() const;

 private:
  struct sigaction before_{};
};

}  // namespace tilewright
