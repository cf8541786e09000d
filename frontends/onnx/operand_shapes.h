// Ranks of a node's operands, and which of their extents agree.
#pragma once

#include <span>
#include <string_view>

#include "frontends/onnx/node_import.h"
#include "frontends/onnx/signatures.h"

namespace tilewright::onnx {

// Shapes of the operands of an operator, from the text of the standard. Operands that it does not name may have any.
struct OperandShapes {
  // The operator.
  std::string_view op_type;
  int since;  // first opset of the row
  std::string_view
      attribute;  // an integer attribute that is not 0 in nodes of this row; empty: of all others
  // name:extents of operands. Extents: a number; a letter, one extent wherever it stands; ?, any; a product or quotient
  // of these and of integer attributes, whose default is 1 ("4*h", "c/group"). *x: any number of extents, as many
  // wherever an operand has such, and the same ones for one x; * alone: any number of any extents.
  // `scalar`: one element, of no dimension or one. |: alternatives of different ranks.
  std::string_view shapes;
};
// The rows of operand_shape_rows.cpp.
std::span<const OperandShapes> operand_shapes();

// Fails where ranks or known extents are none of the operator's. Where only the run knows an extent, it is checked
// then.
void check_operand_shapes(NodeImport& n, const Signature& signature);

}  // namespace tilewright::onnx
