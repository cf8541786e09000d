// Compiled kernels by their contents: one whose loops, machine and compiler are those of a kernel that
// was compiled before is taken from the cache. So a tuner's rounds compile what changed, and the
// second start of a model compiles nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/cache/file_cache.h"

namespace tilewright::codegen {

// The kernel's name and loops as a symbol, "conv_add_0123...": kernels of one symbol have the same
// code, whatever their numbers in their programs.
std::string content_symbol(const ir::Kernel& kernel);

// A name for the code of a kernel that was compiled as `symbol`: loops that differ may have the same.
std::string object_code(const CompiledKernel& compiled, const std::string& symbol);

// Backend::compile for kernels whose names are content_symbol's. `cache`: null: all are compiled.
Result<std::vector<CompiledKernel>> compile_cached(
    const Backend& backend, const std::vector<const ir::Kernel*>& kernels,
    const ir::MachineDescription& machine, int threads,
    const std::function<void(size_t done, size_t total)>& progress, cache::FileCache* cache);

}  // namespace tilewright::codegen
