// Measures what this machine can do.
#pragma once

#include "ir/machine.h"

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
// The same from figures measured before, interpolated by at_threads.
Peak peak_of(const ir::MachineSpeed& speed, int threads);

}  // namespace tilewright::measure
