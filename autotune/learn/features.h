// A form of a kernel as numbers that a model can learn from. They tell of loops and machines alone:
// names of models, operators and decisions have no say, and sizes are ratios, mostly logarithms, so
// that what was learned of one kernel or machine says something about another.
//
// expected.*, share.*: the analytic cost, and which of its terms it comes from (passes/cost/loop_cost.h)
// reuse.lNxP: bytes that come from beyond a cache of P times the size of level N, an instruction:
//   where these fall, the footprint of a loop fits (passes/cost/cache_traffic.h)
// all.*, hot.*: what instructions there are, in all loops and in the innermost one that runs most, out
//   of all of them; lanes: how full vectors are; *_strides: accesses that go on by a line or a page
// hot.iterations, .runs, .instructions: how long that loop is, how often it begins, how far unrolled
// hot.sums, .held, .chains: registers of sums and of what is read again, out of those that there are,
//   and sums out of those that hide the latency of additions
// code.*: how much code there is, which instruction caches and decoders see
// tasks.*: what threads share, how evenly, and how little one task is
// buffers.*: workspace out of the second cache, tiles out of the registers, stores past the caches
// machine.*: what the others are ratios to, and how fast memory is beside the arithmetic
#pragma once

#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "passes/cost/loop_cost.h"

namespace tilewright::autotune {

using Features = std::vector<float>;

// Of a flat kernel, whose expected cost is `cost`. Finite, and always as many; the same on every CPU
// for the same machine description.
Features features_of(const ir::MachineDescription& machine, const ir::Kernel& flat,
                     const passes::LoopCost& cost);
// What each is: "share.l2", "hot.sums"; in this order.
const std::vector<std::string>& feature_names();
// How many of the first ones come from the analytic cost.
size_t analytic_features();

}  // namespace tilewright::autotune
