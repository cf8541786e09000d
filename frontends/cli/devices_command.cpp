// tilewright devices: what this machine offers, and how fast it was measured to be.
#include <cstdio>
#include <iostream>

#include "codegen/backend.h"
#include "codegen/measure/machine_cache.h"
#include "codegen/measure/machine_file.h"
#include "frontends/cli/cli.h"
#include "runtime/device_cpu.h"

namespace tilewright::cli {

namespace {

void print_cpu(const CpuInfo& info) {
  std::cout << "cpu: " << info.model
            << "\n  CPUs available to this process: " << info.available_cpus
            << "\n  vector registers: " << info.vector_bytes * 8
            << " bits\n  caches of a core: " << info.l1_data_bytes / 1024 << " KiB L1, "
            << info.l2_bytes / 1024 << " KiB L2, " << info.l3_bytes / 1024
            << " KiB L3 (shared)\n  features:";
  for (const std::string& f : info.features) std::cout << " " << f;
  const Result<const codegen::Backend*> backend = codegen::open_backend();
  if (!backend.ok()) return void(std::cout << "\n");
  const Result<ir::MachineDescription> machine = (*backend)->describe("native");
  if (machine.ok()) std::cout << "\n  name for --cpu: " << machine->cpu;
  std::cout << "\n";
}

void print_speed(const ir::MachineSpeed& speed) {
  char line[120];
  std::snprintf(line, sizeof line, "  %-36s %10s %10s\n", "measured", "one thread", "all");
  std::cout << line;
  for (const measure::Term& t : measure::terms()) {
    char all[16] = "";
    if (t.of_all) std::snprintf(all, sizeof all, "%.4g", speed.*t.of_all);
    std::snprintf(line, sizeof line, "  %-36s %10.4g %10s %s\n", t.meaning, speed.*t.value, all,
                  t.unit);
    std::cout << line;
  }
}

}  // namespace

int devices_command(bool measure) {
  print_cpu(cpu_info());
  const std::string file = measure::cache_file();
  if (measure) {
    std::string note;
    print_speed(measure::cached_speed(true, &note));
    if (note.empty())
      std::cout << "  kept in " << file << "\n";
    else
      std::cerr << note << "\n";
    return kOk;
  }
  const Result<ir::MachineSpeed> speed = measure::read_speed(file);
  if (speed.ok()) {
    print_speed(*speed);
    return kOk;
  }
  if (speed.error().kind != ErrorKind::kIo) std::cerr << speed.error().to_string() << "\n";
  std::cout << "  not measured: `tilewright devices --measure` does so, in a few seconds\n";
  return kOk;
}

int describe_command(const ModelOptions& options) {
  const Result<passes::LowerOptions> lower = lower_options(compile_options(options));
  if (!lower.ok()) return report(lower.error());
  std::cout << measure::to_json(lower->machine);
  return kOk;
}

}  // namespace tilewright::cli
