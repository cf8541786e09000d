// What the costs of Winograd's forms are made of. Included by winograd_*cost.cpp alone.
#pragma once

#include "ir/machine.h"
#include "passes/cost/tile_cost.h"

namespace tilewright::passes::winograd {

inline constexpr double kBytes = 4;  // of an element
inline constexpr double kWindow = 9;
// Instructions for a tile and a vector of channels, as the operator's transforms are written: along
// the m + 2 columns, then along the rows.
struct TransformOps {
  double input, input_stores, output, output_stores, weights;
};
inline TransformOps ops_of(int64_t m) {
  const double p = static_cast<double>(m + 2), r = static_cast<double>(m);
  const double of_points = m == 4 ? 12 : 4, of_results = m == 4 ? 12 : 4;
  return {2 * p * of_points, 2 * p * p, (p + r) * of_results, (p + r) * r, (p + 3) * of_points};
}
// A form that is not surely faster is not worth its rounding and its memory.
inline constexpr double kSurely = 0.8;

// Of the vectors of a product.
inline int64_t product_lanes(const ir::MachineDescription& m, int64_t columns) {
  return passes::lanes_for(m, static_cast<int>(kBytes), columns);
}
inline double vectors(int64_t channels, int64_t lanes) {
  return static_cast<double>((channels + lanes - 1) / lanes);
}

}  // namespace tilewright::passes::winograd
