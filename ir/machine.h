// What schedules and code generation need to know of a CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"

namespace tilewright::ir {

// What a CPU does in a second: measured (`tilewright devices --measure`), or else figures of a
// modest core with AVX2, of which all are positive. One core, and with `_all` behind the name every
// CPU of the process at once. GFLOP/s count a multiply-add as two; GB are 1e9 bytes.
struct MachineSpeed {
  // False: the figures are the defaults below.
  bool measured = false;
  bool given = false;             // in a file that describes the machine, and so a part of it
  double clock_ghz = 3;           // while one core computes
  double fma_latency_cycles = 4;  // without FMA: of a multiplication and an addition
  double fma_ports = 2;           // multiply-adds of the widest vectors per cycle
  // Peaks of arithmetic and of the memory hierarchy: the roofs of a roofline model.
  double f32_gflops = 96, f32_gflops_all = 96;
  double int8_gops = 192, int8_gops_all = 192;  // products of 8 bits, summed in 32
  double l1_read = 150, l1_read_all = 150;      // GB/s, here and below
  double l2_read = 80, l2_read_all = 80;
  double l3_read = 30, l3_read_all = 30;
  double memory_read = 12, memory_read_all = 12;
  double memory_write = 6, memory_write_all = 6;  // past the caches, as kernels store large results
  double memory_copy = 10, memory_copy_all = 10;  // bytes read and written, likewise
  double handed_over = 10;  // GB/s: what one core reads of what another has just written
  double fork_join_us = 1;  // of the pool with all workers, beside the work; measured: at least 1
  double serial_call_us = 0.02;  // of a parallel call that runs on its caller
};

constexpr int64_t kCacheLine = 64;  // bytes, on every target

// The target of a compilation. Instructions come from `features`; the other fields are what
// schedules derive tiles, vectors and forks from.
struct MachineDescription {
  std::string cpu = "x86-64-v3";      // LLVM's name
  std::vector<std::string> features;  // LLVM's names, without + or -; sorted
  int vector_bytes = 32;              // widest vectors worth using
  int vector_registers = 16;          // architectural: 32 with AVX-512
  bool has_masks = false;             // masked loads and stores at full speed (AVX-512)
  bool has_fma = true;                // multiply and add in one rounding (FMA3)
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20,
          l3_bytes = 8 << 20;  // of one core; the last shared
  int threads = 1;             // what schedules assume; any number may run
  MachineSpeed speed;          // never measured by describe_machine
  // By LLVM's name, as in `features`.
  bool has(std::string_view feature) const {
    return std::find(features.begin(), features.end(), feature) != features.end();
  }
  // Has it a unit that multiplies tiles of matrices (AMX) whose left operand has this type?
  bool has_matrix_unit(DType left) const {
    return has("amx-tile") && ((left == DType::kUInt8 && has("amx-int8")) ||
                               (left == DType::kBFloat16 && has("amx-bf16")));
  }
  // One instruction for four products of bytes and their sum (VNNI).
  bool has_byte_dots() const { return has("avx512vnni") || has("avxvnni"); }
  // Elements in a vector register: 8 of f32 with AVX.
  int lanes(int element_bytes) const { return vector_bytes / element_bytes; }
};

}  // namespace tilewright::ir
