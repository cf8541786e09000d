// The linker's output as a file that is written with its errors seen.
#pragma once

#include <string>
#include <vector>

#include "codegen/backend.h"
#include "runtime/core/write_file.h"

namespace tilewright::codegen {

// Links objects into the file. The linker writes through a mapping of its own where it can, in which a full disk
// is a signal: it is given a pipe, and what comes out of that is written here. Errors: kIo, of the linker or the file.
Status link_output(const Backend& backend, const std::vector<std::string>& objects,
                   FileWriter& file);

}  // namespace tilewright::codegen
