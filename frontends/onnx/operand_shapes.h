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
  // A list of name:extents. An extent is a number, a letter (all dimensions with this letter have equal extents),
  // ? for any extent, or a product or quotient of these and of integer attributes with default 1 ("4*h", "c/group").
  // *x stands for a list of dimensions: all such lists of a node have the same length, and lists with one name have
  // equal extents. * alone stands for any dimensions. `scalar` is a tensor of one element of rank 0 or 1. | separates
  // alternatives of different ranks.
  std::string_view shapes;
};
// The rows of operand_shape_rows.cpp: of ai.onnx, and of com.microsoft.
std::span<const OperandShapes> standard_operand_shapes();
std::span<const OperandShapes> microsoft_operand_shapes();

// Fails where ranks or known extents are none of the operator's. Where only the run knows an extent, it is checked
// then.
void check_operand_shapes(NodeImport& n, const Signature& signature);

}  // namespace tilewright::onnx
