#include "frontends/train/train_job.h"

#include <cmath>

#include "frontends/onnx/write_trained.h"
#include "frontends/tensor_files/npz.h"
#include "frontends/train/checkpoint_folder.h"
#include "frontends/train/curves.h"
#include "frontends/train/job_essentials.h"
#include "frontends/train/schedule.h"
#include "runtime/core/write_file.h"
#include "runtime/distributed/link.h"

namespace tilewright::train {

namespace {

class Run {
 public:
  Run(Trainer& trainer, const Job& job, const TrainOptions& options)
      : trainer_(trainer), job_(job), options_(options) {}

  // As long as ranks are lost and others go on, from where the furthest of these is.
  Result<TrainEnd> run() {
    for (;;) {
      const Status done = run_together();
      if (done.ok()) return end_;
      if (!trainer_.ranks().can_regroup()) return done.error();
      if (options_.note) options_.note(done.error().to_string());
    }
  }

 private:
  // Connects the ranks, and goes on until the end or until there are others.
  Status run_together() {
    for (bool ends = false; !ends;) {
      TW_RETURN_IF_ERROR(connect());
      const Status done = steps();
      ends = end_.stopped || trainer_.steps_done() >= job_.steps;
      if (done.ok() && ends && trainer_.ranks().any()) {
        TW_ASSIGN(end_.ranks, times_.gather(trainer_.ranks()));
      }
      // Curves say why a run went wrong, too.
      if (log_ && !job_.report.empty())
        TW_RETURN_IF_ERROR(
            write_file(job_.report.string(), curves_page(job_, log_->lines(), end_.ranks)));
      TW_RETURN_IF_ERROR(done);
    }
    end_.steps = trainer_.steps_done();
    return trainer_.ranks().agree(write_last(), "the end of the run");
  }
  Status steps() {
    regroup_ = false;
    while (trainer_.steps_done() < job_.steps && !end_.stopped && !regroup_)
      TW_RETURN_IF_ERROR(step());
    return {};
  }

  // With ranks, all of them have the state of the one that has done the most steps, which is rank 0: it reads and
  // writes files for all. The last step's end is done again, of which some ranks may not have come to see.
  Status connect() {
    const Ranks& ranks = trainer_.ranks();
    if (ranks.any())
      TW_RETURN_IF_ERROR(
          ranks.group()->connect(began_ ? trainer_.steps_done() : -1, options_.stop));
    log_.reset(), folder_.reset();
    kept_ = {};
    end_.stopped = false;
    if (options_.connected) TW_RETURN_IF_ERROR(options_.connected());
    const Status begun = !ranks.is_first()      ? Status()
                         : trainer_.last_loss() ? take_over()
                                                : begin();
    TW_RETURN_IF_ERROR(ranks.agree(begun, "the start of the run"));
    TW_RETURN_IF_ERROR(trainer_.share_state());
    if (ranks.comm()) {
      TW_ASSIGN(const int64_t offset, distributed::clock_offset(*ranks.comm()));
      times_.set_clock_offset(offset);
    }
    if (!began_) end_.first = trainer_.steps_done();
    began_ = true;
    return trainer_.last_loss() ? end_step(last_line()) : Status();
  }
  Status take_over() {
    saved_ = 0;
    if (!job_.checkpoint.folder.empty()) {
      TW_ASSIGN(essentials_, essentials_of(job_, trainer_.model_hash()));
      TW_ASSIGN(folder_, CheckpointFolder::open(job_.checkpoint.folder, true));
    }
    return open_log(trainer_.steps_done() - 1);
  }

  // State and log as they were where the run goes on.
  Status begin() {
    for (const auto* output : {&job_.report, &job_.gradients, &job_.trained})
      if (!output->empty()) TW_RETURN_IF_ERROR(check_writable(output->string()));
    if (job_.checkpoint.folder.empty()) {
      if (options_.start != Start::kGoOn)
        return invalid("has no table [checkpoint]", job_.file.string());
    } else {
      TW_ASSIGN(essentials_, essentials_of(job_, trainer_.model_hash()));
      TW_ASSIGN(folder_, CheckpointFolder::open(job_.checkpoint.folder, is_elastic()));
      if (options_.start == Start::kFresh)
        TW_RETURN_IF_ERROR(folder_->remove_all());
      else
        TW_RETURN_IF_ERROR(go_on());
    }
    return open_log(trainer_.steps_done());
  }
  Status open_log(int64_t step) {
    TW_ASSIGN(log_, StepLog::open(job_.log, step, !job_.report.empty(), is_elastic()));
    if (!job_.log.empty() && log_->steps_kept() < step)
      options_.note(job_.log.string() + ": has " + std::to_string(log_->steps_kept()) + " of the " +
                    std::to_string(step) + " steps that were done");
    return {};
  }
  Status go_on() {
    TW_ASSIGN(const std::optional<Checkpoint> found, folder_->newest(options_.note));
    const std::string where =
        found ? folder_->file(found->step).string() : job_.checkpoint.folder.string();
    if (!found)
      return options_.start == Start::kResume ? invalid("there is no checkpoint", where) : Status();
    if (const std::string what = difference(found->job, essentials_); !what.empty())
      return invalid("is of another job: " + what + "; --fresh begins anew", where);
    if (found->step > job_.steps)
      return invalid("is of " + std::to_string(found->step) + " steps, the job has " +
                         std::to_string(job_.steps) + "; --fresh begins anew",
                     where);
    if (Status s = restore(*found, trainer_.state()); !s.ok())
      return invalid(s.error().message, where);
    trainer_.go_on_at(saved_ = found->step);
    return {};
  }

  Status step() {
    TW_ASSIGN(const StepEnd end, trainer_.step(options_.stop, kept_));
    last_times_ = end.times;
    times_.add(trainer_.steps_done() - 1, end.times);
    regroup_ = end.regroup;
    const LogLine line = last_line();
    if (const Status finite = check_finite(line); !finite.ok()) {
      if (log_) TW_RETURN_IF_ERROR(log_->write(line));
      return finite;
    }
    TW_RETURN_IF_ERROR(end_step(line));
    const bool stop = trainer_.ranks().any() ? end.stop : options_.stop && options_.stop();
    end_.stopped = stop && trainer_.steps_done() < job_.steps;
    return {};
  }
  LogLine last_line() const {
    LogLine line{.step = trainer_.steps_done() - 1, .loss = *trainer_.last_loss()};
    line.lr = learning_rate(job_, line.step);
    line.samples_per_second = static_cast<double>(job_.batch) / last_times_.step_seconds();
    if (!trainer_.ranks().any()) return line;
    line.communicating = last_times_.communicating_seconds();
    line.waiting = last_times_.waiting_seconds();
    return line;
  }
  // What follows a step's update. Other ranks hear of an error of rank 0's files with the next step, or at the end.
  Status end_step(LogLine line) {
    end_.loss = line.loss;
    TW_RETURN_IF_ERROR(trainer_.verify());
    TW_RETURN_IF_ERROR(evaluate(line));
    if (trainer_.ranks().is_first()) kept_ = keep(line);
    return trainer_.ranks().any() ? Status() : kept_;
  }
  bool is_elastic() const {
    return trainer_.ranks().any() && trainer_.ranks().group()->is_elastic();
  }
  // What the step leaves in files.
  Status keep(const LogLine& line) {
    if (line.step == 0 && !job_.gradients.empty())
      TW_RETURN_IF_ERROR(write_npz(job_.gradients, trainer_.gradients()));
    TW_RETURN_IF_ERROR(log_->write(line));
    if (folder_) TW_RETURN_IF_ERROR(folder_->status());
    if (folder_ && trainer_.steps_done() % job_.checkpoint.every == 0) TW_RETURN_IF_ERROR(save());
    if (options_.progress) options_.progress(line);
    return {};
  }

  // Returns an error if the loss or the state is not finite: such a state must not be saved.
  Status check_finite(const LogLine& line) const {
    if (std::isfinite(line.loss)) return trainer_.check_finite();
    return invalid("the loss of step " + std::to_string(line.step) + " is " +
                       (std::isnan(line.loss) ? "nan" : std::to_string(line.loss)),
                   job_.file.string());
  }
  Status evaluate(LogLine& line) {
    const EvaluationJob& e = job_.evaluation;
    const int64_t done = line.step + 1;
    if (e.data.file.empty() || (done % e.every != 0 && done != job_.steps)) return {};
    TW_ASSIGN(const HeldBack found, trainer_.evaluate());
    line.held_back_loss = found.loss;
    line.held_back_accuracy = found.accuracy;
    return {};
  }

  // The log is on the disk before the checkpoint that follows from it.
  Status save() {
    saved_ = trainer_.steps_done();
    TW_ASSIGN(Checkpoint c, take_checkpoint(saved_, essentials_, trainer_.state()));
    return folder_->save(std::move(c), [this] { return log_->flush_to_disk(); });
  }
  Status keep_last() {
    if (!folder_) return {};
    if (saved_ != trainer_.steps_done()) TW_RETURN_IF_ERROR(save());
    end_.checkpoint = folder_->file(saved_);
    return folder_->wait();
  }
  Status write_last() {
    TW_RETURN_IF_ERROR(kept_);
    if (!trainer_.ranks().is_first()) return {};
    TW_RETURN_IF_ERROR(keep_last());
    if (end_.stopped || job_.trained.empty()) return {};
    return write_trained(job_.model, trainer_.initializers(), trainer_.outputs(), job_.trained);
  }

  Trainer& trainer_;
  const Job& job_;
  const TrainOptions& options_;
  TrainEnd end_;
  std::string essentials_;
  std::unique_ptr<StepLog> log_;
  std::unique_ptr<CheckpointFolder> folder_;  // goes first: its thread writes the log out
  int64_t saved_ = 0;                         // the step of the last checkpoint
  Status kept_;                               // an error that the other ranks do not know of
  bool began_ = false;                        // this process has the state of the run
  bool regroup_ = false;                      // ranks are to be connected anew
  StepTimes last_times_;                      // of the last step
  StepTimesLog times_;
};

}  // namespace

Result<TrainEnd> train(Trainer& trainer, const Job& job, const TrainOptions& options) {
  return Run(trainer, job, options).run();
}

}  // namespace tilewright::train
