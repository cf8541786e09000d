// A look at an ELF file before the system's loader maps it: a truncated file would crash that.
#pragma once

#include <string>

#include "runtime/core/result.h"

namespace tilewright {

// Whether `path` is a complete 64-bit shared object for this machine: all headers, segments and
// sections lie inside the file. Errors: kIo when it cannot be read; invalid "not a shared object",
// "truncated: ...".
Status check_shared_object(const std::string& path);

}  // namespace tilewright
