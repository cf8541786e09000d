// What a machine does in a microsecond, measured or not, as analytic costs take it.
#pragma once

#include "ir/machine.h"

namespace tilewright::passes {

// Of `used` threads together: cycles, f32 operations (a multiply-add is two), and bytes read from
// each level.
struct Rates {
  double cycles = 0, flops = 0, l2 = 0, l3 = 0, memory = 0;
};
Rates rates_of(const ir::MachineDescription& machine, double used);
// The rate at which data of so many bytes, gone through again and again, comes.
double cache_rate(const ir::MachineDescription& machine, const Rates& rates, double bytes);

// The machine by which decisions are made that have a say in how results are rounded: without
// threads and measurements, so that these are the same on each run and for any number of threads.
ir::MachineDescription nominal(ir::MachineDescription machine);

}  // namespace tilewright::passes
