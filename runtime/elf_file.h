// A look at an ELF file before the system's loader maps it: a truncated file would crash that, and
// code of a file that is no model would run (constructors, resolvers of symbols, other libraries).
#pragma once

#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace tilewright {

// Whether `path` is a complete 64-bit shared object for this machine: all headers, segments and
// sections lie inside the file. Errors: kIo when it cannot be read; invalid "not a shared object",
// "truncated: ...".
Status check_shared_object(const std::string& path);
// Whether this shared object can be opened without running code: it exports all of `symbols`, has
// no code that runs when it is opened or closed, needs no other library, and its relocations add
// its address and nothing else. Errors: as above, and invalid "not a tilewright model: ...".
Status check_passive_object(const std::string& path, const std::vector<std::string>& symbols);

}  // namespace tilewright
