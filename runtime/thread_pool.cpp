// Fork-join with work sharing. A call cuts [0, count) into one contiguous share per worker (memory
// stays with the worker that touched it last), each share into some kPieces pieces, and a worker
// that is done takes pieces from the others' shares: static scheduling's locality, with dynamic
// scheduling's answer to a thread that the system takes off its CPU.
//
//    fork      epoch_ = (generation, participants)     one store wakes who spins; a condition
//              |                                        variable wakes who sleeps
//    shares_   [0: 3/8] [1: 8/8] [2: 5/8]              next piece / pieces, by compare-and-swap
//              |
//    join      left_ reaches 0: who made the last item marks the phase as done
//
// A piece belongs to a phase: a worker that comes late finds another phase's number in the share
// and takes nothing, so that no call waits for workers that have not come. A team (one fork for
// several parallel loops in a row) counts phases on while its members stay awake.
//
// Spinning is bounded and given up when more workers are awake in the process than it has CPUs: a
// spinning thread would then hold up the very one it waits for.
#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>

namespace tilewright {
namespace {

// Longer than a wake-up (some 5 to 40 us) would gain nothing; machines are shared.
constexpr std::chrono::microseconds kSpin{20};
constexpr uint64_t kPartsMask = 0xffff;
constexpr int kWorkersPerCpu = 4, kLeastBound = 16;
constexpr int kPieces = 8;  // of a worker's share, at most one more

std::atomic<int> awake_workers{0};  // of all pools: working or spinning

// Of forks that led to this process since the first pool was made.
std::atomic<int> forks{0};
int fork_count() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    awake_workers.store(0, std::memory_order_relaxed);  // they are threads of the parent
  });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

// Keeps what nothing may destroy where tools that look for leaks find it.
void abandon(void* memory) {
  static std::mutex lock;
  static auto& abandoned = *new std::vector<void*>;
  const std::lock_guard hold(lock);
  abandoned.push_back(memory);
}

// The worker that this thread is, while it runs a part or walks through the phases of a team.
struct Here {
  const ThreadPool* pool = nullptr;
  int worker = 0;
  bool between_phases = false;
  uint64_t phase = 0;  // the next
};
thread_local Here here;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int process_cpus() {
  static const int cpus = available_cpus();
  return cpus;
}

// Waits a short while for done(); false when the time is up or the CPUs are taken.
template <typename Done>
bool spin_until(Done done) {
  if (done()) return true;
  if (awake_workers.load(std::memory_order_relaxed) > process_cpus()) return false;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 8; ++i) {
      if (done()) return true;
      pause_cpu();
    }
    if (awake_workers.load(std::memory_order_relaxed) > process_cpus()) return false;
    // Whoever is waited for may have been put on this very CPU, and would not run before the spin
    // ends.
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// Serial, but marked as a part, so that what it calls is nested too.
void run_serially(TwKernelContext* context, int64_t count, TwParallelBody body, void* closure,
                  const ThreadPool* pool) {
  const Here before = here;
  here = {pool, before.pool == pool ? before.worker : 0, false, 0};
  body(context, closure, 0, count, here.worker);
  here = before;
}

// The CPU bandwidth limit of control groups (cgroup v2, cpu.max: "quota period" in us, or "max").
int quota_cpus(int cpus) {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (!file) return cpus;
  long long quota = 0, period = 0;
  if (std::fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
    cpus = static_cast<int>(
        std::min<long long>(cpus, std::max<long long>((quota + period - 1) / period, 1)));
  std::fclose(file);
  return cpus;
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  return quota_cpus(std::max(cpus, 1));
}

AwakeThread::AwakeThread() { awake_workers.fetch_add(1, std::memory_order_relaxed); }
AwakeThread::~AwakeThread() { awake_workers.fetch_sub(1, std::memory_order_relaxed); }

int ThreadPool::most_workers() {
  return std::clamp(kWorkersPerCpu * process_cpus(), kLeastBound, kMaxWorkers);
}

ThreadPool::ThreadPool(int workers)
    : worker_count_(std::clamp(workers, 1, most_workers())),
      forks_(fork_count()),
      threads_(std::make_unique<Threads>()) {
  shares_ = std::make_unique<Share[]>(static_cast<size_t>(worker_count_));
  threads_->threads.reserve(static_cast<size_t>(worker_count_) - 1);
  try {
    for (int w = 1; w < worker_count_; ++w)
      threads_->threads.emplace_back([this, w] { run_worker(w); });
  } catch (const std::system_error&) {
    // The system gives no more threads.
    worker_count_ = static_cast<int>(threads_->threads.size()) + 1;
  }
}

ThreadPool::~ThreadPool() {
  if (!has_threads()) {
    abandon(threads_.release());
    return;
  }
  {
    std::lock_guard lock(threads_->mutex);
    stop_.store(true);
  }
  threads_->wake_workers.notify_all();
  for (std::thread& t : threads_->threads) t.join();
}

bool ThreadPool::has_threads() const { return forks_ == forks.load(std::memory_order_relaxed); }

void ThreadPool::parallel(TwKernelContext* context, int64_t count, TwParallelBody body,
                          void* closure) {
  if (count <= 0) return;
  if (here.pool == this && here.between_phases) return run_phase(context, count, body, closure);
  const int parts = static_cast<int>(std::min<int64_t>(count, worker_count_));
  if (parts == 1 || here.pool || !has_threads() || !busy_.try_lock())
    return run_serially(context, count, body, closure, this);
  std::lock_guard lock(busy_, std::adopt_lock);
  job_ = {context, body, nullptr, closure, count, parts, done_.load(std::memory_order_relaxed)};
  awake_workers.fetch_add(1, std::memory_order_relaxed);
  share_out(count, job_.phase);
  fork(parts);
  if (run_shares(job_, 0))
    done_.store(job_.phase + 1, std::memory_order_relaxed);
  else
    join();
  leave();
  awake_workers.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::team(TwKernelContext* context, TwTeamBody body, void* closure) {
  if (worker_count_ == 1 || here.pool || !has_threads() || !busy_.try_lock())
    return body(context, closure);
  std::lock_guard lock(busy_, std::adopt_lock);
  job_ = {context, nullptr, body, closure, 0, worker_count_, done_.load(std::memory_order_relaxed)};
  awake_workers.fetch_add(1, std::memory_order_relaxed);
  claimed_.store(job_.phase, std::memory_order_relaxed);
  opened_.store(job_.phase, std::memory_order_relaxed);
  fork(worker_count_);
  run_member(0);
  leave();
  awake_workers.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::run_member(int worker) {
  here = {this, worker, true, job_.phase};
  job_.team(job_.context, job_.closure);
  here = {};
}

void ThreadPool::run_phase(TwKernelContext* context, int64_t count, TwParallelBody body,
                           void* closure) {
  const uint64_t phase = here.phase++;
  if (done_.load(std::memory_order_acquire) > phase) return;  // the others have made it
  const Here member = here;
  if (count == 1) {
    if (member.worker != 0) return wait_for_phase(phase);
    here.between_phases = false;
    body(context, closure, 0, 1, 0);
    here = member;
    claimed_.store(phase + 1, std::memory_order_relaxed);
    opened_.store(phase + 1, std::memory_order_relaxed);
    return close_phase(phase);
  }
  open_phase(phase, count);
  if (run_shares({context, body, nullptr, closure, count, job_.parts, phase}, member.worker))
    close_phase(phase);
  here = member;
  wait_for_phase(phase);
}
// The first member to arrive deals out the shares; the others wait for it.
void ThreadPool::open_phase(uint64_t phase, int64_t count) {
  uint64_t expected = phase;
  if (claimed_.compare_exchange_strong(expected, phase + 1)) {
    share_out(count, phase);
    opened_.store(phase + 1, std::memory_order_release);
    return;
  }
  while (opened_.load(std::memory_order_acquire) <= phase)
    if (!spin_until([&] { return opened_.load(std::memory_order_acquire) > phase; }))
      std::this_thread::yield();
}
void ThreadPool::close_phase(uint64_t phase) {
  done_.store(phase + 1);
  if (phase_sleepers_.load() == 0) return;
  { std::lock_guard lock(threads_->mutex); }
  threads_->wake_members.notify_all();
}
void ThreadPool::wait_for_phase(uint64_t phase) {
  if (spin_until([&] { return done_.load(std::memory_order_acquire) > phase; })) return;
  awake_workers.fetch_sub(1, std::memory_order_relaxed);
  std::unique_lock lock(threads_->mutex);
  phase_sleepers_.fetch_add(1);
  threads_->wake_members.wait(lock, [&] { return done_.load() > phase; });
  phase_sleepers_.fetch_sub(1);
  awake_workers.fetch_add(1, std::memory_order_relaxed);
}

void ThreadPool::share_out(int64_t count, uint64_t phase) {
  const int64_t size = count / job_.parts, rest = count % job_.parts;
  left_.store(count, std::memory_order_relaxed);
  int64_t begin = 0;
  for (int w = 0; w < job_.parts; ++w) {
    Share& share = shares_[w];
    share.begin = begin;
    share.end = begin += size + (w < rest);
    share.piece = std::max<int64_t>(size / kPieces + (size % kPieces != 0), 1);
    const int64_t pieces = (share.end - share.begin + share.piece - 1) / share.piece;
    share.next.store(phase << 32 | static_cast<uint64_t>(pieces), std::memory_order_release);
  }
}

void ThreadPool::fork(int parts) {
  const uint64_t generation = (epoch_.load(std::memory_order_relaxed) >> 16) + 1;
  // Sequentially consistent with sleepers_: either this sees the sleeper, or the sleeper sees the
  // new epoch.
  epoch_.store(generation << 16 | static_cast<uint64_t>(parts));
  if (parts == 0 || sleepers_.load() == 0) return;
  { std::lock_guard lock(threads_->mutex); }
  threads_->wake_workers.notify_all();
}

void ThreadPool::join() {
  const uint64_t phase = job_.phase;
  auto done = [&] { return done_.load(std::memory_order_acquire) > phase; };
  if (!spin_until(done)) {
    std::unique_lock lock(threads_->mutex);
    caller_sleeps_.store(true);
    threads_->wake_caller.wait(lock, [&] { return done_.load() > phase; });
    caller_sleeps_.store(false);
  }
}
// Nobody comes in any more: a worker that enters sees the new epoch, or is seen here.
void ThreadPool::leave() {
  fork(0);
  while (inside_.load() != 0) std::this_thread::yield();
}

// A caller that gave up spinning. The pool outlives this: its destructor joins.
void ThreadPool::wake_caller() {
  done_.store(job_.phase + 1);
  if (!caller_sleeps_.load()) return;
  { std::lock_guard lock(threads_->mutex); }
  threads_->wake_caller.notify_one();
}

// Own share first, then the others' in a ring. fetch_sub tells exactly one worker that nothing is
// left.
bool ThreadPool::run_shares(const Job& job, int worker) {
  here = {this, worker, false, 0};
  bool last = false;
  for (int k = 0; k < job.parts; ++k) {
    Share& share = shares_[(worker + k) % job.parts];
    uint64_t next = share.next.load(std::memory_order_acquire);
    while (next >> 32 == (job.phase & 0xffffffff) && (next >> 16 & 0xffff) < (next & 0xffff)) {
      if (!share.next.compare_exchange_weak(next, next + 0x10000)) continue;
      const auto n = static_cast<int64_t>(next >> 16 & 0xffff);
      const int64_t begin = share.begin + n * share.piece;
      const int64_t end = share.end - begin < share.piece ? share.end : begin + share.piece;
      job.body(job.context, job.closure, begin, end, worker);
      last |= left_.fetch_sub(end - begin) == end - begin;
      next = share.next.load(std::memory_order_acquire);
    }
  }
  here = {};
  return last;
}

uint64_t ThreadPool::wait_for_job(uint64_t seen) {
  auto changed = [&] {
    return epoch_.load(std::memory_order_acquire) != seen || stop_.load(std::memory_order_relaxed);
  };
  if (!spin_until(changed)) {
    awake_workers.fetch_sub(1, std::memory_order_relaxed);
    std::unique_lock lock(threads_->mutex);
    sleepers_.fetch_add(1);
    threads_->wake_workers.wait(lock, [&] { return epoch_.load() != seen || stop_.load(); });
    sleepers_.fetch_sub(1);
    awake_workers.fetch_add(1, std::memory_order_relaxed);
  }
  return epoch_.load(std::memory_order_acquire);
}

void ThreadPool::run_worker(int worker) {
  awake_workers.fetch_add(1, std::memory_order_relaxed);
  uint64_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint64_t epoch = wait_for_job(seen);
    if (epoch == seen) continue;
    seen = epoch;
    if (worker >= static_cast<int>(epoch & kPartsMask)) continue;
    inside_.fetch_add(1);
    if (epoch_.load() == epoch) {
      if (job_.team)
        run_member(worker);
      else if (run_shares(job_, worker))
        wake_caller();
    }
    inside_.fetch_sub(1);
  }
  awake_workers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tilewright
