// A machine's description as a file: JSON that people write, to compile for a CPU that is not at
// hand, or to see what schedules make of other caches and speeds.
#pragma once

#include <functional>
#include <string>

#include "ir/machine.h"
#include "runtime/core/result.h"

namespace tilewright::measure {

// All fields but the threads, by their names in ir::MachineDescription; the speed where it was
// measured or given, by the names of terms().
std::string to_json(const ir::MachineDescription& machine);

using DescribeCpu = std::function<Result<ir::MachineDescription>(const std::string& cpu)>;

// The machine that the file and `describe` tell together: where the file has no field, that of the
// CPU it names or, where it names none, of `cpu`. Speeds it gives all or none. Errors: kIo;
// kInvalid, which name the field and what is expected there; those of `describe`. Whether code can
// be made for the machine, Backend::check says.
Result<ir::MachineDescription> read_machine(const std::string& file, const std::string& cpu,
                                            const DescribeCpu& describe);
// The same of the file's contents.
Result<ir::MachineDescription> parse_machine(const std::string& text, const std::string& cpu,
                                             const DescribeCpu& describe);

}  // namespace tilewright::measure
