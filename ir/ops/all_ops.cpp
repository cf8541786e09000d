#include "ir/ops/families.h"

namespace tilewright::ir {

const std::vector<const OpDef*>& all_ops() {
  static const auto* const ops = [] {
    auto* list = new std::vector<const OpDef*>;
    for (const auto* family : {
             &pointwise_ops(),
             &conversion_ops(),
             &contraction_ops(),
             &window_ops(),
             &reduction_ops(),
             &normalization_ops(),
             &shaping_ops(),
             &movement_ops(),
             &recurrent_ops(),
             &quantization_ops(),
             &control_flow_ops(),
             &linear_algebra_ops(),
             &cofactor_ops(),
             &padding_ops(),
             &generator_ops(),
             &indexing_ops(),
             &pooling_ops(),
             &sampling_ops(),
             &column_ops(),
             &sorting_ops(),
             &selection_ops(),
             &resize_ops(),
             &attention_ops(),
             &winograd_ops(),
             &winograd_gradient_ops(),
             &box_ops(),
             &region_ops(),
             &roi_align_ops(),
             &index_check_ops(),
             &random_ops(),
             &conv_transpose_ops(),
             &conv_gradient_ops(),
             &transposed_ops(),
             &pooling_gradient_ops(),
             &normalization_gradient_ops(),
             &recurrent_gradient_ops(),
         })
      for (const OpDef& op : *family) list->push_back(&op);
    return list;
  }();
  return *ops;
}

}  // namespace tilewright::ir
