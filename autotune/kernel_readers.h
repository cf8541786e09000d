// Who reads what a kernel writes: how a kernel leaves its results in caches or memory, they pay for.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/program/program.h"

namespace tilewright::autotune {

// Kernels by name; those that read any of its results, in whatever block, itself left out.
using KernelReaders = std::map<std::string, std::set<std::string>>;
KernelReaders kernel_readers(const ir::Program& program);

}  // namespace tilewright::autotune
