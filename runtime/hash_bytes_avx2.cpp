// Compiled with AVX2 (CMakeLists.txt). It includes nothing that other files share, so that no
// function with such instructions replaces one of theirs when they are linked.
#include "runtime/hash_bytes.h"

#if defined(__x86_64__)
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tilewright {

Hash128 hash_bytes_avx2(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

}  // namespace tilewright
#endif
