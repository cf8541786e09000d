// The pool's promises: each iteration runs exactly once, calls nest and come from any thread, and a
// worker that the system holds up delays nobody. What only shows under certain interleavings is run
// in many rounds.
#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>

namespace tilewright {
namespace {

using Body = std::function<void(int64_t begin, int64_t end, int64_t worker)>;

// The C interface of kernels, with a closure.
void run(ThreadPool& pool, int64_t count, const Body& body) {
  pool.parallel(
      nullptr, count,
      [](TwKernelContext*, void* closure, int64_t begin, int64_t end, int64_t worker) {
        (*static_cast<const Body*>(closure))(begin, end, worker);
      },
      const_cast<Body*>(&body));
}

// Counts below, at and above the number of workers; and not many pieces, each of which costs a
// call.
TEST(ThreadPool, CoversEachIterationOnce) {
  for (int workers : {1, 2, 3, 7}) {
    ThreadPool pool(workers);
    EXPECT_EQ(pool.worker_count(), workers);
    for (int64_t count : {0, 1, 2, 3, 6, 7, 8, 101, 10007}) {
      std::vector<int> hits(count, 0);
      std::vector<int> calls(workers, 0);
      run(pool, count, [&](int64_t begin, int64_t end, int64_t worker) {
        ASSERT_LT(begin, end);
        ASSERT_LT(worker, workers);
        ++calls[worker];
        for (int64_t i = begin; i < end; ++i) ++hits[i];
      });
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(hits[i], 1) << i << " of " << count;
      EXPECT_LE(std::accumulate(calls.begin(), calls.end(), 0), 9 * workers);
    }
  }
}

// Each has a workspace of its own, by this number.
TEST(ThreadPool, WorkersThatRunAtOnceHaveOtherNumbers) {
  ThreadPool pool(2);
  std::atomic<int> entered{0}, most{0}, running[2] = {0, 0};
  for (int round = 0; round < 100 && most < 2; ++round) {
    entered = 0;
    run(pool, 2, [&](int64_t, int64_t, int64_t worker) {
      ASSERT_LT(worker, 2);
      EXPECT_EQ(++running[worker], 1) << "two are worker " << worker;
      ++entered;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
      while (entered < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      --running[worker];
    });
    most = std::max(most.load(), entered.load());
  }
  EXPECT_EQ(most, 2) << "they never ran at once";
}

// Arithmetic on shares must not overflow.
TEST(ThreadPool, CoversAHugeCountOnce) {
  ThreadPool pool(3);
  const int64_t count = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> sum{0};
  run(pool, count, [&](int64_t begin, int64_t end, int64_t) {
    EXPECT_LE(end - begin, count / 3 / 8 + 2);
    sum += end - begin;
  });
  EXPECT_EQ(sum, count);
}

// A worker that is held up leaves its share to the others.
TEST(ThreadPool, OthersTakeTheShareOfAWorkerThatIsHeldUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> held{0}, done{0};
    run(pool, 160, [&](int64_t begin, int64_t end, int64_t) {
      done += static_cast<int>(end - begin);
      // Whoever comes first waits until all but its own piece are done.
      if (held.fetch_add(1) == 0)
        while (done.load() < 160) std::this_thread::yield();
    });
    EXPECT_EQ(done, 160);
  }
}

// Its own number, too: the inner loop uses the workspace of the outer one's worker.
TEST(ThreadPool, NestedCallsRunSeriallyOnTheCallingWorker) {
  ThreadPool pool(4);
  std::atomic<int64_t> total{0};
  run(pool, 4, [&](int64_t, int64_t, int64_t outer) {
    const auto thread = std::this_thread::get_id();
    run(pool, 1000, [&](int64_t begin, int64_t end, int64_t inner) {
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 1000);
      EXPECT_EQ(inner, outer);
      EXPECT_EQ(std::this_thread::get_id(), thread);
      total += end - begin;
    });
  });
  EXPECT_EQ(total, 4000);
}

TEST(ThreadPool, NestedInASingleIterationIsSerialToo) {
  ThreadPool pool(4);
  int calls = 0;
  run(pool, 1, [&](int64_t, int64_t, int64_t) {
    run(pool, 100, [&](int64_t, int64_t, int64_t) { ++calls; });
  });
  EXPECT_EQ(calls, 1);
}

// Callers wait in turn; `part` needs no lock, since numbers of workers are distinct within a call.
TEST(ThreadPool, ManyCallsFromManyThreadsShareOnePool) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4, 0);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 500; ++round) {
        std::vector<int64_t> part(3, 0);
        run(pool, 97, [&](int64_t begin, int64_t end, int64_t worker) {
          for (int64_t i = begin; i < end; ++i) part[worker] += i;
        });
        sums[c] += part[0] + part[1] + part[2];
      }
    });
  for (std::thread& t : callers) t.join();
  for (int64_t s : sums) EXPECT_EQ(s, 500 * 97 * 96 / 2);
}

// A lost wake-up would hang here.
TEST(ThreadPool, PoolsSideBySideAndSleepingWorkersWake) {
  ThreadPool a(3), b(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> n{0};
    run(a, 3, [&](int64_t, int64_t, int64_t) {
      run(b, 5, [&](int64_t begin, int64_t end, int64_t) { n += end - begin; });
    });
    EXPECT_EQ(n, 15);
    std::this_thread::sleep_for(std::chrono::microseconds(300));  // longer than the spin: all sleep
  }
}

// Workers may still be starting when they are told to end.
TEST(ThreadPool, MakeAndDestroyWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

// Walks through `body` with a team; it calls run(pool, ...) for its phases.
void run_team(ThreadPool& pool, const std::function<void()>& body) {
  pool.team(
      nullptr,
      [](TwKernelContext*, void* closure) {
        (*static_cast<const std::function<void()>*>(closure))();
      },
      const_cast<std::function<void()>*>(&body));
}
// values[i] of each phase needs both neighbours of the one before.
TEST(ThreadPool, PhasesOfATeamFollowEachOther) {
  constexpr int kSteps = 50;
  for (int workers : {1, 2, 3, 7}) {
    ThreadPool pool(workers);
    for (int64_t count : {1, 2, 5, 97}) {
      std::vector<std::vector<int64_t>> values(kSteps + 1, std::vector<int64_t>(count + 2, 0));
      auto expected = values;
      for (int round = 0; round < 5; ++round) {
        for (int64_t i = 0; i < count + 2; ++i) values[0][i] = expected[0][i] = i + round;
        run_team(pool, [&] {
          for (int step = 0; step < kSteps; ++step) {
            run(pool, 0, [](int64_t, int64_t, int64_t) { FAIL(); });
            run(pool, count, [&](int64_t begin, int64_t end, int64_t) {
              for (int64_t i = begin + 1; i <= end; ++i)
                values[step + 1][i] = values[step][i - 1] + 3 * values[step][i + 1] % 1001;
            });
          }
        });
        for (int step = 0; step < kSteps; ++step)
          for (int64_t i = 1; i <= count; ++i)
            expected[step + 1][i] = expected[step][i - 1] + 3 * expected[step][i + 1] % 1001;
        EXPECT_EQ(values, expected) << workers << " workers, " << count << " items";
      }
    }
  }
}
// A worker that is held up misses phases, and holds up nobody.
TEST(ThreadPool, ATeamGoesOnWithoutAWorkerThatIsHeldUp) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> members{0}, done{0};
    std::atomic<bool> over{false};
    run_team(pool, [&] {
      if (members.fetch_add(1) == 1)
        while (!over.load()) std::this_thread::yield();
      for (int step = 0; step < 40; ++step)
        run(pool, 11, [&](int64_t begin, int64_t end, int64_t) {
          if (done.fetch_add(static_cast<int>(end - begin)) + end - begin == 40 * 11)
            over.store(true);
        });
    });
    EXPECT_EQ(done, 40 * 11);
  }
}
// Within a part of a loop a team is of one member.
TEST(ThreadPool, TeamsFromManyThreadsAndWithinParts) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        auto phases = [&] {
          for (int step = 0; step < 3; ++step)
            run(pool, 10, [&](int64_t begin, int64_t end, int64_t) { sum += end - begin; });
        };
        run_team(pool, phases);
        EXPECT_EQ(sum, 30);
        run(pool, 4, [&](int64_t begin, int64_t end, int64_t) {
          for (int64_t i = begin; i < end; ++i) run_team(pool, phases);
        });
        EXPECT_EQ(sum, 30 + 4 * 30);
      }
    });
  for (std::thread& t : callers) t.join();
}
// Longer than they spin; the next phase must find them, and order between phases holds.
TEST(ThreadPool, MembersOfATeamSleepThroughALongPhase) {
  ThreadPool pool(3);
  std::atomic<int> order{0};
  for (int round = 0; round < 10; ++round)
    run_team(pool, [&] {
      run(pool, 1, [&](int64_t, int64_t, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(400));
        order = 1;
      });
      run(pool, 3, [&](int64_t, int64_t, int64_t) { EXPECT_NE(order.exchange(2), 0); });
    });
}

// Prints the cost of a call; the bound is loose, since machines are shared.
TEST(ThreadPool, CostOfACall) {
  auto best_nanoseconds = [](ThreadPool& pool, int64_t count) {
    double best = 1e18;
    for (int round = 0; round < 200; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 100; ++i)
        pool.parallel(
            nullptr, count, [](TwKernelContext*, void*, int64_t, int64_t, int64_t) {}, nullptr);
      const std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - begin;
      best = std::min(best, t.count() / 100);
    }
    return best;
  };
  ThreadPool serial(1), two(2);
  const double serial_ns = best_nanoseconds(serial, 2), fork_ns = best_nanoseconds(two, 2);
  double phase_ns = 0;
  run_team(two, [&] {
    const double ns = best_nanoseconds(two, 2);
    run(two, 1, [&](int64_t, int64_t, int64_t) { phase_ns = ns; });
  });
  std::printf("serial call %.0f ns, fork-join of 2 workers %.0f ns, phase of a team %.0f ns\n",
              serial_ns, fork_ns, phase_ns);
  EXPECT_LT(serial_ns, 3000);
  EXPECT_LT(fork_ns, 200000);
}

TEST(ThreadPool, HasAtMostSoManyWorkers) {
  const int most = ThreadPool::most_workers();
  EXPECT_GE(most, std::min(4 * available_cpus(), ThreadPool::kMaxWorkers));
  EXPECT_LE(ThreadPool(most + 1).worker_count(), most);
  EXPECT_LE(ThreadPool(std::numeric_limits<int>::max()).worker_count(), most);
  EXPECT_EQ(ThreadPool(std::numeric_limits<int>::min()).worker_count(), 1);
}

// It has none of the pool's threads, whatever these were doing: asleep, at work for another thread,
// or just woken up.
TEST(ThreadPool, TheChildOfAForkRunsSeriallyAndGivesItBack) {
  for (int round = 0; round < 12; ++round) {
    auto pool = std::make_unique<ThreadPool>(3);
    std::atomic<bool> stop{round % 3 != 1};
    std::thread other([&] {
      while (!stop) run(*pool, 64, [](int64_t, int64_t, int64_t) {});
    });
    if (round % 3 == 2) run(*pool, 64, [](int64_t, int64_t, int64_t) {});
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::vector<int> hits(1000, 0);
      int64_t most = 0, calls = 0;
      run(*pool, 1000, [&](int64_t begin, int64_t end, int64_t worker) {
        ++calls;
        most = std::max(most, worker);
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      const bool once = std::count(hits.begin(), hits.end(), 1) == 1000;
      pool.reset();
      _exit(once && most == 0 && calls == 1 ? 0 : 1);
    }
    stop = true;
    other.join();
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << round;
  }
}

}  // namespace
}  // namespace tilewright
