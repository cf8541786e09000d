// Loops of memory bandwidth with the widest vectors at hand, eight accesses per iteration.
#include "codegen/measure/memory_loops.h"

#include <immintrin.h>

#include "runtime/device_cpu.h"

namespace tilewright::measure {

namespace {

// One function per width. The values are opaque: a loop that a compiler sees through would become
// memset or memcpy, or nothing.
// Stores go past the caches, so that no line is read before it is written.
#define TW_PASSES(WIDTH, TARGET, VECTOR, LOAD, STORE, ZERO)                                     \
  __attribute__((target(TARGET))) void read_##WIDTH(const char* from, size_t bytes) {           \
    constexpr size_t kStep = sizeof(VECTOR);                                                    \
    for (size_t i = 0; i < bytes; i += 8 * kStep)                                               \
      _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; ++k) {                                  \
        VECTOR v = LOAD(reinterpret_cast<const VECTOR*>(from + i + k * kStep));                 \
        asm volatile("" : : "v"(v));                                                            \
      }                                                                                         \
  }                                                                                             \
  __attribute__((target(TARGET))) void write_##WIDTH(char* to, size_t bytes) {                  \
    constexpr size_t kStep = sizeof(VECTOR);                                                    \
    VECTOR v = ZERO();                                                                          \
    for (size_t i = 0; i < bytes; i += 8 * kStep)                                               \
      _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; ++k) {                                  \
        asm volatile("" : "+v"(v));                                                             \
        STORE(reinterpret_cast<VECTOR*>(to + i + k * kStep), v);                                \
      }                                                                                         \
  }                                                                                             \
  __attribute__((target(TARGET))) void copy_##WIDTH(char* to, const char* from, size_t bytes) { \
    constexpr size_t kStep = sizeof(VECTOR);                                                    \
    for (size_t i = 0; i < bytes; i += 8 * kStep)                                               \
      _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; ++k) {                                  \
        VECTOR v = LOAD(reinterpret_cast<const VECTOR*>(from + i + k * kStep));                 \
        asm volatile("" : "+v"(v));                                                             \
        STORE(reinterpret_cast<VECTOR*>(to + i + k * kStep), v);                                \
      }                                                                                         \
  }
TW_PASSES(512, "avx512f", __m512i, _mm512_load_si512, _mm512_stream_si512, _mm512_setzero_si512)
TW_PASSES(256, "avx", __m256i, _mm256_load_si256, _mm256_stream_si256, _mm256_setzero_si256)
TW_PASSES(128, "sse2", __m128i, _mm_load_si128, _mm_stream_si128, _mm_setzero_si128)

}  // namespace

double read_bytes(const char* from, size_t bytes) {
  static const auto pass = cpu_has("avx512f") ? read_512 : cpu_has("avx") ? read_256 : read_128;
  pass(from, bytes);
  return static_cast<double>(bytes);
}
double write_bytes(char* to, size_t bytes) {
  static const auto pass = cpu_has("avx512f") ? write_512 : cpu_has("avx") ? write_256 : write_128;
  pass(to, bytes);
  return static_cast<double>(bytes);
}
double copy_bytes(char* to, const char* from, size_t bytes) {
  static const auto pass = cpu_has("avx512f") ? copy_512 : cpu_has("avx") ? copy_256 : copy_128;
  pass(to, from, bytes);
  return 2 * static_cast<double>(bytes);
}

}  // namespace tilewright::measure
