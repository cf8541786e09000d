#include "autotune/check/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace tilewright::autotune {

Result<SharedMemory> SharedMemory::make(int64_t bytes) {
  SharedMemory m;
  m.descriptor_ = ::memfd_create("tilewright", MFD_CLOEXEC);
  void* at = MAP_FAILED;
  if (m.descriptor_ >= 0 && ::ftruncate(m.descriptor_, bytes) == 0)
    at = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                m.descriptor_, 0);
  if (at == MAP_FAILED)
    return limit_error("no " + std::to_string(bytes) + " bytes of memory to share with a process");
  m.data_ = static_cast<uint8_t*>(at);
  m.bytes_ = bytes;
  return m;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tilewright::autotune
