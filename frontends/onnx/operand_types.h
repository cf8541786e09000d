// Element types of a node's operands, as its operator's signature has them.
#pragma once

#include "frontends/onnx/node_import.h"
#include "frontends/onnx/signatures.h"

namespace tilewright::onnx {

// Fails where an operand is missing that must be there, is a sequence where tensors are expected or the other way
// round, or has a type that the operator does not take; and where operands of one named type have several.
void check_operand_types(NodeImport& n, const Signature& signature);

// Operand i as messages name it, "operand 'scales'".
std::string operand_name(const Signature& signature, int i);

}  // namespace tilewright::onnx
