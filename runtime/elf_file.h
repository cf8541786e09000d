// A look at an ELF file before the system's loader maps it: a damaged file would crash that, and
// code of a file that is no model would run (constructors, resolvers of symbols, other libraries).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/elf_segments.h"

namespace tilewright {

struct PassiveObject {
  ElfSegments segments;
  std::map<std::string, uint64_t> symbols;  // addresses of those asked for
};

// A shared object that can be opened without running code: it exports all of `symbols` as data, has
// no code that runs when it is opened or closed, needs no other library, and its relocations add
// its address to pointers into itself, where it can be written, and nothing else. Errors: as of
// read_segments, and invalid "not a tilewright model: ...".
Result<PassiveObject> check_passive_object(std::span<const uint8_t> file,
                                           const std::vector<std::string>& symbols);

}  // namespace tilewright
