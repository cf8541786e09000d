// Most figures are the best of many slices of some milliseconds, since other work on the machine
// only ever slows a slice down. Threads are kept in step by a barrier, so that rates of one moment
// are added. Bandwidths come from footprints of half a cache, where all of it is served by that
// level.
#include "codegen/measure/measure_machine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <vector>

#include "codegen/measure/arithmetic_loops.h"
#include "codegen/measure/memory_loops.h"
#include "runtime/core/check.h"
#include "runtime/device_cpu.h"
#include "runtime/thread_pool.h"

namespace tilewright::measure {

namespace {

// Short, so that some are not interrupted on a machine that does other work too.
constexpr double kSliceSeconds = 0.004;
constexpr size_t kSlices = 30;  // twice as many when several threads must not be interrupted

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Calls `each` with its number on every worker of the pool at once.
void on_every_worker(ThreadPool& pool, const std::function<void(int)>& each) {
  pool.parallel(
      nullptr, pool.worker_count(),
      [](TwKernelContext*, void* closure, int64_t begin, int64_t end, int64_t worker) {
        TW_CHECK(end - begin == 1);  // or the workers would wait for each other for ever
        (*static_cast<const std::function<void(int)>*>(closure))(static_cast<int>(worker));
      },
      const_cast<std::function<void(int)>*>(&each));
}

using Work = std::function<double()>;  // a short piece; what it did: bytes, operations

// What the workers do per second, all together: the best of several slices. start(t) runs on worker
// t and gives its work.
double best_rate(ThreadPool& pool, const std::function<Work(int)>& start) {
  const auto workers = static_cast<size_t>(pool.worker_count());
  const size_t slices = workers > 1 ? 2 * kSlices : kSlices;
  std::vector<std::vector<double>> rates(workers, std::vector<double>(slices));
  std::barrier together(static_cast<std::ptrdiff_t>(workers));
  on_every_worker(pool, [&](int t) {
    const Work work = start(t);
    work();
    for (double& rate : rates[static_cast<size_t>(t)]) {
      together.arrive_and_wait();
      const double begin = seconds_now();
      double done = 0, elapsed = 0;
      do {
        done += work();
        elapsed = seconds_now() - begin;
      } while (elapsed < kSliceSeconds);
      rate = done / elapsed;
    }
  });
  double best = 0;
  for (size_t s = 0; s < slices; ++s) {
    double sum = 0;
    for (const auto& r : rates) sum += r[s];
    best = std::max(best, sum);
  }
  return best;
}

double best_rate(ThreadPool& pool, double (*work)()) {
  return best_rate(pool, [work](int) { return Work(work); });
}

// Memory of its own, whose pages exist only once they are written.
class Region {
 public:
  explicit Region(size_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<char*>(p);
  }
  ~Region() { munmap(data_, bytes_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  char* data() const { return data_; }

 private:
  char* data_;
  size_t bytes_;
};

constexpr size_t kGrain = 4096;     // of what a worker owns
constexpr size_t kPiece = 1 << 18;  // bytes between two looks at the clock

enum class Access { kRead, kWrite, kCopy };

// GB/s of all workers, each of which walks over `share` bytes of its own, again and again.
double bandwidth(ThreadPool& pool, Access access, size_t share) {
  share = std::max(share / kGrain, size_t{1}) * kGrain;
  Region memory(share * static_cast<size_t>(pool.worker_count()));
  const size_t walked = access == Access::kCopy ? share / 2 : share;  // to the first half
  const size_t step = std::min(walked, kPiece);
  const double rate = best_rate(pool, [&](int t) {
    char* own = memory.data() + share * static_cast<size_t>(t);
    std::memset(own, 1, share);  // by its own worker: the pages are near it
    return [=, at = size_t{0}]() mutable {
      double done = 0;
      for (size_t moved = 0; moved < kPiece; moved += step) {
        const size_t now = std::min(step, walked - at);
        done += access == Access::kRead    ? read_bytes(own + at, now)
                : access == Access::kWrite ? write_bytes(own + at, now)
                                           : copy_bytes(own + at, own + walked + at, now);
        at = at + now < walked ? at + now : 0;
      }
      return done;
    };
  });
  return rate / 1e9;
}

size_t or_else(int64_t bytes, size_t fallback) {
  return bytes > 0 ? static_cast<size_t>(bytes) : fallback;
}

// Bytes a worker walks over to be served by one level and no nearer one.
struct Footprints {
  size_t l1, l2, l3, memory;
};
Footprints footprints(int workers) {
  const CpuInfo& cpu = cpu_info();
  const size_t n = static_cast<size_t>(workers), l1 = or_else(cpu.l1_data_bytes, 32 << 10),
               l2 = or_else(cpu.l2_bytes, 1 << 20), l3 = or_else(cpu.l3_bytes, 8 << 20);
  constexpr size_t kLeast = size_t{128} << 20, kMost = size_t{1} << 30;
  const size_t installed =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t memory = std::min(std::clamp(4 * l3, kLeast, kMost), installed / 8);
  return {l1 / 2, std::max(l2 / 2, 2 * l1), std::max(l3 / 2 / n, 2 * l2), memory / n};
}

struct LevelSpeed {
  double l1, l2, l3, memory_read, memory_write, memory_copy;
};
// Walks over a working set per level of the memory hierarchy, as STREAM does for memory alone.
LevelSpeed measure_levels(ThreadPool& pool) {
  const Footprints f = footprints(pool.worker_count());
  return {bandwidth(pool, Access::kRead, f.l1),      bandwidth(pool, Access::kRead, f.l2),
          bandwidth(pool, Access::kRead, f.l3),      bandwidth(pool, Access::kRead, f.memory),
          bandwidth(pool, Access::kWrite, f.memory), bandwidth(pool, Access::kCopy, f.memory)};
}

// Microseconds that a parallel call takes beyond its work: the median of calls of which each part
// takes longer than a worker takes to come, so that none is done by another in the meantime.
double fork_join_us(ThreadPool& pool) {
  constexpr double kPart = 4e-6;
  constexpr size_t kCalls = 4000;
  std::vector<double> beyond;
  for (size_t i = 0; i < kCalls; ++i) {
    const double begin = seconds_now();
    pool.parallel(
        nullptr, pool.worker_count(),
        [](TwKernelContext*, void*, int64_t first, int64_t last, int64_t) {
          const double end = seconds_now() + kPart * static_cast<double>(last - first);
          while (seconds_now() < end) {}
        },
        nullptr);
    beyond.push_back(seconds_now() - begin - kPart);
  }
  std::nth_element(beyond.begin(), beyond.begin() + kCalls / 2, beyond.end());
  // These workers wait for nothing else. In a run they may have moved to cores further apart, and
  // what a fork reads and writes has left their caches.
  constexpr double kLeast = 1e-6;
  return std::max(beyond[kCalls / 2], kLeast) * 1e6;
}

// GB/s of a worker that reads what another has just written: as much as a cache of its own holds.
// The median of many times, since cores may be near each other or far apart.
double handed_over(ThreadPool& pool) {
  if (pool.worker_count() < 2) return ir::MachineSpeed{}.handed_over;
  constexpr int kTimes = 400;
  const size_t bytes = footprints(2).l2 / 2 / kGrain * kGrain;
  Region memory(bytes);
  std::vector<double> rates;
  std::barrier together(pool.worker_count());
  on_every_worker(pool, [&](int t) {
    for (int i = 0; i < kTimes; ++i) {
      if (t == i % 2) std::memset(memory.data(), i, bytes);
      together.arrive_and_wait();
      const double begin = seconds_now();
      if (t == 1 - i % 2)
        rates.push_back(read_bytes(memory.data(), bytes) / (seconds_now() - begin));
      together.arrive_and_wait();
    }
  });
  std::nth_element(rates.begin(), rates.begin() + kTimes / 2, rates.end());
  return rates[kTimes / 2] / 1e9;
}

// Microseconds of a parallel call over `count` empty iterations, one after another.
double call_us(ThreadPool& pool, int64_t count) {
  constexpr int kCalls = 500, kTries = 20;
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const double begin = seconds_now();
    for (int c = 0; c < kCalls; ++c)
      pool.parallel(
          nullptr, count, [](TwKernelContext*, void*, int64_t, int64_t, int64_t) {}, nullptr);
    best = std::min(best, (seconds_now() - begin) / kCalls);
  }
  return best * 1e6;
}

}  // namespace

ir::MachineSpeed measure_machine() {
  ThreadPool one(1), all(available_cpus());
  ir::MachineSpeed s;
  // All threads reach what one does, also where other work kept that from being seen.
  s.measured = true;
  s.clock_ghz = best_rate(one, dependent_additions) / 1e9;
  s.fma_latency_cycles = s.clock_ghz * 1e9 / best_rate(one, f32_dependent_chain);
  s.f32_gflops = best_rate(one, f32_multiply_adds) / 1e9;
  s.f32_gflops_all = std::max(s.f32_gflops, best_rate(all, f32_multiply_adds) / 1e9);
  s.fma_ports = s.f32_gflops / (2 * f32_lanes() * s.clock_ghz);
  s.int8_gops = best_rate(one, int8_dot_products) / 1e9;
  s.int8_gops_all = std::max(s.int8_gops, best_rate(all, int8_dot_products) / 1e9);
  const LevelSpeed a = measure_levels(one), b = measure_levels(all);
  s.l1_read = a.l1, s.l1_read_all = std::max(a.l1, b.l1);
  s.l2_read = a.l2, s.l2_read_all = std::max(a.l2, b.l2);
  s.l3_read = a.l3, s.l3_read_all = std::max(a.l3, b.l3);
  s.memory_read = a.memory_read, s.memory_read_all = std::max(a.memory_read, b.memory_read);
  s.memory_write = a.memory_write, s.memory_write_all = std::max(a.memory_write, b.memory_write);
  s.memory_copy = a.memory_copy, s.memory_copy_all = std::max(a.memory_copy, b.memory_copy);
  s.handed_over = handed_over(all);
  s.fork_join_us = fork_join_us(all);
  s.serial_call_us = call_us(one, 1);
  return s;
}

double at_threads(double one, double all, int threads) {
  return std::max(one, std::min(std::max(threads, 1) * one, all));
}

Peak measure_peak(int threads) {
  ThreadPool pool(threads);
  return {best_rate(pool, f32_multiply_adds) / 1e9,
          bandwidth(pool, Access::kRead, footprints(pool.worker_count()).memory)};
}

double PeakNow::gflops() {
  constexpr int kCalls = 2;
  const auto workers = static_cast<size_t>(pool_.worker_count());
  std::vector<double> rates(workers);
  std::barrier together(static_cast<std::ptrdiff_t>(workers));
  on_every_worker(pool_, [&](int t) {
    together.arrive_and_wait();
    const double begin = seconds_now();
    double done = 0;
    for (int i = 0; i < kCalls; ++i) done += f32_multiply_adds();
    rates[static_cast<size_t>(t)] = done / (seconds_now() - begin);
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0) / 1e9;
}

Peak peak_of(const ir::MachineSpeed& s, int threads) {
  return {at_threads(s.f32_gflops, s.f32_gflops_all, threads),
          at_threads(s.memory_read, s.memory_read_all, threads)};
}

}  // namespace tilewright::measure
