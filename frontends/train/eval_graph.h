// A batch of held-back samples as a graph: the model as it is used, not trained, and its loss. Whatever mode it was
// exported for, Dropout drops nothing (also where it is written out) and BatchNormalization takes running statistics.
#pragma once

#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/onnx/write_trained.h"
#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "ir/graph/graph.h"

namespace tilewright::train {

// Inputs: the model's, targets (where the loss has some), then a flat buffer for each of `layouts`. Outputs:
// the loss (f32, a mean) of job.part() samples and, where the loss says what a hit is (Loss::hits), how many
// there are (i64, of all targets). With rest > 0 the same again of the first `rest` samples, for
// the last batch, whose other rows may be anything.
struct EvalGraph {
  ir::Graph graph;
  bool counts_hits = false;  // the second output of each pair is there
};

// layouts: buffers whose members stand for the model's initialisers, in this order. Errors: those of import;
// an output without a dimension of samples where there is a rest.
Result<EvalGraph> build_evaluation(const OnnxModel& model,
                                   const std::vector<const Parameters*>& layouts, const Job& job,
                                   int64_t rest);

// The job's `outputs`, with the types that they have in batches of the job, without extents. Errors: those of import.
Result<WrittenOutputs> written_outputs(const OnnxModel& model, const Job& job);

}  // namespace tilewright::train
