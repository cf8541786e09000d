// Measures what this machine can do.
#pragma once

#include "ir/machine.h"
#include "runtime/thread_pool.h"

namespace tilewright::measure {

// All terms, in some 4 s: each the best of several short tries, on one thread and on one per
// available CPU. Other work on the machine lowers them.
ir::MachineSpeed measure_machine();

// What a number of threads reach together by what was measured of one and of all.
double at_threads(double one, double all, int threads);

// The two roofs of a roofline: of arithmetic and of memory bandwidth.
struct Peak {
  double gflops = 0;       // f32
  double memory_read = 0;  // GB/s
};
Peak measure_peak(int threads);  // in some 0.3 s
// What f32 multiply-adds of a number of threads reach at this moment, in some 0.3 ms: clocks change from one moment to
// the next, and a kernel is to be held against that of its own.
class PeakNow {
 public:
  explicit PeakNow(int threads) : pool_(threads) {}
  double gflops();

 private:
  ThreadPool pool_;
};
// The same as measure_peak from figures measured before, interpolated by at_threads.
Peak peak_of(const ir::MachineSpeed& speed, int threads);

}  // namespace tilewright::measure
