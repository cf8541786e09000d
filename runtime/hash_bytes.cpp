#include "runtime/hash_bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/device_cpu.h"

namespace tilewright {

Hash128 hash_bytes_baseline(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

Hash128 hash_bytes(const void* data, size_t bytes) {
#if defined(__x86_64__)
  static const bool wide = cpu_has("avx2");
  if (wide) return hash_bytes_avx2(data, bytes);
#endif
  return hash_bytes_baseline(data, bytes);
}

}  // namespace tilewright
