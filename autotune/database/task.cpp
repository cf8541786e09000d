#include "autotune/database/task.h"

#include <cstdio>

#include "codegen/measure/machine_cache.h"
#include "ir/loops/compare.h"
#include "ir/program/kernel_name.h"
#include "ir/text/printer_loops.h"
#include "runtime/core/fnv.h"

namespace tilewright::autotune {

std::string hex(uint64_t n) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
  return text;
}

namespace {

std::string key(const ir::Kernel& kernel, const std::set<std::string>& constants,
                std::string structure) {
  for (const ir::Buffer& p : kernel.params) structure += constants.count(p->name) != 0 ? "c" : "-";
  return ir::unnumbered_name(kernel.name) + "-" + hex(fnv1a(structure));
}

}  // namespace

std::string task_key(const ir::Kernel& kernel, const std::set<std::string>& constants) {
  return key(kernel, constants, hex(ir::structural_hash(kernel)));
}

// Of the kernel's text every number is one digit, be it of an extent or of a name.
std::string family_key(const ir::Kernel& kernel, const std::set<std::string>& constants) {
  ir::Kernel unnamed = kernel;
  unnamed.name = "k";
  std::string text;
  for (const char c : ir::to_text(unnamed)) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || text.empty() || text.back() != '0') text += is_digit ? '0' : c;
  }
  return key(kernel, constants, std::move(text));
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
