// Tells parameters from other constants by their values: an initial parameter is random or uniform, a mask or table
// follows a formula.
#pragma once

#include <vector>

#include "frontends/onnx/model.h"

namespace tilewright::train {

// Elements of an f32 tensor, row-major; empty: it is of another type, or so large that it is taken for a parameter.
std::vector<float> floats_of(const TensorView& tensor);

// 0 and one other number that switches something off or on (1, -1, or so large a one that a softmax takes it for an
// infinity), or infinities.
bool is_mask(const std::vector<float>& values);
// Whole and half numbers, three of them or more; lines along a dimension that are arithmetic or geometric sequences; or
// sines and cosines of the same angles: beside each other, or in two halves of the last dimension.
bool is_table(const Shape& shape, const std::vector<float>& values);
// Are these the sines and cosines of the same angles?
bool are_sines_and_cosines(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace tilewright::train
