// Tiles of a matrix unit (AMX): how many rows each takes and how many make one tile of sums.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/machine.h"
#include "runtime/core/dtype.h"

namespace tilewright::passes {

// `row_tiles` x `column_tiles` tiles of sums; one has `rows` rows and kLanes columns, and a step of
// the reduction adds kGroups groups of terms to each.
struct MatrixTile {
  // The limits of TDPBUSD and TDPBF16PS.
  static constexpr int64_t kMostRows = 16, kLanes = 16, kGroups = 16;
  int64_t rows = 0, row_tiles = 1, column_tiles = 1;
  // Of results that one step of the row loop takes.
  int64_t all_rows() const { return rows * row_tiles; }
};

// For a product with sums of `depth` terms side by side; nothing where the machine has no unit for
// operands of type `left`, or a part of the product is too small for it. spans: whole parts of each
// are covered by a tile of sums, or whole tiles by it.
std::optional<MatrixTile> choose_matrix_tile(const ir::MachineDescription& machine, DType left,
                                             int64_t rows, int64_t columns, int64_t depth,
                                             const std::vector<int64_t>& spans = {});

// A line that says why; `rows`: of the whole product, where known.
std::string explain(const MatrixTile& tile, std::optional<int64_t> rows);

}  // namespace tilewright::passes
