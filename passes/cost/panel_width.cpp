#include "passes/cost/panel_width.h"

#include "passes/cost/tile_cost.h"

namespace tilewright::passes {

bool is_worth_a_copy(const ProductSizes& sizes) {
  constexpr int64_t kFarApart = 256;  // bytes from one row to the next
  constexpr int64_t kFewestTerms = 128, kFewestResults = 96, kTermsOfAPlace = 16,
                    kOfATransposed = 6;
  const int64_t fewest = sizes.is_transposed ? kOfATransposed : kFewestResults,
                terms = sizes.of_a_place ? kTermsOfAPlace : kFewestTerms;
  return sizes.columns * sizes.bytes >= kFarApart && sizes.terms >= terms &&
         static_cast<double>(sizes.rows) * static_cast<double>(sizes.repeats) >=
             static_cast<double>(fewest);
}

int64_t panel_width(const ir::MachineDescription& machine, const ProductSizes& sizes) {
  if (!is_worth_a_copy(sizes)) return 0;
  const int64_t lanes = lanes_for(machine, sizes.bytes, sizes.columns);
  const TileCost best = choose_tile(machine, {.rows = sizes.of_tiles ? sizes.of_tiles : sizes.rows,
                                              .columns = sizes.columns,
                                              .lanes = lanes,
                                              .within = sizes.within,
                                              .terms = sizes.terms,
                                              .bytes = sizes.bytes})
                            .best;
  return best.vectors * lanes;
}

}  // namespace tilewright::passes
