#include "frontends/onnx/attribute_ranges.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace tilewright::onnx {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;
// Each element of RoiAlign takes the square of this many samples: more would take hours.
constexpr int64_t kMostSamples = 1 << 10;

// Attributes of one name mean the same in all operators that have them.
constexpr std::string_view kFlags[] = {
    "align_corners",
    "allowzero",
    "antialias",
    "ceil_mode",
    "center_point_box",
    "count_include_pad",
    "detect_negative",
    "detect_positive",
    "directions",
    "exclude_outside",
    "exclusive",
    "fmod",
    "input_forget",
    "interleaved",
    "inverse",
    "is_causal",
    "is_test",
    "keepdims",
    "largest",
    "layout",
    "linear_before_reset",
    "new_axis",
    "noop_with_empty_axes",
    "onesided",
    "periodic",
    "reverse",
    "saturate",
    "scan_input_directions",
    "scan_output_directions",
    "select_last_index",
    "sorted",
    "storage_order",
    "training_mode",
    "transA",
    "transB",
    "upper",
};
// Lists attributes that are sizes, counts or divisors.
constexpr std::string_view kAtLeastOne[] = {
    "blocksize",       "chunk_size",    "dilations",
    "group",           "hidden_size",   "kernel_shape",
    "kv_num_heads",    "num_groups",    "num_outputs",
    "num_scan_inputs", "offset_group",  "p",
    "output_width",    "output_height", "pooled_shape",
    "q_num_heads",     "sample_size",   "size",
    "strides",
};
// Of these 0 means that the operator takes its default: no blocks, all heads, as many samples as fit.
constexpr std::string_view kAtLeastZero[] = {
    "batch_dims",           "block_size", "num_heads", "output_padding", "qk_matmul_output_mode",
    "rotary_embedding_dim",
};

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

IntegerRange attribute_range(const OnnxNode& node, std::string_view attribute) {
  if (node.op_type == "Constant" || node.op_type == "Slice" || node.op_type == "Shape")
    return {INT64_MIN, INT64_MAX};
  if (has(kFlags, attribute)) return {0, 1};
  if (attribute == "sampling_ratio") return {0, kMostSamples};
  return {has(kAtLeastOne, attribute) ? 1 : has(kAtLeastZero, attribute) ? 0 : -kMost, kMost};
}

}  // namespace tilewright::onnx
