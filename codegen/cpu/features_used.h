// Which of a machine's instruction sets the code of a kernel may use.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::cpu {

// The features of `available` that the kernel's code is compiled with, in their order there: all
// but those for special element types that it has not.
std::vector<std::string> features_used(const ir::Kernel& kernel,
                                       const std::vector<std::string>& available);

// Of `available`, those that code may use whatever its element types.
std::vector<std::string> base_features(const std::vector<std::string>& available);

}  // namespace tilewright::cpu
