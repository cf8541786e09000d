// Runs steps of a training job, and keeps the state between them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "frontends/compiler/compiler.h"
#include "frontends/onnx/write_trained.h"
#include "frontends/train/batches.h"
#include "frontends/train/checkpoint.h"
#include "frontends/train/data.h"
#include "frontends/train/evaluation.h"
#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "frontends/train/part_sums.h"
#include "frontends/train/ranks.h"
#include "frontends/train/step_graph.h"
#include "frontends/train/step_tensors.h"
#include "frontends/train/step_times.h"
#include "runtime/session.h"

namespace tilewright::train {

struct StepEnd {
  double loss = 0;       // before the update
  bool stop = false;     // a rank should end
  bool regroup = false;  // processes wait to be ranks
  StepTimes times;
};
// Of a step, in seconds from its begin: its ranges start, with what names them; its parts are computed; it ends.
struct StepTimeline {
  std::vector<double> starts;
  std::vector<int64_t> bytes;
  double computed = 0, ended = 0;
};
// Selects what time_alone() measures: a step without its all-reduces, or the all-reduces alone.
enum class StepPart { kComputing, kCommunicating };

class Trainer {
 public:
  // Reads model and data and compiles the step. Errors name what is wrong, before anything runs or is
  // written.
  // `ranks` of which this process is one make the steps together; they call all functions below that are not const
  // alike.
  static Result<std::unique_ptr<Trainer>> create(const Job& job, const CompileOptions& compile,
                                                 int threads, Ranks ranks = Ranks());
  // The next step. stop: asked once whether this rank should end; may be null. failed: an error that this rank met
  // before; no rank makes the step then. Errors: those of any rank.
  Result<StepEnd> step(const std::function<bool()>& stop = nullptr, const Status& failed = {});
  // Measures a part of a step in isolation, in seconds. Leaves an undefined state behind.
  Result<double> time_alone(StepPart part);
  // When a step's ranges start, without sums. There are ranks, if only one.
  Result<StepTimeline> timeline();
  // Of the last step. Error: an element of a gradient or of the state is an infinity or NaN; it names the step
  // and the tensor.
  Status check_finite() const;
  // Of the parameters as they are now. For jobs with held-back samples.
  Result<HeldBack> evaluate() { return evaluator_->run(ranks_); }
  int64_t steps_done() const { return step_; }
  // Of the last step, before they were clipped; and what the model's initialisers are now: those that steps change,
  // and those that the file would have change with them.
  NamedTensors gradients() const;
  NamedTensors initializers() const;
  // Of the model that is written: the job's.
  const WrittenOutputs& outputs() const { return outputs_; }
  int64_t parameter_count() const;
  int64_t samples_of_rank() const;  // in a step, on this rank
  // What a step reads and writes, in place: all that it takes to go on elsewhere, with the number of
  // steps that are done. hash: of the model that was read (job_essentials.h).
  std::vector<StatePart> state() const;
  void go_on_at(int64_t step) { step_ = step; }
  // Of jobs whose ranks verify one another, after the steps where they do. Error: the tensor that differs.
  Status verify() const;
  // Gives the state of the rank that has done the most steps to all, and its last step's loss.
  Status share_state();
  // Of the last step that the state follows from, before its update; none: no rank has made it since the run began.
  std::optional<double> last_loss() const { return last_loss_; }
  const Ranks& ranks() const { return ranks_; }
  const std::string& note() const { return trained_.note; }
  // What is trained, and the price of exact sums.
  std::string summary() const;
  const std::string& model_hash() const { return model_hash_; }
  // Returns a hash of the settings and layouts that all ranks share; empty without ranks.
  const std::string& common_hash() const { return common_hash_; }
  const std::string& version() const { return session().executable().producer; }
  double compile_seconds() const { return compile_seconds_; }
  int threads() const { return session().threads(); }
  // What runs the model: of a whole step, or of its parts.
  Session& session() const { return *programs_[0].session; }
  // Kernels and calls of this rank are recorded from now on.
  void set_profiling(bool enabled);
  // What was recorded, as events of a trace (runtime/trace_events.h). origin: as Profiler::trace_events; clock_offset:
  // to add to times of this rank.
  std::string trace_events(int64_t origin, int64_t clock_offset) const;

 private:
  // An executable of a step (step_graph.h). Tensors are in the graph's order, outputs those that are not
  // updated in place.
  struct Program {
    std::unique_ptr<Session> session;
    std::vector<Tensor> inputs, outputs;
  };
  Trainer(const Job& job, Ranks ranks) : job_(job), ranks_(ranks) {}
  Status prepare(const CompileOptions& compile, int threads);
  Status add_program(ir::Graph graph, size_t columns, const CompileOptions& compile, int threads);
  void keep_unchanged_copies(const OnnxModel& model);
  Status add_evaluator(const OnnxModel& model, const Wanted& wanted, const CompileOptions& compile,
                       int threads);
  Tensor tensor(const std::string& name) const { return tensors_.at(name); }
  Status add_parts(ir::Graph graph, const CompileOptions& compile, int threads);
  Status compare_ranks(const CompileOptions& compile);
  distributed::PartRange own_parts() const;
  // comm null: sums of this rank alone.
  Status begin_sums(distributed::Comm* comm);
  // recorder: told of the last part's ranges where nobody else is; may be null.
  Status run_parts(Collectives* recorder = nullptr);
  Status run_update();
  Status run_part(int64_t part, int64_t next);
  Status sum_up(const std::function<bool()>& stop, const Status& mine);

  const Job job_;  // as ranks run it
  const Ranks ranks_;
  Trained trained_;
  std::vector<State> states_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Batches> batches_;  // of data_
  StepTensors tensors_;
  std::vector<Program> programs_;  // one for the step, or one for its parts and the update
  std::optional<PartSums> sums_;   // of steps that are cut
  // Of the step: losses of its parts, then whether a rank should stop, failed, or met what is not finite.
  std::vector<double> record_;
  std::unique_ptr<Evaluator> evaluator_;  // null: nothing is held back
  std::string model_hash_, common_hash_;
  WrittenOutputs outputs_;
  std::map<std::string, std::string> transposed_copies_;  // as OnnxGraph has them
  // Initialisers that stay as they are, of the elements of some that steps change: the file may have them as copies of
  // these (lift_constants.h).
  NamedTensors unchanged_copies_;
  int64_t step_ = 0;
  std::optional<double> last_loss_;
  double compile_seconds_ = 0;
  bool suspect_ = false;  // the last step's programs met what is not finite, or seem to have
};

}  // namespace tilewright::train
