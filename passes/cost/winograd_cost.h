// What a convolution with 3x3 windows costs directly and by Winograd's F(m x m, 3x3): analytic
// costs with named terms.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/handles.h"
#include "ir/machine.h"
#include "passes/cost/tile_cost.h"

namespace tilewright::passes {

// Stride, dilation and group are 1. height, width: of the results.
struct WindowedProduct {
  // Sizes in elements; tiles at the border count whole.
  int64_t images = 1, in_channels = 1, out_channels = 1, height = 1, width = 1;
  bool transforms_weights = false;  // at each run: they are no constants
  int64_t tiles_down(int64_t m) const { return (height + m - 1) / m; }
  int64_t tiles_across(int64_t m) const { return (width + m - 1) / m; }
};

// Microseconds with all threads that the machine description names.
struct WinogradCost {
  double products = 0;   // multiply-adds of the (m + 2)^2 matrix products
  double input = 0;      // transforms of the input, repeated for each group of panels
  double output = 0;     // transforms of the products
  double exchange = 0;   // what the transforms and products hand over through the caches
  double weights = 0;    // reading the weights, (m + 2)^2 for 9, anew for each block of tiles
  double transform = 0;  // of weights that only the run knows
  // The terms follow one another within a task, so they add.
  double total() const { return products + input + output + exchange + weights + transform; }
};
// Tiles have m x m results. A task is a block of down x across tiles of one image, or all those of some `images`,
// by `panels` panels of results' channels, each as wide as the tile in registers.
struct WinogradPlan {
  static constexpr int64_t kMostImages = 16;
  // Block sizes in tiles; lanes: of the products' vectors.
  int64_t m = 4, down = 1, across = 1, images = 1, panels = 1, lanes = 1;
  TileChoice tile;
  // Of the whole convolution, in such blocks.
  WinogradCost cost;
};
// The cheapest plan for tiles of m x m results; whole blocks and whole groups of panels only.
WinogradPlan plan_winograd(const ir::MachineDescription& machine, const WindowedProduct& p,
                           int64_t m);
// Where height or width depend on symbols: with the extents of usual images and those of small
// ones. Blocks are of a size that suits both and depends on neither threads nor measurements.
struct AssumedProduct {
  WindowedProduct usual, small;
};
AssumedProduct assume(const WindowedProduct& p, const ir::Expr& height, const ir::Expr& width);
WinogradPlan plan_blocks(const ir::MachineDescription& machine, const AssumedProduct& p, int64_t m);

// The direct form's cost in microseconds: multiply-adds of nine products per result, and reading
// the weights once.
struct DirectCost {
  double products = 0, weights = 0;
  double total() const { return products + weights; }
};
DirectCost direct_cost(const ir::MachineDescription& machine, const WindowedProduct& p);

// The forms that a convolution can take, as they are decided on: on one thread and without
// measurements, as the rounding of results depends on m.
struct WindowedForms {
  // As the answer of a decision, beside 2 and 4.
  static constexpr int64_t kDirect = 0;
  // What the alternatives are compared with.
  DirectCost direct;
  std::vector<WinogradPlan> plans;  // of m = 2 and 4
  int64_t usual = kDirect;          // or the m of the plan that is surely faster
  const WinogradPlan& plan(int64_t m) const { return plans.at(m == 2 ? 0 : 1); }
};
WindowedForms windowed_forms(const ir::MachineDescription& machine, const WindowedProduct& p);
// Where extents depend on symbols: costs are of usual images; what is usual is not slower for small
// ones.
WindowedForms windowed_forms(const ir::MachineDescription& machine, const AssumedProduct& p);
// The same for the gradient of the weights of such a convolution; `usual` follows from the totals of
// these alone.
struct GradientForms {
  DirectCost direct;
  std::vector<WinogradCost> costs;  // of m = 2 and 4
  int64_t usual = WindowedForms::kDirect;
  const WinogradCost& cost(int64_t m) const { return costs.at(m == 2 ? 0 : 1); }
};
GradientForms gradient_forms(const ir::MachineDescription& machine, const WindowedProduct& p);
// The costs by which that is decided, by their terms, one line each.
std::string explain(const ir::MachineDescription& machine, const WindowedProduct& p);

}  // namespace tilewright::passes
