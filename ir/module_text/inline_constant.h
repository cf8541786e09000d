// Elements of small constants as immediates, and back.
#pragma once

#include <optional>
#include <string>

#include "ir/graph/graph.h"

namespace tilewright::ir {

// "[1, 2]" when the constant is small and the text gives back the same bytes; otherwise nothing.
std::optional<std::string> inline_text(const Constant& c);
// The bytes of elements given as doubles (floats) or integers.
void append_element(std::vector<uint8_t>& bytes, DType dtype, double value);
void append_element(std::vector<uint8_t>& bytes, DType dtype, int64_t value);

}  // namespace tilewright::ir
