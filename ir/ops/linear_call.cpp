#include "ir/ops/linear_call.h"

#include "ir/graph/compute.h"

namespace tilewright::ir {

Result<LinearCall> linear_call(const NodeView& c) {
  LinearCall call;
  call.node.op = find_op(c.attr_string(kTransposedOp));
  if (!call.node.op || !call.node.op->compute)
    return invalid("'" + c.attr_string(kTransposedOp) + "' is no operator with loops");
  const auto extents = c.attr_extents(kTransposedExtents);
  call.operand = static_cast<size_t>(c.attr_int(kTransposedOperand, -1));
  if (!extents || call.operand >= static_cast<size_t>(c.num_inputs()))
    return invalid("no extents, or no operand, are stated");
  call.node.attributes = c.node().attributes;
  for (const char* own : {kTransposedOp, kTransposedOperand, kTransposedExtents})
    call.node.attributes.erase(own);
  auto add = [&](Value v) {
    v.producer = -1;
    call.graph.values.push_back(std::move(v));
    call.node.inputs.push_back(static_cast<ValueId>(call.graph.values.size()) - 1);
  };
  for (int i = 1; i <= c.num_inputs(); ++i) {
    if (static_cast<size_t>(i) == call.operand + 1)
      add({.name = "x",
           .type = {c.type(0).dtype, *extents},
           .layout = {},
           .known = {},
           .constant = {}});
    if (i == c.num_inputs()) break;
    if (c.has(i))
      add(c.value(i));
    else
      call.node.inputs.push_back(kNone);
  }
  const Value dy = c.value(0);
  call.node.outputs.push_back(call.graph.add_value("y", dy.type));
  return call;
}

}  // namespace tilewright::ir
