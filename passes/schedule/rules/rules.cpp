#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

// Special forms before general ones: `elementwise` and `tile` take whatever is left of their kind.
std::span<const Rule> rules() {
  using enum Applies;
  using enum KeepsOrder;
  static constexpr Rule kRules[] = {
      {"flash_attention", kOperators, kNo, false,
       "blocks of rows by blocks of keys, while they are in cache", nullptr, take_attention},
      {"winograd", kOperators, kNo, false,
       "a block of tiles through all steps while they are in cache", nullptr, take_winograd},
      {"weights_of_winograd", kOperators, kAlsoInParts, false,
       "both transforms of a vector of channels", nullptr, take_winograd_weights},
      {"winograd_gradient", kOperators, kNo, false,
       "tiles into panels, a product of them, and its sums into weights", nullptr,
       take_winograd_gradient},
      {"shared_rows", kKernel, kAlsoInParts, false, "blocks over the same rows share their loops",
       nullptr, take_shared_rows},
      {"product_rows", kKernel, kAlsoInParts, false,
       "products of many places, and rows of their results while these are in cache", nullptr,
       take_product_rows},

      {"resampled_rows", kPointwise, kNo, false,
       "rows where the block that looks them up reads them", nullptr, take_resampled_rows},
      {"pack", kPointwise, kNo, false, "to a layout of blocks of columns by groups of terms",
       nullptr, take_pack},
      {"panels", kPointwise, kNo, false, "to panels of columns, as tiles of a product read them",
       nullptr, take_panels},
      {"interleave", kPointwise, kNo, false,
       "vectors along each of a few planes stored side by side", nullptr, take_interleave},
      {"squares", kPointwise, kNo, false, "transposition in registers", nullptr, take_transpose},
      {"short_rows", kPointwise, kNo, false,
       "rows of a few elements, of which each comes from a plane", nullptr, take_short_rows},
      {"elementwise", kPointwise, kNo, false, "vectors along what is stored side by side", nullptr,
       take_elementwise},

      {"split", kReduction, kNo, false, "few results of many terms: runs of terms, one task each",
       split_pays, take_split},
      {"split_product", kReduction, kNo, false, "the like for a product whose tiles are few tasks",
       split_product_pays, take_split_product},
      {"rows", kReduction, kAlsoInParts, true, "vectors of partial sums along a row", rows_pay,
       take_rows},
      {"columns", kReduction, kOneAfterTheOther, false,
       "rows of accumulators, terms in the order of memory", columns_pay, take_columns},
      {"tile", kReduction, kOneAfterTheOther, false, "a register tile of accumulators", nullptr,
       take_tile},

      {"lanes", kSeveralValues, kNo, false, "a result in each lane of a vector, over all terms",
       nullptr, take_lanes},
      {"nested", kSeveralValues, kAlsoInParts, false,
       "loops of its own for each lane of a vector, shared out", nullptr, take_nested},
  };
  return kRules;
}

}  // namespace tilewright::passes
