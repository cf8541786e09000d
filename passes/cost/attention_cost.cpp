#include "passes/cost/attention_cost.h"

#include "passes/cost/machine_rates.h"
#include "passes/cost/tile_cost.h"

namespace tilewright::passes {

double attention_cost(const ir::MachineDescription& machine, const AttentionSizes& s,
                      int64_t row_block) {
  constexpr int kBytes = 4;              // of an element
  constexpr double kExposed = 0.1;       // part of the reading that multiply-adds do not hide
  constexpr double kAcrossLines = 0.005;  // of the time of a tile, for each of its vectors
  const ir::MachineDescription one = nominal(machine);
  const Rates rates = rates_of(one, 1);
  // A product of a block's rows, in tiles of sums in registers. Rows of keys begin anywhere: vectors of
  // them cross cache lines, of which tiles of few rows read more.
  const auto product = [&](int64_t columns, int64_t terms) {
    const TileCost tile =
        choose_tile(one, {row_block, columns, lanes_for(one, kBytes, columns)}).best;
    const double across = 1 + kAcrossLines * static_cast<double>(tile.vectors);
    return 2.0 * static_cast<double>(row_block * columns * terms) * across /
           (rates.flops * tile.score);
  };
  const double read = static_cast<double>(s.keys * (s.depth + s.width) * kBytes);
  const double block = product(s.keys, s.depth) + product(s.width, s.keys) +
                       kExposed * read / cache_rate(one, rates, read);
  return block * static_cast<double>((s.rows + row_block - 1) / row_block);
}

}  // namespace tilewright::passes
