#include "autotune/learn/features.h"

#include <algorithm>
#include <cmath>

#include "autotune/learn/loop_shape.h"
#include "ir/loops/rewrite.h"
#include "passes/analysis/extents.h"
#include "passes/cost/cache_traffic.h"

namespace tilewright::autotune {

using namespace ir;

namespace {

struct Feature {
  std::string name;
  double value;
};
using List = std::vector<Feature>;

// Logarithms stay finite, and sizes below one are all alike.
double log_of(double size) { return std::log2(1 + std::max(size, 0.0)); }
double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// Expected microseconds, and which of its terms they come from.
void add_cost(List& list, const passes::LoopCost& c) {
  const double all = c.total();
  list.push_back({"expected.nanoseconds", log_of(1e3 * all)});
  list.push_back({"share.compute", ratio(c.compute, all)});
  list.push_back({"share.l2", ratio(c.l2, all)});
  list.push_back({"share.l3", ratio(c.l3, all)});
  list.push_back({"share.memory", ratio(c.memory, all)});
  list.push_back({"share.forks", ratio(c.forks, all)});
}

// Bytes that come from beyond a cache of half the size, the size and twice the size of each that
// there is, for each instruction: how near the loops' footprints are to what caches hold.
void add_reuse(List& list, const MachineDescription& m, const Stmt& body, double instructions) {
  for (const double part : {0.25, 0.5, 1.0, 2.0}) {
    MachineDescription other = m;
    for (int64_t* bytes : {&other.l1_bytes, &other.l2_bytes, &other.l3_bytes})
      *bytes = static_cast<int64_t>(part * static_cast<double>(*bytes));
    const passes::CacheTraffic t = passes::cache_traffic(other, body);
    for (size_t level = 0; level < t.size(); ++level)
      list.push_back(
          {"reuse.l" + std::to_string(level + 1) + "x" + std::to_string(part).substr(0, 4),
           log_of(16 * t[level] / instructions)});
  }
}

// Instructions of each kind, out of all.
void add_mix(List& list, const std::string& of, const InstructionMix& x) {
  const double all = std::max(x.all(), 1e-9);
  list.push_back({of + ".arithmetic", x.arithmetic / all});
  list.push_back({of + ".products", x.products / all});
  list.push_back({of + ".divisions", x.divisions / all});
  list.push_back({of + ".costly", x.costly / all});
  list.push_back({of + ".loads", x.loads / all});
  list.push_back({of + ".elements", x.elements / all});
  list.push_back({of + ".gathers", x.gathers / all});
  list.push_back({of + ".stores", x.stores / all});
  list.push_back({of + ".masked", x.masked / all});
  list.push_back({of + ".branches", x.branches / all});
  list.push_back({of + ".lanes", ratio(x.lanes, x.arithmetic)});  // how full vectors are
  list.push_back({of + ".line_strides", ratio(x.line_strides, x.accesses())});
  list.push_back({of + ".page_strides", ratio(x.page_strides, x.accesses())});
}

// The innermost loop that runs most: how long, how far unrolled, and what it holds in registers.
void add_hottest(List& list, const MachineDescription& m, const LoopShape& s) {
  const InnermostLoop& h = s.hottest;
  add_mix(list, "hot", h.body);
  list.push_back({"hot.share", ratio(h.weight(), s.mix.all())});
  list.push_back({"hot.iterations", log_of(h.iterations)});
  list.push_back({"hot.runs", log_of(ratio(h.runs, h.iterations))});
  list.push_back({"hot.instructions", log_of(h.body.all())});
  list.push_back({"hot.sums", h.sums / m.vector_registers});
  list.push_back({"hot.held", h.held / m.vector_registers});
  // Multiply-adds in flight, of those that hide their latency.
  list.push_back({"hot.chains", h.sums / (m.speed.fma_latency_cycles * m.speed.fma_ports)});
  list.push_back({"hot.loads_per_product", ratio(h.body.loads + h.body.elements, h.body.products)});
}

void add_rest(List& list, const MachineDescription& m, const LoopShape& s) {
  const double threads = std::max(m.threads, 1);
  list.push_back({"code.statements", log_of(s.statements)});
  list.push_back({"code.innermost_loops", log_of(s.innermost_loops)});
  list.push_back({"code.depth", s.depth});
  list.push_back({"code.instructions", log_of(s.mix.all())});
  list.push_back({"tasks.loops", log_of(s.parallel_loops)});
  list.push_back({"tasks.count", log_of(s.tasks)});
  list.push_back({"tasks.balance", s.tasks / (std::ceil(s.tasks / threads) * threads)});
  list.push_back({"tasks.instructions", log_of(s.mix.all() * s.shared / s.tasks)});
  list.push_back({"tasks.shared", s.shared});
  list.push_back(
      {"buffers.workspace", log_of(16 * s.workspace_bytes / static_cast<double>(m.l2_bytes))});
  list.push_back({"buffers.registers", s.register_bytes / (m.vector_registers * m.vector_bytes)});
  list.push_back({"buffers.streamed", s.streamed});
  list.push_back({"machine.vector_bytes", std::log2(m.vector_bytes)});
  list.push_back({"machine.registers", static_cast<double>(m.vector_registers)});
  list.push_back({"machine.l2_by_l1",
                  std::log2(static_cast<double>(m.l2_bytes) / static_cast<double>(m.l1_bytes))});
  list.push_back({"machine.threads", log_of(threads)});
  list.push_back({"machine.l2_rate", m.speed.l2_read / m.speed.f32_gflops});
  list.push_back({"machine.memory_rate", m.speed.memory_read / m.speed.f32_gflops});
}

List list_of(const MachineDescription& m, const Kernel& flat, const passes::LoopCost& cost) {
  VarMap symbols;
  for (const Var& v : flat.scalars) symbols[v.get()] = Expr(passes::kUnknownExtent);
  const Stmt body = substitute(flat.body, symbols);
  const LoopShape shape = shape_of(m, body);
  List list;
  add_cost(list, cost);
  add_reuse(list, m, body, std::max(shape.mix.all(), 1.0));
  add_mix(list, "all", shape.mix);
  add_hottest(list, m, shape);
  add_rest(list, m, shape);
  return list;
}

}  // namespace

Features features_of(const MachineDescription& machine, const Kernel& flat,
                     const passes::LoopCost& cost) {
  Features values;
  for (const Feature& f : list_of(machine, flat, cost))
    values.push_back(static_cast<float>(f.value));
  return values;
}

const std::vector<std::string>& feature_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    const Kernel empty{.name = "empty", .body = seq({})};
    for (Feature& f : list_of({}, empty, {})) all.push_back(std::move(f.name));
    return all;
  }();
  return names;
}

size_t analytic_features() {
  List list;
  add_cost(list, {});
  return list.size();
}

}  // namespace tilewright::autotune
