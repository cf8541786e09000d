// Fork-join over a fixed set of threads: the one source of parallelism in a session.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/kernel_abi.h"

namespace tilewright {

// Workers 0 (the calling thread) to worker_count - 1. A call splits [0, count) into contiguous,
// nearly equal shares, one per worker, and allocates nothing. A worker takes its share a piece at a
// time and then pieces of the others': a thread that the system holds up holds up nobody, unless it
// is inside a piece. Workers spin for a moment after a call
// and then sleep; they never spin while more workers are awake in the process than it has CPUs.
// Safe to share among sessions: a call that finds the pool busy, and a call from inside a body,
// runs serially on the calling thread. So does every call in the child of a fork, which has none of the
// threads of a pool that was made before.
class ThreadPool {
 public:
  // Clamped to [1, most_workers()], and to the threads that the system grants; 1 starts no thread.
  explicit ThreadPool(int workers);
  ~ThreadPool();  // waits for the threads that there are; no call may be under way
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The field for participants in epoch_ has 16 bits; sessions need far fewer.
  static constexpr int kMaxWorkers = 1024;
  // Of one pool in this process: 4 for each CPU that it may use, at least 16, at most kMaxWorkers.
  static int most_workers();
  int worker_count() const { return worker_count_; }

  // Runs body over [0, count) and returns when all is done. Of a nested call every part bears the
  // number of the worker that makes it.
  void parallel(TwKernelContext* context, int64_t count, TwParallelBody body, void* closure);

  // Several parallel calls with one fork (TwKernelContext::team). A worker that is held up misses
  // phases and holds up nobody. A phase of one iteration is the caller's: what it works on stays in
  // one cache.
  void team(TwKernelContext* context, TwTeamBody body, void* closure);

 private:
  struct Job {
    TwKernelContext* context = nullptr;
    TwParallelBody body = nullptr;
    TwTeamBody team = nullptr;  // instead of body
    void* closure = nullptr;
    int64_t count = 0;
    int parts = 0;
    uint64_t phase = 0;  // the first
  };
  void run_worker(int worker);
  uint64_t wait_for_job(uint64_t seen);
  void run_member(int worker);
  void run_phase(TwKernelContext* context, int64_t count, TwParallelBody body, void* closure);
  void open_phase(uint64_t phase, int64_t count);
  void close_phase(uint64_t phase);
  void wait_for_phase(uint64_t phase);
  // Runs pieces of a phase until none is left; true for who makes the last of its items.
  bool run_shares(const Job& job, int worker);
  void wake_caller();
  void share_out(int64_t count, uint64_t phase);
  void fork(int parts);
  void join();
  void leave();

  bool has_threads() const;  // false in the child of a fork

  // The threads and what they sleep on. In the child of a fork these may neither be joined nor
  // destroyed.
  struct Threads {
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::condition_variable wake_workers, wake_caller, wake_members;
  };

  int worker_count_;
  const int forks_;  // of the process, when the pool was made
  std::unique_ptr<Threads> threads_;
  std::mutex busy_;  // held by the call under way
  Job job_;          // stable while a worker is inside

  // Generation (48 bits) and the number of participants (16 bits) of the latest call: a worker
  // learns with one load whether it takes part, and only then reads job_.
  alignas(64) std::atomic<uint64_t> epoch_{0};
  alignas(64) std::atomic<int64_t> left_{0};  // items of the phase that are not done
  alignas(64) std::atomic<int> inside_{0};    // workers that may look at job_ and shares_
  // Who takes a piece holds up the end of the phase: the share stays as it is until then.
  struct alignas(64) Share {
    std::atomic<uint64_t> next{0};  // phase (32 bits), next piece (16 bits), number of pieces
    int64_t begin = 0, end = 0, piece = 1;
  };
  std::unique_ptr<Share[]> shares_;
  // Phases that somebody took upon them to open, that are open, and that are done; they count on
  // from one call to the next.
  alignas(64) std::atomic<uint64_t> claimed_{0};
  std::atomic<uint64_t> opened_{0};
  alignas(64) std::atomic<uint64_t> done_{0};
  std::atomic<int> phase_sleepers_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
};

// Counts the calling thread among the awake workers of the process while the object lives: for threads of other
// kinds that keep a CPU busy, so that workers do not spin against them.
class AwakeThread {
 public:
  AwakeThread();
  ~AwakeThread();
  AwakeThread(const AwakeThread&) = delete;
  AwakeThread& operator=(const AwakeThread&) = delete;
};

// CPUs this process may use: its affinity mask, lowered by the CPU quota of its control group.
int available_cpus();

}  // namespace tilewright
