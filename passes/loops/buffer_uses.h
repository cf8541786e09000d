// Where a buffer is accessed, and its accesses led to another buffer.
#pragma once

#include <functional>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

// An access, with the loops around it.
struct BufferUse {
  std::vector<const ir::For*> loops;
  std::vector<ir::Expr> indices;
  bool stored = false;
};

struct BufferUses {
  std::vector<BufferUse> all;
  bool opaque = false;  // others may be hidden
};
BufferUses uses_of(const ir::BufferNode& buffer, const ir::Stmt& s);

// Each load and store of `from` becomes one of `to`, at what `map` makes of its indices. start: the element of `from`
// that is the first of `to`, as lines that are brought near need it; none of these are there where it is null.
using MapIndices = std::function<std::vector<ir::Expr>(const std::vector<ir::Expr>&)>;
ir::Stmt lead_accesses(const ir::Stmt& s, const ir::Buffer& from, const ir::Buffer& to,
                       const MapIndices& map, const ir::Expr& start = {});

}  // namespace tilewright::passes
