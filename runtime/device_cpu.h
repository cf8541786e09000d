// The CPU at hand: what it can do, for refusing code made for another one and for sizing tiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace tilewright {

struct CpuInfo {
  std::string model;  // "AMD EPYC 9654 96-Core Processor"
  std::vector<std::string>
      features;  // LLVM's names, sorted: "avx2", "avx512f", ...; what the system also saves
  int available_cpus = 1;                                 // that this process may use
  int vector_bytes = 16;                                  // of the widest usable register
  int64_t l1_data_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // of one core's view; 0: unknown
};

// Asked of the machine once and kept; thread-safe. Features count only where the system saves their
// registers (XCR0), so that code for them runs.
const CpuInfo& cpu_info();

// By LLVM's name of the feature ("avx512vnni"); false for names it does not know.
bool cpu_has(const std::string& feature);

// Error (unsupported) that names every required feature this CPU lacks.
Status check_cpu_features(const std::vector<std::string>& required);

}  // namespace tilewright
