// Roofline estimates in microseconds: each term is work divided by the rate of what bounds it,
// terms are added. They rank alternatives; they do not predict times. Decisions that change
// roundings are taken for a `nominal` machine, in which neither threads nor measurements have a
// say.
#include "passes/cost/winograd_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "passes/analysis/extents.h"
#include "passes/cost/machine_rates.h"
#include "passes/cost/winograd_terms.h"

namespace tilewright::passes {

using namespace ir;
using namespace winograd;

namespace {

// Threads busy on average: tasks of equal size go in whole rounds.
double busy(const MachineDescription& m, double tasks) {
  return tasks / std::ceil(tasks / std::max(m.threads, 1));
}
// Terms by WinogradCost's fields.
WinogradCost cost_of(const MachineDescription& m, const WindowedProduct& p,
                     const WinogradPlan& plan) {
  const int64_t blocks_down = (p.tiles_down(plan.m) + plan.down - 1) / plan.down,
                blocks_across = (p.tiles_across(plan.m) + plan.across - 1) / plan.across;
  const double rows = static_cast<double>(plan.images * plan.down * plan.across),
               c = static_cast<double>(p.in_channels), o = static_cast<double>(p.out_channels);
  const double blocks = static_cast<double>(p.images / plan.images * blocks_down * blocks_across),
               tiles = blocks * rows;
  const double width = static_cast<double>(plan.tile.best.vectors * plan.lanes);
  const double panels = std::ceil(o / width),
               groups = std::ceil(panels / static_cast<double>(plan.panels));
  const Rates r = rates_of(m, busy(m, blocks * groups));

  const double points = static_cast<double>((plan.m + 2) * (plan.m + 2));
  const TransformOps ops = ops_of(plan.m);
  WinogradCost cost;
  cost.products = 2 * points * tiles * c * o / (r.flops * plan.tile.best.score);
  cost.input = groups * tiles * vectors(p.in_channels, m.lanes(4)) *
               (ops.input / m.speed.fma_ports + ops.input_stores) / r.cycles;
  cost.output = tiles * vectors(p.out_channels, m.lanes(4)) *
                (ops.output / m.speed.fma_ports + ops.output_stores) / r.cycles;
  const double input_bytes = points * rows * c * kBytes,
               product_bytes = points * rows * width * kBytes;
  cost.exchange = blocks * (input_bytes * (groups + panels) + 2 * panels * product_bytes) /
                  cache_rate(m, r, input_bytes + product_bytes);
  // The weights come from memory once; then from where they fit, and meanwhile products are made.
  const double weights = points * c * o * kBytes;
  cost.weights = weights / r.memory +
                 std::max(0.0, (blocks - 1) * weights / cache_rate(m, r, weights) - cost.products);
  if (p.transforms_weights) {
    constexpr double kDouble = 2;  // two vectors of f64 for one of f32
    cost.transform = (kWindow * c * o * kBytes + weights) / r.memory +
                     c * vectors(p.out_channels, m.lanes(4)) * kDouble * ops.weights /
                         m.speed.fma_ports / r.cycles;
  }
  return cost;
}

// The plan with the best number of panels in a task.
WinogradPlan with_panels(const MachineDescription& machine, const WindowedProduct& p,
                         WinogradPlan plan) {
  const int64_t width = plan.tile.best.vectors * plan.lanes,
                panels = (p.out_channels + width - 1) / width;
  WinogradPlan best;
  for (plan.panels = 1; plan.panels <= panels; ++plan.panels) {
    if (panels % plan.panels) continue;
    plan.cost = cost_of(machine, p, plan);
    if (plan.panels == 1 || plan.cost.total() < best.cost.total()) best = plan;
  }
  return best;
}

TileSizes sizes_of(const WindowedProduct& p, int64_t tiles, int64_t lanes) {
  return {.rows = tiles, .columns = p.out_channels, .lanes = lanes, .steps = p.in_channels};
}
// Images with few tiles share a pass over the weights, where as many fit the cache.
WinogradPlan with_images(const MachineDescription& machine, const WindowedProduct& p,
                         const WinogradPlan& of_one) {
  constexpr double kSooner = 0.95;  // of what it takes without
  WinogradPlan best = with_panels(machine, p, of_one);
  if (of_one.down < p.tiles_down(of_one.m) || of_one.across < p.tiles_across(of_one.m)) return best;
  for (int64_t images = 2; images <= std::min(p.images, WinogradPlan::kMostImages); ++images) {
    if (p.images % images) continue;
    WinogradPlan plan = of_one;
    plan.images = images;
    plan.tile.best = tile_with(machine, sizes_of(p, images * plan.down * plan.across, plan.lanes),
                               plan.tile.best.vectors * plan.lanes);
    plan = with_panels(machine, p, plan);
    if (plan.cost.total() < kSooner * best.cost.total()) best = plan;
  }
  return best;
}

}  // namespace

WinogradPlan plan_winograd(const MachineDescription& machine, const WindowedProduct& p, int64_t m) {
  // How the weights are packed depends on the tile, and not on the number of images.
  WindowedProduct one = p;
  one.images = 1;
  WinogradPlan best;
  const int64_t lanes = product_lanes(machine, p.out_channels);
  for (int64_t down = 1; down <= p.tiles_down(m); ++down) {
    if (p.tiles_down(m) % down) continue;
    WinogradPlan plan{.m = m, .down = down, .across = p.tiles_across(m), .lanes = lanes};
    plan.tile = choose_tile(machine, sizes_of(p, down * p.tiles_across(m), lanes));
    plan = with_panels(machine, one, plan);
    if (down == 1 || plan.cost.total() < best.cost.total()) best = plan;
  }
  return with_images(machine, p, best);
}

DirectCost direct_cost(const MachineDescription& m, const WindowedProduct& p) {
  const double c = static_cast<double>(p.in_channels), o = static_cast<double>(p.out_channels);
  const double rows = static_cast<double>(p.images * p.height);
  const TileCost tile =
      choose_tile(m, {p.width, p.out_channels, product_lanes(m, p.out_channels), p.width}).best;
  const Rates r = rates_of(m, busy(m, rows));
  DirectCost cost;
  cost.products =
      2 * kWindow * rows * static_cast<double>(p.width) * c * o / (r.flops * tile.score);
  cost.weights = kWindow * c * o * kBytes / r.memory;
  return cost;
}

namespace {

std::string explain(const WinogradCost& c, int64_t m) {
  char text[256];
  std::snprintf(text, sizeof text,
                "\n  F(%lldx%lld, 3x3): %.0f us: products %.0f, input %.0f, output %.0f, "
                "exchange %.0f, weights %.0f, their transform %.0f",
                static_cast<long long>(m), static_cast<long long>(m), c.total(), c.products,
                c.input, c.output, c.exchange, c.weights, c.transform);
  return text;
}

}  // namespace

AssumedProduct assume(const WindowedProduct& p, const Expr& height, const Expr& width) {
  auto with = [&](int64_t symbol) {
    WindowedProduct q = p;
    q.images = 1;
    q.height = extent_with(height, symbol);
    q.width = extent_with(width, symbol);
    return q;
  };
  constexpr int64_t kUsual = 256, kSmall = 64;
  return {with(kUsual), with(kSmall)};
}

namespace {

// Of the direct form's cost.
struct Shares {
  double usual, small;
};
Shares shares_of(const MachineDescription& machine, const AssumedProduct& p,
                 const WinogradPlan& plan) {
  auto share = [&](const WindowedProduct& q) {
    return with_panels(machine, q, plan).cost.total() / direct_cost(machine, q).total();
  };
  return {share(p.usual), share(p.small)};
}

}  // namespace

WinogradPlan plan_blocks(const MachineDescription& machine, const AssumedProduct& p, int64_t m) {
  const MachineDescription one = nominal(machine);
  const int64_t lanes = product_lanes(machine, p.usual.out_channels);
  WinogradPlan best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t down : {1, 2, 4})
    for (int64_t across : {1, 2, 4, 8, 16}) {
      WinogradPlan plan{.m = m, .down = down, .across = across, .lanes = lanes};
      plan.tile = choose_tile(one, {down * across, p.usual.out_channels, lanes});
      const Shares s = shares_of(one, p, plan);
      if (s.usual + s.small >= least) continue;
      least = s.usual + s.small;
      best = plan;
    }
  return with_panels(machine, p.usual, best);
}

WindowedForms windowed_forms(const MachineDescription& machine, const WindowedProduct& p) {
  const MachineDescription one = nominal(machine);
  WindowedForms f{direct_cost(one, p), {plan_winograd(one, p, 2), plan_winograd(one, p, 4)}};
  double least = kSurely * f.direct.total();
  for (const int64_t m : {4, 2}) {  // equal ones: the larger tiles
    if (f.plan(m).cost.total() >= least) continue;
    least = f.plan(m).cost.total();
    f.usual = m;
  }
  return f;
}
WindowedForms windowed_forms(const MachineDescription& machine, const AssumedProduct& p) {
  const MachineDescription one = nominal(machine);
  WindowedForms f{direct_cost(one, p.usual), {plan_blocks(one, p, 2), plan_blocks(one, p, 4)}};
  double least = kSurely;
  for (const int64_t m : {2, 4}) {
    const Shares s = shares_of(one, p, f.plan(m));
    if (s.usual >= least || s.small > 1) continue;
    least = s.usual;
    f.usual = m;
  }
  return f;
}

std::string explain(const MachineDescription& machine, const WindowedProduct& p) {
  const MachineDescription one = nominal(machine);
  const DirectCost d = direct_cost(one, p);
  char direct[256];
  std::snprintf(direct, sizeof direct,
                "estimated for one image on one thread, without measurements (Winograd's form must "
                "take less than %.0f "
                "%% of the direct one)\n  direct: %.0f us: products %.0f, weights %.0f",
                100 * kSurely, d.total(), d.products, d.weights);
  return direct + explain(plan_winograd(one, p, 2).cost, 2) +
         explain(plan_winograd(one, p, 4).cost, 4);
}

}  // namespace tilewright::passes
