// The log of a run: a JSON object a line, one for each step.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"

namespace tilewright::train {

// What two runs of a job share stands before how fast it was.
struct LogLine {
  int64_t step = 0;  // 0 is the first
  double loss = 0;   // before the step's update
  double lr = 0;
  // After the update, of the steps that evaluate (evaluation.h).
  std::optional<double> held_back_loss, held_back_accuracy;
  double samples_per_second = 0;
  // Seconds of communication of rank 0, and the exposed part of it; absent for a single process.
  std::optional<double> communicating, waiting;
};

class StepLog {
 public:
  // For a run that goes on at a step: lines of earlier ones are kept, all behind them is cut off. Empty
  // path: nothing is written. remember: lines() will be asked for. take_over: replaces the file with a copy, which
  // fences off a suspended process that still has the old file open. Errors: kIo.
  static Result<std::unique_ptr<StepLog>> open(const std::filesystem::path& path, int64_t step,
                                               bool remember, bool take_over = false);

  // Whoever reads the file sees the line at once.
  Status write(const LogLine& line);
  // Waits until all lines are on the disk. May be called by another thread.
  Status flush_to_disk();
  int64_t steps_kept() const { return steps_kept_; }  // when it was opened
  // Of all steps, those that were kept too.
  const std::vector<LogLine>& lines() const { return lines_; }

 private:
  Status keep_before(int64_t step, bool take_over);

  std::filesystem::path path_;
  Descriptor file_;
  int64_t steps_kept_ = 0;
  bool remember_ = false;
  std::vector<LogLine> lines_;
};

}  // namespace tilewright::train
