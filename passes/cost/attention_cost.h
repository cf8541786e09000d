// What attention costs by the number of rows that it takes at a time.
#pragma once

#include <cstdint>

#include "ir/machine.h"

namespace tilewright::passes {

// query: [rows, depth]; key: [depth, keys]; value: [keys, width].
struct AttentionSizes {
  int64_t rows = 1, keys = 1, depth = 64, width = 64;
};
// Microseconds of one thread for both products of one head, without measurements, as blocks of rows
// have a say in how results are rounded. Blocks are whole: the last one's idle rows cost as much as
// the others. Each reads all keys and values again, from the cache that they fit, and the part of
// that which multiply-adds do not hide counts.
double attention_cost(const ir::MachineDescription& machine, const AttentionSizes& sizes,
                      int64_t row_block);

}  // namespace tilewright::passes
