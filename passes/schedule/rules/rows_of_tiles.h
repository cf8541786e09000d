// The rows of the tiles that a product will be made of, before these are decided.
#pragma once

#include <vector>

#include "passes/schedule/rules/copied_operands.h"

namespace tilewright::passes {

// Does an axis run over results, more than one?
bool is_parallel(const ir::BlockAxis& axis);

// Does the block compute with the position along an axis itself, beside addresses: in the conditions of padding, as
// values? Tiles of rows of several such axes then cover whole parts of the innermost one.
bool asks_where(const ir::Block& block, size_t axis);

// Where tiles have their rows along `axis`: how many, once their operand lies in panels of so many, and the other
// one in what `copies` say; 0: rows are along another axis, or extents are not known.
int64_t rows_of_tiles(const ir::MachineDescription& machine, const ir::Block& block, size_t axis,
                      const std::vector<Panels>& copies);

}  // namespace tilewright::passes
