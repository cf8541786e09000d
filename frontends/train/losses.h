// What training makes small, as formulas over a model's output and the targets.
#pragma once

#include <string_view>

#include "ir/formula/formula.h"

namespace tilewright::train {

// cross_entropy: logits [..., classes], targets i64 [...]: the mean over all positions of -log
// softmax(logits)[target]. mean_squares, logistic: f32 of one shape, means over all elements; logistic
// of logits and targets in [0, 1]. output: the mean of the model's output, without targets.
struct Loss {
  std::string_view name;
  bool has_targets;
  // The type of the targets for an output of this type.
  ir::TensorType (*targets)(const ir::TensorType& output);
  ir::V (*loss)(ir::V output, ir::V targets);  // f32[]
  // By target, bool: is the largest logit at it or, of logistic, is the logit on its side of 0? Null: the
  // loss knows no right and wrong.
  ir::V (*hits)(ir::V output, ir::V targets);
};
const Loss& find_loss(std::string_view name);

}  // namespace tilewright::train
