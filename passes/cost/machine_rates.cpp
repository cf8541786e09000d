#include "passes/cost/machine_rates.h"

#include <algorithm>

namespace tilewright::passes {

using namespace ir;

Rates rates_of(const MachineDescription& m, double used) {
  const MachineSpeed& s = m.speed;
  Rates r{};
  r.cycles = used * s.clock_ghz * 1e3;
  if (s.measured) {
    r.flops = used * s.f32_gflops * 1e3;
    r.l2 = used * s.l2_read * 1e3;
    r.l3 = std::min(used * s.l3_read, std::max(s.l3_read, s.l3_read_all)) * 1e3;
    r.memory = std::min(used * s.memory_read, std::max(s.memory_read, s.memory_read_all)) * 1e3;
    return r;
  }
  // The figures are of one core with vectors of 32 bytes. One with wider vectors is taken to have
  // caches and memory in proportion, and two cores to take all that memory gives.
  const double width = static_cast<double>(m.vector_bytes) / 32;
  r.flops = used * width * s.f32_gflops * 1e3;
  r.l2 = used * width * s.l2_read * 1e3;
  r.l3 = used * width * s.l3_read * 1e3;
  r.memory = std::min(used, 2.0) * width * s.memory_read * 1e3;
  return r;
}

double cache_rate(const MachineDescription& m, const Rates& r, double bytes) {
  constexpr double kUsableL2 = 0.75;  // beside what streams through it
  if (bytes <= kUsableL2 * static_cast<double>(m.l2_bytes)) return r.l2;
  return bytes <= static_cast<double>(m.l3_bytes) / 2 ? r.l3 : r.memory;
}

MachineDescription nominal(MachineDescription machine) {
  machine.threads = 1;
  machine.speed = {};
  return machine;
}

}  // namespace tilewright::passes
