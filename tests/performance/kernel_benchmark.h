// Graphs as benchmarks: compiled with default schedules, run warm through a session, compared with
// what the machine was measured to reach.
#pragma once

#include <functional>
#include <string>

#include "ir/machine.h"
#include "tests/performance/kernel_graph.h"

namespace tilewright::performance {

// What all benchmarks of this process run with.
struct Setting {
  // Of the session, and what the machine reaches with as many (codegen/measure).
  int threads = 1;
  ir::MachineSpeed speed;
};
void set_setting(const Setting& setting);  // before the first benchmark runs

// Registers a benchmark "suite/case". Its counters, by the median of the runs: ms; where the graph has operations,
// GFLOP/s and `peak`, the part of peak_GFLOP/s, which is the median of what multiply-adds reached between the runs
// (GOP/s and the measured peak of int8 where the graph says so); GB/s of the bytes that it reads and writes at least,
// and `bandwidth`, the time that memory takes for them over the time of the run: above 1 where caches hold them.
// And least_ms, of the fastest run: what is left of a run where other work interrupts most.
void add_benchmark(const std::string& name, std::function<void(KernelGraph&)> build);

}  // namespace tilewright::performance
