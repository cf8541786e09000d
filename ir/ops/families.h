// The families of operators. To add an operator, write one OpDef in its family's file; to add a
// family, one line here and one in all_ops.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/op.h"

namespace tilewright::ir {

// Where ONNX describes its operators: OpDef::source.
inline constexpr std::string_view kOnnx = "https://onnx.ai/onnx/operators/";

// One function for each file ir/ops/<family>.cpp; tables are built once and live as long as the
// program.
const std::vector<OpDef>& pointwise_ops();
const std::vector<OpDef>& conversion_ops();
const std::vector<OpDef>& contraction_ops();
const std::vector<OpDef>& window_ops();
const std::vector<OpDef>& conv_transpose_ops();
const std::vector<OpDef>& reduction_ops();
const std::vector<OpDef>& normalization_ops();
const std::vector<OpDef>& shaping_ops();
const std::vector<OpDef>& movement_ops();
const std::vector<OpDef>& recurrent_ops();
const std::vector<OpDef>& quantization_ops();
const std::vector<OpDef>& control_flow_ops();
const std::vector<OpDef>& linear_algebra_ops();
const std::vector<OpDef>& cofactor_ops();
const std::vector<OpDef>& padding_ops();
const std::vector<OpDef>& generator_ops();
const std::vector<OpDef>& indexing_ops();
const std::vector<OpDef>& index_check_ops();
const std::vector<OpDef>& pooling_ops();
const std::vector<OpDef>& sampling_ops();
const std::vector<OpDef>& column_ops();
const std::vector<OpDef>& region_ops();
const std::vector<OpDef>& roi_align_ops();
const std::vector<OpDef>& sorting_ops();
const std::vector<OpDef>& selection_ops();
const std::vector<OpDef>& box_ops();
const std::vector<OpDef>& resize_ops();
const std::vector<OpDef>& attention_ops();
const std::vector<OpDef>& winograd_ops();
const std::vector<OpDef>& winograd_gradient_ops();
const std::vector<OpDef>& random_ops();
const std::vector<OpDef>& conv_gradient_ops();
const std::vector<OpDef>& transposed_ops();
const std::vector<OpDef>& recurrent_gradient_ops();
const std::vector<OpDef>& pooling_gradient_ops();
const std::vector<OpDef>& normalization_gradient_ops();

}  // namespace tilewright::ir
