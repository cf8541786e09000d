// Peak arithmetic, as roofline models need it (Williams, Waterman and Patterson, 2009): loops whose
// operands stay in registers. Enough independent chains hide the latency of an FMA; a single chain
// measures it. The empty asm keeps the compiler from merging or dropping iterations.
#include "codegen/measure/arithmetic_loops.h"

#include <immintrin.h>

#include "runtime/device_cpu.h"

namespace tilewright::measure {

namespace {

// Long enough for what is around a call not to count: at 25 us a Xeon seemed a tenth slower.
constexpr int kRounds = 16000;
constexpr int kChains = 12;  // independent sums: more than latency times throughput

// The statements behind TERM change sums[c] by factor and term, over and over for CHAINS sums side
// by side; returns the operations when they make OPERATIONS.
#define TW_CHAINS(NAME, TARGET, CHAINS, OPERATIONS, VECTOR, FACTOR, TERM, ...)    \
  __attribute__((target(TARGET), noinline)) double NAME() {                       \
    VECTOR sums[CHAINS], factor = FACTOR, term = TERM;                            \
    _Pragma("GCC unroll 12") for (int c = 0; c < (CHAINS); ++c) sums[c] = factor; \
    for (int r = 0; r < kRounds * kChains / (CHAINS); ++r)                        \
      _Pragma("GCC unroll 12") for (int c = 0; c < (CHAINS); ++c) {               \
        __VA_ARGS__;                                                              \
        asm volatile("" : "+v"(sums[c]), "+v"(term));                             \
      }                                                                           \
    return double{OPERATIONS} * kRounds * kChains;                                \
  }

#define TW_F32(NAME, CHAINS, COUNT_OF)                                                   \
  TW_CHAINS(NAME##_512, "avx512f", CHAINS, COUNT_OF(16), __m512, _mm512_set1_ps(0.999f), \
            _mm512_set1_ps(1e-6f), sums[c] = _mm512_fmadd_ps(sums[c], factor, term))     \
  TW_CHAINS(NAME##_256, "avx2,fma", CHAINS, COUNT_OF(8), __m256, _mm256_set1_ps(0.999f), \
            _mm256_set1_ps(1e-6f), sums[c] = _mm256_fmadd_ps(sums[c], factor, term))     \
  TW_CHAINS(NAME##_128, "sse2", CHAINS, COUNT_OF(4), __m128, _mm_set1_ps(0.999f),        \
            _mm_set1_ps(1e-6f), sums[c] = _mm_add_ps(_mm_mul_ps(sums[c], factor), term))
#define TW_ELEMENTS(LANES) (2 * (LANES))
#define TW_INSTRUCTIONS(LANES) 1
TW_F32(multiply_adds, kChains, TW_ELEMENTS)
TW_F32(chain, 1, TW_INSTRUCTIONS)

TW_CHAINS(dot_512, "avx512f,avx512vnni", kChains, 128, __m512i, _mm512_set1_epi8(3),
          _mm512_set1_epi8(-2), sums[c] = _mm512_dpbusd_epi32(sums[c], factor, term))
TW_CHAINS(dot_256, "avx2,avxvnni", kChains, 64, __m256i, _mm256_set1_epi8(3), _mm256_set1_epi8(-2),
          sums[c] = _mm256_dpbusd_avx_epi32(sums[c], factor, term))
TW_CHAINS(dot_pairs_256, "avx2", kChains, 64, __m256i, _mm256_set1_epi8(3), _mm256_set1_epi8(-2),
          __m256i pairs = _mm256_maddubs_epi16(factor, term);
          sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(pairs, factor)))
TW_CHAINS(dot_pairs_128, "sse2", kChains, 16, __m128i, _mm_set1_epi16(3), _mm_set1_epi16(-2),
          __m128i pairs = _mm_madd_epi16(factor, term);
          sums[c] = _mm_add_epi32(sums[c], pairs))

enum class Width { k128, k256, k512 };
Width f32_width() {
  if (cpu_has("avx512f")) return Width::k512;
  return cpu_has("avx2") && cpu_has("fma") ? Width::k256 : Width::k128;
}

}  // namespace

int f32_lanes() { return 4 << static_cast<int>(f32_width()); }

double f32_multiply_adds() {
  switch (f32_width()) {
    case Width::k512: return multiply_adds_512();
    case Width::k256: return multiply_adds_256();
    case Width::k128: return multiply_adds_128();
  }
  return 0;
}

double f32_dependent_chain() {
  switch (f32_width()) {
    case Width::k512: return chain_512();
    case Width::k256: return chain_256();
    case Width::k128: return chain_128();
  }
  return 0;
}

double int8_dot_products() {
  if (cpu_has("avx512f") && cpu_has("avx512vnni")) return dot_512();
  if (cpu_has("avx2") && cpu_has("avxvnni")) return dot_256();
  return cpu_has("avx2") ? dot_pairs_256() : dot_pairs_128();
}

double dependent_additions() {
  uint64_t sum = 0, term = 1;
  for (int r = 0; r < kRounds; ++r)
    asm volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(term));
  return 64.0 * kRounds;
}

}  // namespace tilewright::measure
