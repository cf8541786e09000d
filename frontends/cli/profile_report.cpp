// The profile of a run against what this machine can do.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "frontends/cli/cli.h"

namespace tilewright::cli {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kMeasureSeconds = 0.1;
constexpr int kChains = 12;  // independent sums: more than latency times throughput of an FMA

// sums = sums * factor + term in registers, over and over; returns the operations. STEP(sum,
// factor, term) is one.
#define TW_MULTIPLY_ADDS(NAME, TARGET, VECTOR, LANES, SPREAD, STEP)              \
  __attribute__((target(TARGET))) double NAME(float seed) {                      \
    VECTOR sums[kChains], factor = SPREAD(seed), term = SPREAD(1e-6f);           \
    for (int c = 0; c < kChains; ++c) sums[c] = SPREAD(static_cast<float>(c));   \
    constexpr int kRounds = 20000;                                               \
    for (int r = 0; r < kRounds; ++r)                                            \
      _Pragma("GCC unroll 12") for (int c = 0; c < kChains; ++c) sums[c] = STEP; \
    for (int c = 0; c < kChains; ++c) asm volatile("" : : "m"(sums[c]));         \
    return 2.0 * (LANES) * kChains * kRounds;                                    \
  }
TW_MULTIPLY_ADDS(multiply_adds_512, "avx512f", __m512, 16, _mm512_set1_ps,
                 _mm512_fmadd_ps(sums[c], factor, term))
TW_MULTIPLY_ADDS(multiply_adds_256, "avx2,fma", __m256, 8, _mm256_set1_ps,
                 _mm256_fmadd_ps(sums[c], factor, term))
TW_MULTIPLY_ADDS(multiply_adds_128, "sse2", __m128, 4, _mm_set1_ps,
                 _mm_add_ps(_mm_mul_ps(sums[c], factor), term))

double multiply_adds() {
  if (__builtin_cpu_supports("avx512f")) return multiply_adds_512(0.999f);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return multiply_adds_256(0.999f);
  return multiply_adds_128(0.999f);
}

// work() on every thread over and over; the sum of what it returns, per second.
template <typename Work>
double rate(int threads, Work work) {
  std::atomic<int> ready{0};
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      work(t);
      for (++ready; ready < threads;) std::this_thread::yield();
      const double start = seconds_now();
      double done = 0;
      while (seconds_now() - start < kMeasureSeconds) done += work(t);
      rates[static_cast<size_t>(t)] = done / (seconds_now() - start);
    });
  for (std::thread& t : all) t.join();
  double sum = 0;
  for (double r : rates) sum += r;
  return sum;
}

struct Peak {
  double flops, bytes;  // per second
};
Peak measure_peak(int threads) {
  constexpr size_t kWords = size_t{96} << 17;  // 96 MiB in all: more than most caches
  std::vector<uint64_t> memory(kWords, 1);
  const size_t share = kWords / static_cast<size_t>(threads);
  Peak peak{};
  peak.flops = rate(threads, [](int) { return multiply_adds(); });
  peak.bytes = rate(threads, [&](int t) {
    const uint64_t* from = memory.data() + share * static_cast<size_t>(t);
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 8 <= share; i += 8)
      for (size_t k = 0; k < 8; ++k) sums[k] += from[i + k];
    for (uint64_t& s : sums) asm volatile("" : : "m"(s));
    return static_cast<double>(share * sizeof(uint64_t));
  });
  return peak;
}

std::string line(double percent, double microseconds, int64_t calls, double flops, double bytes,
                 const Peak& peak, const std::string& what) {
  char text[160];
  const double seconds = std::max(microseconds, 1e-3) / 1e6;
  std::snprintf(text, sizeof text, "%6.2f%% %11.1f %6lld %11.3f %11.3f %7.1f%% %8.1f%%  ", percent,
                microseconds, static_cast<long long>(calls), flops / 1e6, bytes / 1e6,
                100 * flops / seconds / peak.flops, 100 * bytes / seconds / peak.bytes);
  return text + what + "\n";
}

}  // namespace

std::string profile_table(const std::vector<Profiler::Row>& rows, int64_t run_nanoseconds,
                          int threads) {
  const Peak peak = measure_peak(threads);
  int64_t in_kernels = 0, flops = 0, bytes = 0, calls = 0;
  for (const Profiler::Row& r : rows) {
    in_kernels += r.nanoseconds;
    flops += r.flops;
    bytes += r.bytes;
    calls += r.calls;
  }
  const int64_t whole = std::max({run_nanoseconds, in_kernels, int64_t{1}});
  auto share = [&](int64_t ns) {
    return 100.0 * static_cast<double>(ns) / static_cast<double>(whole);
  };
  auto row = [&](int64_t ns, int64_t n, int64_t f, int64_t b, const std::string& what) {
    return line(share(ns), static_cast<double>(ns) / 1e3, n, static_cast<double>(f),
                static_cast<double>(b), peak, what);
  };
  char head[200];
  std::snprintf(head, sizeof head,
                "measured peak of %d thread%s: %.1f GFLOP/s (f32), %.1f GB/s read from memory "
                "(caches are faster)\n",
                threads, threads == 1 ? "" : "s", peak.flops / 1e9, peak.bytes / 1e9);
  std::string text = head + std::string(
                                "  share          us  calls       MFLOP          MB  of peak  of "
                                "bandw.  nodes [kernel]\n");
  for (const Profiler::Row& r : rows)
    text += row(r.nanoseconds, r.calls, r.flops, r.bytes, r.nodes + " [" + r.kernel + "]");
  text += row(whole - in_kernels, 0, 0, 0, "(between kernels)");
  return text + row(whole, calls, flops, bytes, "(the whole run)");
}

}  // namespace tilewright::cli
