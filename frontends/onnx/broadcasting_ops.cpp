#include "frontends/onnx/broadcasting_ops.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tilewright::onnx {

namespace {

// Sorted. https://onnx.ai/onnx/repo-docs/Broadcasting.html, and for operators that came later their own pages.
// PRelu's slope broadcasts to x by the standard; runtimes also take the converse.
constexpr auto kBroadcasting = std::to_array<std::string_view>({
    "Add",
    "And",
    "Attention",
    "BiasGelu",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Einsum",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "MatMul",
    "MatMulInteger",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "QLinearMatMul",
    "Sub",
    "Sum",
    "Where",
    "Xor",
});
static_assert(std::is_sorted(kBroadcasting.begin(), kBroadcasting.end()));

}  // namespace

bool broadcasts(const OnnxNode& node) {
  return std::binary_search(kBroadcasting.begin(), kBroadcasting.end(), node.op_type);
}

}  // namespace tilewright::onnx
