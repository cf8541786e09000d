// Which build of a library is loaded in this process.
#pragma once

#include <string>

namespace tilewright::cache {

// The linker's build id of the program or library that has `address`, in hexadecimal; empty: the
// linker gave it none.
std::string build_id(const void* address);

}  // namespace tilewright::cache
