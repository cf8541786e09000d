// What was measured of this machine, kept in one file per CPU model, features and number of CPUs:
// measured once, read by whoever asks.
#pragma once

#include <span>
#include <string>

#include "codegen/measure/measure_machine.h"
#include "ir/machine.h"
#include "runtime/core/result.h"
#include "runtime/device_cpu.h"

namespace tilewright::measure {

inline constexpr const char* kAll = "_all";

// One figure of a measurement, as the file and tables name it.
struct Term {
  const char* name;
  // As tables print them: "GB/s", and a phrase like "read from L2".
  const char* unit;
  const char* meaning;
  // Where the figure of one thread is kept.
  double ir::MachineSpeed::* value;
  double ir::MachineSpeed::* of_all = nullptr;  // with every CPU at once; its name ends in kAll
};
// All of them, in the order of tables and files.
std::span<const Term> terms();

inline constexpr double kLargestTerm = 1e9;  // in its unit

// The text of a file of figures, which is not trusted. Errors: kIo when there is none; kInvalid when
// it is no file, or larger than 64 KiB.
Result<std::string> read_figures(const std::string& file);

// $XDG_CACHE_HOME/tilewright/machine_<hash of what `cpu` is>.json, below ~/.cache by default; empty
// when neither variable names a folder.
std::string cache_file(const CpuInfo& cpu = cpu_info());

// The file is not trusted. Errors: kIo when there is none; invalid when it is damaged, of another
// version or of another machine than `cpu`.
Result<ir::MachineSpeed> read_speed(const std::string& file, const CpuInfo& cpu = cpu_info());
// Makes the folder where it is missing. Readers see the old file or the new one, never a part.
Status write_speed(const std::string& file, const ir::MachineSpeed& speed,
                   const CpuInfo& cpu = cpu_info());

// Puts what the file of this machine says into `machine`, which must describe it; false, and no
// change, where there is no such file. Measures nothing.
bool fill_speed(ir::MachineDescription& machine);

// From the file; measured and written there when it cannot be read or `again` says so. `note` (may
// be null) takes a line about a file that was refused or cannot be written.
ir::MachineSpeed cached_speed(bool again = false, std::string* note = nullptr,
                              ir::MachineSpeed (*measure)() = measure_machine);

}  // namespace tilewright::measure
