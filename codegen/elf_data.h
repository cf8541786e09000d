// A relocatable ELF file that holds one block of read-only data: how constants and metadata get
// into a shared object without passing through LLVM IR.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/result.h"

namespace tilewright::codegen {

// Defines `name` (64-byte aligned, `bytes` long) and `name`_size (uint64). `fill` writes the bytes
// into zeroed memory.
Status write_elf_data(const std::string& path, const std::string& name, int64_t bytes,
                      const std::function<void(uint8_t*)>& fill);

}  // namespace tilewright::codegen
