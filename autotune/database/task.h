// What is tuned, and where the result holds.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "runtime/core/numerics.h"

namespace tilewright::autotune {

// A kernel with blocks by its structure, shapes and numbers included, and by which of its parameters
// are known at compile time: "conv_add_relu-0123456789abcdef". Neither names of a model's values nor
// the kernel's number have a say.
std::string task_key(const ir::Kernel& kernel, const std::set<std::string>& constants);

// The same for kernels that differ in numbers and extents alone: what is good for one may be good for
// another.
std::string family_key(const ir::Kernel& kernel, const std::set<std::string>& constants);

// What else a schedule's time depends on: the CPU that is compiled for, with its vectors and caches,
// the threads that schedules assume, and numerics: "znver5-0123456789abcdef, 2 threads, standard".
// Measured speeds change from day to day and have no say; those that a file gives have.
std::string device_key(const ir::MachineDescription& machine, Numerics numerics);

// 16 hexadecimal digits.
std::string hex(uint64_t n);

}  // namespace tilewright::autotune
