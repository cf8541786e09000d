// Memory that another process can be given, by its descriptor.
#pragma once

#include <cstdint>

#include "runtime/core/result.h"

namespace tilewright::autotune {

class SharedMemory {
 public:
  SharedMemory() = default;  // none
  // Zeros; takes memory only for pages that are written. Errors: kLimit.
  static Result<SharedMemory> make(int64_t bytes);
  SharedMemory(SharedMemory&& other) noexcept { *this = static_cast<SharedMemory&&>(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }  // closed by exec

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace tilewright::autotune
