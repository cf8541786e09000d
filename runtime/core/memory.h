// Memory of the host for tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tilewright {

inline constexpr size_t kHostAlignment = 64;  // bytes; one cache line, one AVX-512 register

// Uninitialised memory of `bytes`, a multiple of kHostAlignment, aligned to it; for std::free().
// Null when there is none. Large pieces ask for large pages where the system leaves it to programs
// ("madvise"): fewer misses of the TLB where rows lie far apart, and 512 times fewer page faults.
inline void* allocate_memory(size_t bytes) noexcept {
  void* data = std::aligned_alloc(kHostAlignment, bytes);
#ifdef MADV_HUGEPAGE
  constexpr size_t kSmallPage = 4096, kLargePage = size_t{2} << 20;
  if (data && bytes >= 2 * kLargePage) {
    const uintptr_t begin =
                        (reinterpret_cast<uintptr_t>(data) + kSmallPage - 1) & ~(kSmallPage - 1),
                    end = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(kSmallPage - 1);
    // Refused by kernels without large pages, and then of no effect.
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
  return data;
}

}  // namespace tilewright
