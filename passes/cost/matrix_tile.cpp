// Tiles for AMX: TDPBUSD works on up to 16 rows by 16 columns of sums in one instruction that takes
// as long for fewer rows. So rows are split into tiles of equal height where that leaves no rest,
// two by two tiles at a time to use each loaded operand twice (eight tile registers: four of sums,
// four of operands).
#include "passes/cost/matrix_tile.h"

#include <algorithm>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

namespace {

constexpr int64_t kFewestRows = 6;  // below, the vector instructions are as fast

bool has_unit(const ir::MachineDescription& machine, DType left) {
  return machine.has_matrix_unit(left) && machine.lanes(4) == MatrixTile::kLanes;
}

// In rows that the vector instructions could do in the time: a tile takes as long for fewer rows,
// leftover rows run without the unit.
int64_t cost(int64_t all, int64_t rows) {
  constexpr int64_t kTile = 2, kLeftover = 1;
  return all / rows * kTile + all % rows * kLeftover;
}

}  // namespace

std::optional<MatrixTile> choose_matrix_tile(const ir::MachineDescription& machine, DType left,
                                             int64_t rows, int64_t columns, int64_t depth,
                                             const std::vector<int64_t>& spans) {
  const int64_t terms = ir::dot_terms(left);
  if (!has_unit(machine, left) || rows < kFewestRows || columns <= MatrixTile::kLanes / 2 ||
      depth % (terms * MatrixTile::kGroups) != 0)
    return std::nullopt;
  MatrixTile tile;
  for (const int64_t tiles : {2, 1})
    for (int64_t r = std::min(rows / tiles, MatrixTile::kMostRows); r >= kFewestRows; --r) {
      const int64_t all = r * tiles;
      if (!std::all_of(spans.begin(), spans.end(),
                       [&](int64_t span) { return span % all == 0 || all % span == 0; }))
        continue;
      if (tile.rows && cost(rows, r) >= cost(rows, tile.rows)) continue;
      tile.rows = r;
      tile.row_tiles = tiles;
    }
  if (!tile.rows) return std::nullopt;
  tile.column_tiles = columns > MatrixTile::kLanes ? 2 : 1;
  return tile;
}

std::string explain(const MatrixTile& tile, std::optional<int64_t> rows) {
  const auto text = [](int64_t n) { return std::to_string(n); };
  const int64_t left = rows.value_or(0) % tile.rows;
  return "the matrix unit takes " + text(tile.row_tiles) + " x " + text(tile.column_tiles) +
         " tiles of " + text(tile.rows) + " rows x " + text(MatrixTile::kLanes) +
         " columns of sums, " + text(MatrixTile::kGroups) + " groups of terms a step; " +
         (!rows  ? "rows that fill no tile are left to vector instructions"
          : left ? text(left) + " rows are left to vector instructions"
                 : "no row is left over");
}

}  // namespace tilewright::passes
