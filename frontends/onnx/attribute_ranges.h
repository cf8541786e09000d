// The range of each integer attribute of ONNX operators.
#pragma once

#include <cstdint>
#include <string_view>

#include "frontends/onnx/model.h"

namespace tilewright::onnx {

struct IntegerRange {
  int64_t least, most;  // inclusive
};
// The range of an integer, or of each of a list. Flags are 0 or 1; what counts or divides is at least 1; no other
// extent, axis or padding is beyond 2^31. Elements of constants and ends of slices have all values.
IntegerRange attribute_range(const OnnxNode& node, std::string_view attribute);

}  // namespace tilewright::onnx
