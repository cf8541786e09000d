// How large a tile of accumulators is: an analytic cost with named terms.
#pragma once

#include <string>
#include <vector>

#include "ir/machine.h"

namespace tilewright::passes {

// Lanes of the vectors that a product of so many columns takes for sums of that many bytes: half a
// vector is a vector, too.
int64_t lanes_for(const ir::MachineDescription& machine, int bytes, int64_t columns);

constexpr int64_t kMostTileRows =
    14;  // of 32 registers, more leave none for two vectors of columns

// A tile of `rows` x `vectors` sums in registers and what one step of the reduction costs it.
struct TileCost {
  int64_t rows = 1, vectors = 1;
  double multiply = 0;   // cycles of the multiply-adds
  double loads = 0;      // cycles of reading a vector per column and an element per row
  double latency = 0;    // cycles until a sum can be added to again
  double stream = 0;     // cycles of reading panels of both operands from the L2 cache
  double columns = 0;    // the same of the right one alone
  double conflicts = 0;  // cycles of reading rows again that pushed one another out of the L1 cache
  double start = 0;      // cycles of beginning and ending a tile, of each step
  double again = 0;      // the same of each block of steps, and of loading and storing its sums
  double row_use = 0;    // part of the rows that is no padding; leftover rows count half
  double column_use = 0;  // part of the lanes that is no padding
  double balance = 1;     // part of the time that all threads have a task
  bool fits = false;      // the registers
  double score = 0;       // estimated part of the multiply-add peak; 0: not worth a trial
};
// Of a product: rows and columns of results, lanes of its vectors.
struct TileSizes {
  int64_t rows = 1, columns = 1, lanes = 1;
  int64_t within = 0;  // the innermost extent of joined row axes, whole parts of which tiles cover;
                       // 0: any size
  int64_t outer = 0;  // tiles of one place that the axes around make; 0: not known, threads have no
                      // say
  int64_t depth = 0;  // steps of the reduction; 0: not known
  int64_t block = 0;  // steps after which sums are stored and loaded again; 0: sums do not wait
  int64_t row_bytes = 0;  // from a row of the left operand to the next; 0: not known
  // Of steps of which each reads rows of the left operand that lie side by side, and `lanes` elements of the right one
  // for each vector; 0: those of the left one lie along the steps.
  int64_t steps = 0;
  int64_t terms = 0;  // of a result, for each of which a tile reads its columns; 0: not known
  int64_t panel_rows = 0;  // that lie so; 0: those of a tile
  int64_t bytes = 4;       // of an element
};
// Do tiles of two vectors cover whole parts of so many rows, or several times them? Rows that run on are joined
// then; else a row of its own with a tail is better than tiles of one row, or of one vector.
bool tiles_cover(const ir::MachineDescription& machine, int64_t within);
// The tiles of so many vectors, by their rows: those that fit the registers, and some that may yet be
// faster.
std::vector<TileCost> tiles_of(const ir::MachineDescription& machine, const TileSizes& sizes,
                               int64_t vectors);
// The best one that fits for each number of vectors that has one.
std::vector<TileCost> best_tiles(const ir::MachineDescription& machine, const TileSizes& sizes);
// `next`: the best one of another shape.
struct TileChoice {
  TileCost best, next;
};
TileChoice choose_tile(const ir::MachineDescription& machine, const TileSizes& sizes);
// The best tile whose columns are those of panels of that width, where there is such a one; 0: of any width.
TileCost tile_with(const ir::MachineDescription& machine, const TileSizes& sizes, int64_t width);
// What so many multiply-adds of f32 take one thread in such tiles.
double microseconds(const ir::MachineDescription& machine, const TileCost& tile,
                    double multiply_adds);

// A few lines that say why.
std::string explain(const TileChoice& choice, int64_t lanes, int registers);

}  // namespace tilewright::passes
