// Words of the text form that name types and operators.
#pragma once

#include <optional>
#include <string_view>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Lanes of a vector type in text: refuses types that would exhaust memory.
inline constexpr int kMaxLanes = 4096;

// What a word names; nothing when it names no such thing.
std::optional<ScalarType> type_named(std::string_view text);  // f32, i64x8
std::optional<BinaryOp> binary_named(std::string_view text);  // +, floordiv
std::optional<UnaryOp> unary_named(std::string_view text);    // sqrt

}  // namespace tilewright::ir
