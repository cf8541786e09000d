// The rules an executable obeys; everything the session relies on without checking again.
#pragma once

#include "runtime/executable.h"

namespace tilewright {

inline constexpr int kBlockDepthLimit = 64;  // of nested branches and loops

// Indices lie in their tables, expressions are well formed, element types fit, blocks form a tree
// under block 0, and each temporary is used only within its stated life. Does not ask for resolved
// kernels. The error's location is the variant.
Status check_executable(const Executable& executable);

}  // namespace tilewright
