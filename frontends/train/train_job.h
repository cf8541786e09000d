// All of a training job: its steps, and what they leave.
#pragma once

#include <functional>
#include <string>

#include "frontends/train/step_log.h"
#include "frontends/train/trainer.h"

namespace tilewright::train {

// kGoOn: where the job's checkpoints end, or at the first step where there are none. kResume: there must
// be one. kFresh: at the first step; the checkpoints that there are go away.
enum class Start { kGoOn, kResume, kFresh };
struct TrainOptions {
  Start start = Start::kGoOn;
  // Whenever the ranks were connected, on all of them.
  std::function<Status()> connected;
  // After each step; `stop` true: it is the last one, and its checkpoint is written.
  std::function<void(const LogLine&)> progress;
  std::function<bool()> stop;
  // What a person should know, though the run goes on.
  std::function<void(const std::string&)> note;
};

struct TrainEnd {
  int64_t first = 0, steps = 0;  // where it began; how many are done, those of earlier runs too
  double loss = 0;               // of the last step that it made
  bool stopped = false;
  std::filesystem::path checkpoint;  // of the end; empty: the job wants none
  std::vector<RankTimes> ranks;      // of several
};

// Of several ranks, all call this; rank 0 reads and writes files and tells of steps.
// Runs the job's steps and writes what it wants written. A run that goes on ends with the same log
// (but for times), checkpoints and model as one that was never interrupted. Errors: a checkpoint of
// another job or of more steps than this one has, a file that cannot be written, a loss, a gradient or a state that is
// not finite: nothing of its step is kept but its line of the log.
Result<TrainEnd> train(Trainer& trainer, const Job& job, const TrainOptions& options);

}  // namespace tilewright::train
