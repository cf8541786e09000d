#include "passes/cost/machine_rates.h"
#include "passes/cost/winograd_cost.h"
#include "passes/cost/winograd_terms.h"

namespace tilewright::passes {

using namespace ir;
using namespace winograd;

namespace {

// All tiles are transformed, then the products of all, then these: each part goes through the caches.
WinogradCost gradient_cost(const MachineDescription& m, const WindowedProduct& p, int64_t tile) {
  const double tiles = static_cast<double>(p.images * p.tiles_down(tile) * p.tiles_across(tile)),
               points = static_cast<double>((tile + 2) * (tile + 2)),
               c = static_cast<double>(p.in_channels), o = static_cast<double>(p.out_channels);
  const int64_t lanes = product_lanes(m, p.out_channels);
  const TileCost best = choose_tile(m, {p.in_channels, p.out_channels, lanes}).best;
  const Rates r = rates_of(m, 1);
  const TransformOps ops = ops_of(tile);
  const auto transform = [&](int64_t channels, double n, double stores) {
    return vectors(channels, m.lanes(4)) * (n / m.speed.fma_ports + stores) / r.cycles;
  };
  WinogradCost cost;
  cost.products = 2 * points * tiles * c * o / (r.flops * best.score);
  cost.input = tiles * transform(p.in_channels, ops.input, ops.input_stores);
  cost.output = tiles * transform(p.out_channels, ops.output, points);
  const double tile_bytes = points * tiles * (c + o) * kBytes, sum_bytes = points * c * o * kBytes;
  cost.exchange = 2 * tile_bytes / cache_rate(m, r, tile_bytes);
  cost.weights = 2 * sum_bytes / cache_rate(m, r, sum_bytes);
  cost.transform = c * transform(p.out_channels, 2 * ops.weights, kWindow);
  return cost;
}

}  // namespace

GradientForms gradient_forms(const MachineDescription& machine, const WindowedProduct& p) {
  const MachineDescription one = nominal(machine);
  GradientForms f{.direct = direct_cost(one, p),
                  .costs = {gradient_cost(one, p, 2), gradient_cost(one, p, 4)}};
  double least = kSurely * f.direct.total();
  for (const int64_t m : {4, 2}) {  // equal ones: the larger tiles
    if (f.cost(m).total() >= least) continue;
    least = f.cost(m).total();
    f.usual = m;
  }
  return f;
}

}  // namespace tilewright::passes
