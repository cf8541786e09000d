// What the body of a parallel loop names from outside.
#pragma once

#include <vector>

#include "codegen/cpu/emit_values.h"

namespace tilewright::cpu {

struct Captured {
  std::vector<const ir::ExprNode*> vars;       // by name
  std::vector<const ir::BufferNode*> buffers;  // in the order of their first use
};
// Of what the frame around the loop knows.
Captured captured_by(const ir::For& loop, const Frame& around);

}  // namespace tilewright::cpu
