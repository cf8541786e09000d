#include "autotune/task.h"

#include <cstdio>

#include "codegen/measure/machine_cache.h"
#include "ir/loops/compare.h"
#include "ir/program/kernel_name.h"
#include "runtime/core/fnv.h"

namespace tilewright::autotune {

std::string hex(uint64_t n) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
  return text;
}

std::string task_key(const ir::Kernel& kernel, const std::set<std::string>& constants) {
  std::string known = hex(ir::structural_hash(kernel));
  for (const ir::Buffer& p : kernel.params) known += constants.count(p->name) != 0 ? "c" : "-";
  return ir::unnumbered_name(kernel.name) + "-" + hex(fnv1a(known));
}

std::string device_key(const ir::MachineDescription& machine, Numerics numerics) {
  std::string all = std::to_string(machine.vector_bytes) + " " + std::to_string(machine.l1_bytes) +
                    " " + std::to_string(machine.l2_bytes) + " " + std::to_string(machine.l3_bytes);
  for (const std::string& f : machine.features) all += " " + f;
  all += "; " + std::to_string(machine.vector_registers) + (machine.has_masks ? " masks" : "") +
         (machine.has_fma ? " fma" : "");
  if (machine.speed.given)
    for (const measure::Term& t : measure::terms()) {
      char figures[64];
      std::snprintf(figures, sizeof figures, " %.17g %.17g", machine.speed.*t.value,
                    t.of_all ? machine.speed.*t.of_all : 0);
      all += figures;
    }
  return machine.cpu + "-" + hex(fnv1a(all)) + ", " + std::to_string(machine.threads) +
         (machine.threads == 1 ? " thread, " : " threads, ") + std::string(name(numerics));
}

}  // namespace tilewright::autotune
