// What each ONNX operator takes: how many operands and results, which attributes of which kinds.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "frontends/onnx/model.h"

namespace tilewright::onnx {

// As a number of operands or results: no limit (variadic).
inline constexpr int kAny = -1;

// The arity and attributes of one version of an operator, from the ONNX specification.
struct Signature {
  // The operator.
  std::string_view op_type;
  int since;  // first opset of the row, as in OpMapping
  int least_inputs, most_inputs, least_outputs, most_outputs;  // most: kAny, or a number
  // name:kind, with ! when it must be there. Kinds: int, float, string, tensor, graph, type by
  // their first letter (type: y, sparse tensor: p), lists of them by the capital.
  std::string_view attributes;
  // name:type for each operand. A final ? marks an optional operand, * a variadic one, ** a variadic one of mixed
  // types. The type is a set of element types, or the name of a set in `types`.
  std::string_view operands;
  // A list of name=set, one for each type variable; all operands of one variable have the same element type. A set
  // adds and subtracts element types and groups of them (all, num, floats, ints, uints): "f32+i64", "num-u64".
  // `seq` is the set of sequences, and `none` the empty set.
  std::string_view types;
};
// The rows of signature_rows.cpp: of ai.onnx, and of com.microsoft.
std::span<const Signature> standard_signatures();
std::span<const Signature> microsoft_signatures();

// The row of the node's operator and opset; null when nothing is known of the operator.
const Signature* find_signature(const OnnxNode& node);
// What a node has that its operator has not, or the other way round; "" when it fits, or when
// nothing is known of the operator.
std::string signature_mismatch(const OnnxNode& node);

}  // namespace tilewright::onnx
