// How well a model does on samples that it is not trained on.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontends/compiler/compiler.h"
#include "frontends/train/data.h"
#include "frontends/train/eval_graph.h"
#include "frontends/train/ranks.h"
#include "runtime/session.h"

namespace tilewright::train {

// Over all samples and positions, each counted once.
struct HeldBack {
  double loss = 0;
  std::optional<double> accuracy;  // part of all targets that are hits (Loss::hits)
};

class Evaluator {
 public:
  // wanted: of the data, as the step has it. flats: the buffers of `layouts`, which the caller may change
  // between runs. Errors: those of open_dataset, of build_evaluation and of compiling.
  static Result<std::unique_ptr<Evaluator>> create(const OnnxModel& model,
                                                   const std::vector<const Parameters*>& layouts,
                                                   const std::vector<Tensor>& flats, const Job& job,
                                                   const Wanted& wanted,
                                                   const CompileOptions& compile, int threads);
  // Ranks take batches in turn.
  Result<HeldBack> run(const Ranks& ranks);

 private:
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> inputs_, outputs_;  // as eval_graph.h has them
  int64_t batch_ = 0, positions_ = 1;     // positions_: targets of a sample
  bool counts_hits_ = false;
};

}  // namespace tilewright::train
