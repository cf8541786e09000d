// Whether an operand of a product that only the run knows is worth a copy, in the order in which tiles of the
// product read it.
#pragma once

#include "ir/machine.h"

namespace tilewright::passes {

// [rows, terms] by [terms, columns]; extents that are not known are 0.
struct ProductSizes {
  int64_t rows = 0, columns = 0, terms = 0;
  int bytes = 4;        // of an element
  int64_t repeats = 1;  // how often the operand is used, as in the steps of a recurrent layer
  int64_t within = 0;   // rows that lie side by side, whole parts of which tiles cover; 0: any
  int64_t of_tiles =
      0;  // rows among which tiles choose theirs, as there are several such sets; 0: all
  bool is_transposed = false;  // it is [columns, terms], which takes a copy in any case
  bool of_a_place = false;  // one of many, which the task that reads it copies while it is in cache
};
// A tile reads a few elements of each of many rows of memory. Where these are longer than a few lines, it
// finds them in no cache again: a power of two apart they fall into the same sets, at any distance they are
// many lines, or pages, that no prefetcher follows. Results enough for each element make a copy cheap.
bool is_worth_a_copy(const ProductSizes& sizes);
// Columns that a panel has side by side: those of a tile. 0: a copy does not pay.
int64_t panel_width(const ir::MachineDescription& machine, const ProductSizes& sizes);

}  // namespace tilewright::passes
