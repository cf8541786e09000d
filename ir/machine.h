// What schedules and code generation need to know of a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::ir {

struct MachineDescription {
  std::string cpu = "x86-64-v3";      // LLVM's name
  std::vector<std::string> features;  // LLVM's names, without + or -; sorted
  int vector_bytes = 32;              // widest vectors worth using
  int vector_registers = 16;
  bool has_masks = false;  // masked loads and stores at full speed (AVX-512)
  bool has_fma = true;
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20,
          l3_bytes = 8 << 20;  // of one core; the last shared
  int threads = 1;             // what schedules assume; any number may run
  int lanes(int element_bytes) const { return vector_bytes / element_bytes; }
};

}  // namespace tilewright::ir
