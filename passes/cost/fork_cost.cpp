#include "passes/cost/fork_cost.h"

#include <algorithm>
#include <vector>

#include "ir/loops/rewrite.h"
#include "passes/analysis/accesses.h"
#include "passes/analysis/extents.h"
#include "passes/cost/machine_rates.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Instructions of a costly operation, about: of a sigmoid, a tanh, a logarithm.
constexpr double kSeries = 18;
constexpr double kPartOfPeak = 0.6;

// Instructions for a vector of results; a product and the sum that takes it are one.
double operations_of(const Block& block) {
  double n = 0;
  for_each_expr(block.body, [&](const Expr& e) {
    if (const auto* u = e.as<Unary>())
      n += is_costly(u->op) ? kSeries : 1;
    else if (const auto* b = e.as<Binary>(); b && e.type() != ScalarType{})
      n += b->op == BinaryOp::kPow ? 2 * kSeries : b->op == BinaryOp::kDiv ? kSeries / 3 : 1;
    else if (e.as<Select>() || e.as<Cast>())
      ++n;
  });
  const auto* st = block.body.as<Store>();
  const auto* sum = st && block.init ? st->value.as<Binary>() : nullptr;
  const auto* product = sum ? sum->b.as<Binary>() : nullptr;
  if (product && sum->op == BinaryOp::kAdd && product->op == BinaryOp::kMul) --n;
  return std::max(n, 1.0);
}

}  // namespace

SerialWork& SerialWork::operator+=(const SerialWork& more) {
  compute += more.compute;
  memory += more.memory;
  handed_bytes += more.handed_bytes;
  return *this;
}

SerialWork serial_work(const MachineDescription& machine, const Block& block,
                       const std::function<bool(const Buffer&)>& is_constant) {
  const auto times = static_cast<double>(instances(block));
  int widest = 1, narrowest = 8;
  struct Moved {
    const BufferNode* buffer;
    // What is moved, and how much a cache has to hold for that to be found there.
    double bytes, kept;
  };
  std::vector<Moved> moved;
  double handed = 0;
  for (const BlockAccess& a : block_accesses(block)) {
    const int size = byte_size(a.buffer->dtype);
    widest = std::max(widest, size);
    if (!a.write) narrowest = std::min(narrowest, size);
    if (std::any_of(moved.begin(), moved.end(),
                    [&](const Moved& m) { return m.buffer == a.buffer.get(); }))
      continue;
    // A broadcast operand is read again from registers or the innermost cache.
    const auto whole = static_cast<double>(bytes_of(*a.buffer));
    const double bytes = whole > 0 ? std::min(whole, times * size) : times * size;
    // Of an operand or result of the kernel all was made, or will be read, by another one.
    moved.push_back({a.buffer.get(), bytes, a.buffer->scope == Scope::kParam ? whole : 0});
    if (!a.write && a.buffer->scope == Scope::kParam && !is_constant(a.buffer)) handed += bytes;
  }
  const Rates rates = rates_of(machine, 1);
  double bytes = 0, memory = 0;
  for (const Moved& m : moved) bytes += m.bytes;
  for (const Moved& m : moved)
    memory += m.bytes / cache_rate(machine, rates, std::max(bytes, m.kept));
  // Dot products take narrow operands as many at once as there are in a vector.
  const double lanes = machine.lanes(block.init ? std::min(narrowest, widest) : widest);
  const double vectors = times * operations_of(block) / std::max(lanes, 1.0);
  const double a_us = machine.speed.clock_ghz * 1e3 * machine.speed.fma_ports * kPartOfPeak;
  return {vectors / a_us, memory, handed};
}

ForkCost fork_cost_between(const MachineDescription& machine, const SerialWork& work) {
  constexpr double kOfAFork = 0.25;
  const double serial = work.microseconds();
  return {serial, serial / 2 + kOfAFork * machine.speed.fork_join_us};
}

ForkCost fork_cost(const MachineDescription& machine, const SerialWork& work) {
  const double serial = work.microseconds(), fork = machine.speed.fork_join_us;
  // Operands of small work come from small work, which one core does: half of them are handed over.
  // Those of larger work were shared out as it is, and each core has its part.
  constexpr double kSmall = 4;  // forks
  const double handed =
      serial < kSmall * fork ? work.handed_bytes / 2 / (machine.speed.handed_over * 1e3) : 0;
  return {serial, serial / 2 + fork + handed};
}

}  // namespace tilewright::passes
