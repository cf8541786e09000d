// A compiled model's file, checked and mapped: the file that was checked is the one that is mapped,
// whatever happens to its name meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace tilewright {

// The library of one file; sessions of it share its code and constants.
class ModelLibrary {
 public:
  virtual ~ModelLibrary() = default;
  // The exported object `name` (one of those that executable.h lists), which has at least `bytes`
  // bytes.
  virtual Result<const uint8_t*> find(const char* name, uint64_t bytes) const = 0;
  // Whether an address is one of the library's instructions.
  virtual bool is_code(const void* address) const = 0;
};

// Opens the file once and checks its seal (see seal.h for `label`) and its ELF structures before
// the system's loader maps it. A file that is loaded already is shared. One descriptor stays open
// as long as the library lives. Safe in several threads, and in the child of a fork. Errors: kIo;
// not a model; damaged; without a seal; rewritten while a library of the same file lives.
Result<std::shared_ptr<const ModelLibrary>> open_model_library(const std::string& path,
                                                               std::string_view label);

}  // namespace tilewright
