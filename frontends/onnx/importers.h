// The tables of importers, one per family. To add an ONNX operator, write one row in its family's
// file.
#pragma once

#include <span>

#include "frontends/onnx/node_import.h"

namespace tilewright::onnx {

// Rows of one family each; op_mapping.cpp puts the tables together. The order of rows is free: a
// row is found by domain, type and opset.
std::span<const OpMapping> math_mappings();
std::span<const OpMapping> activation_mappings();
std::span<const OpMapping> nn_mappings();
std::span<const OpMapping> reduction_mappings();
std::span<const OpMapping> shape_mappings();
std::span<const OpMapping> recurrent_mappings();
std::span<const OpMapping> quantization_mappings();
std::span<const OpMapping> normalization_mappings();
std::span<const OpMapping> attention_mappings();
std::span<const OpMapping> einsum_mappings();
std::span<const OpMapping> signal_mappings();
std::span<const OpMapping> movement_mappings();
std::span<const OpMapping> generator_mappings();
std::span<const OpMapping> conv_transpose_mappings();
std::span<const OpMapping> vision_mappings();
std::span<const OpMapping> selection_mappings();
std::span<const OpMapping> resize_mappings();
std::span<const OpMapping> random_mappings();
std::span<const OpMapping> sequence_mappings();

// Brought into [0, rank); fails outside [-rank, rank), calling it `what`.
int normalized_axis(const NodeImport& n, int64_t axis, int rank, const char* what = "axis");
// A dimension of x cut into parts of these lengths: x, of which a run checks that they add up to an
// extent that only it knows; fails where they do not.
ir::ValueId must_add_up(NodeImport& n, ir::ValueId x, int axis, const std::vector<int64_t>& parts);
// a: f32, brought to 8 bits by its range, times b in 8 bits: f32. b_scale and b_zero (may be
// absent): one value or one for each column.
ir::ValueId dynamically_quantized_matmul(NodeImport& n, ir::ValueId a, ir::ValueId b,
                                         ir::ValueId b_scale, ir::ValueId b_zero);
// Is each element of an integer value known to be 0? An absent one is.
bool is_known_zero(NodeImport& n, ir::ValueId v);
std::span<const OpMapping> control_flow_mappings();

// A Loop that carries sequences from iteration to iteration, which exist by name alone: it is imported in place,
// iteration by iteration, as far as its end is known and not far off.
bool carries_sequence(const NodeImport& n);
void import_loop_of_sequences(NodeImport& n);

}  // namespace tilewright::onnx
