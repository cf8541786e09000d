#include "passes/schedule/rules/matrix_tile.h"

#include <algorithm>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

namespace {

constexpr int64_t kFewestRows = 6;  // below, the vector instructions are as fast

bool has_unit(const ir::MachineDescription& machine, DType left) {
  const char* feature = left == DType::kUInt8      ? "amx-int8"
                        : left == DType::kBFloat16 ? "amx-bf16"
                                                   : nullptr;
  return feature && machine.has("amx-tile") && machine.has(feature) &&
         machine.lanes(4) == MatrixTile::kLanes;
}

// In rows that the vector instructions could do in the time: a tile takes as long for fewer rows,
// leftover rows run without the unit.
int64_t cost(int64_t all, int64_t rows) {
  constexpr int64_t kTile = 2, kLeftover = 1;
  return all / rows * kTile + all % rows * kLeftover;
}

}  // namespace

std::optional<MatrixTile> choose_matrix_tile(const ir::MachineDescription& machine, DType left,
                                             int64_t rows, int64_t columns, int64_t depth) {
  const int64_t terms = ir::dot_terms(left);
  if (!has_unit(machine, left) || rows < kFewestRows || columns <= MatrixTile::kLanes / 2 ||
      depth % (terms * MatrixTile::kGroups) != 0)
    return std::nullopt;
  MatrixTile tile{.rows = std::min(rows, MatrixTile::kMostRows)};
  for (int64_t r = tile.rows - 1; r >= kFewestRows; --r)
    if (cost(rows, r) < cost(rows, tile.rows)) tile.rows = r;
  tile.row_tiles = rows >= 2 * tile.rows ? 2 : 1;
  tile.column_tiles = columns > MatrixTile::kLanes ? 2 : 1;
  return tile;
}

std::string explain(const MatrixTile& tile, int64_t rows) {
  const auto text = [](int64_t n) { return std::to_string(n); };
  const int64_t left = rows % tile.rows;
  return "the matrix unit takes " + text(tile.row_tiles) + " x " + text(tile.column_tiles) +
         " tiles of " + text(tile.rows) + " rows x " + text(MatrixTile::kLanes) +
         " columns of sums, " + text(MatrixTile::kGroups) + " groups of terms a step; " +
         (left ? text(left) + " rows are left to vector instructions" : "no row is left over");
}

}  // namespace tilewright::passes
