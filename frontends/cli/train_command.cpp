// tilewright train: a job's steps, or their time. What is wrong with a job is said before anything is
// compiled or written; while steps run, a line on standard error shows the loss and the time left.
#include "frontends/train/train_job.h"

#include <cstdio>
#include <iostream>
#include <thread>

#include "frontends/cli/cli.h"
#include "frontends/cli/interrupt.h"
#include "frontends/cli/progress.h"
#include "frontends/cli/train_bench.h"
#include "runtime/core/write_file.h"
#include "runtime/distributed/join.h"
#include "runtime/distributed/transport_local.h"

namespace tilewright::cli {

namespace {

double seconds_since(int64_t start) {
  return static_cast<double>(now_nanoseconds() - start) * 1e-9;
}

// "step 12 of 300, loss 0.1234, 456 samples/s, 78 s left": rates of the steps of this run, `first` the
// first of them.
std::string progress_line(const train::Job& job, const train::LogLine& line, int64_t first,
                          double seconds) {
  const auto done = static_cast<double>(line.step + 1 - first),
             left = static_cast<double>(job.steps - line.step - 1);
  char text[160];
  std::snprintf(text, sizeof text, "step %lld of %lld, loss %.4f, %.0f samples/s, %.0f s left",
                static_cast<long long>(line.step + 1), static_cast<long long>(job.steps), line.loss,
                done * static_cast<double>(job.batch) / seconds, seconds / done * left);
  return text;
}

// "step 100: held-back loss 0.1234, accuracy 97.12 %"
std::string held_back_line(const train::LogLine& line) {
  char text[96];
  const int n = std::snprintf(text, sizeof text, "step %lld: held-back loss %.4f",
                              static_cast<long long>(line.step + 1), *line.held_back_loss);
  if (line.held_back_accuracy)
    std::snprintf(text + n, sizeof text - static_cast<size_t>(n), ", accuracy %.2f %%",
                  100 * *line.held_back_accuracy);
  return text;
}

Status run_steps(train::Trainer& trainer, const train::Job& job, const TrainArguments& a) {
  Progress progress;
  std::optional<Interrupt> interrupt;
  if (a.ranks == 0) interrupt.emplace(std::initializer_list<int>{SIGINT, SIGTERM});
  const int64_t start = now_nanoseconds();
  std::optional<int64_t> first;
  train::TrainOptions how;
  how.start = a.fresh    ? train::Start::kFresh
              : a.resume ? train::Start::kResume
                         : train::Start::kGoOn;
  how.stop = Interrupt::is_set;
  how.connected = [&]() -> Status {
    progress.clear();
    if (trainer.ranks().any() && trainer.ranks().is_first() && !first)
      std::printf("%s\n", trainer.summary().c_str());
    return print_ranks(trainer);
  };
  how.note = [&](const std::string& text) {
    progress.clear();
    std::cerr << "note: " << text << "\n";
  };
  how.progress = [&](const train::LogLine& line) {
    if (!first) first = line.step;
    if (line.held_back_loss) {
      progress.clear();
      std::printf("%s\n", held_back_line(line).c_str());
      std::fflush(stdout);
    }
    progress.show(progress_line(job, line, *first, seconds_since(start)));
  };
  TW_ASSIGN(const train::TrainEnd end, train::train(trainer, job, how));
  progress.clear();
  if (!trainer.ranks().is_first()) return {};
  if (end.first > 0) std::printf("went on after step %lld\n", static_cast<long long>(end.first));
  if (end.stopped)
    return invalid("interrupted after " + std::to_string(end.steps) + " of " +
                   std::to_string(job.steps) + " steps; " +
                   (end.checkpoint.empty()
                        ? "nothing is kept, as the job has no table [checkpoint]"
                        : "the same command goes on from " + end.checkpoint.string()));
  if (end.first == end.steps) {
    std::printf("all %lld steps were done before; --fresh begins anew\n",
                static_cast<long long>(end.steps));
    return {};
  }
  std::printf("%lld steps of %lld samples in %.1f s, %lld parameters; loss %.4f\n",
              static_cast<long long>(end.steps - end.first), static_cast<long long>(job.batch),
              seconds_since(start), static_cast<long long>(trainer.parameter_count()), end.loss);
  if (end.ranks.size() > 1) std::cout << train::to_table(end.ranks);
  return {};
}

Status run_joined(const train::Job& job, const ModelOptions& options, const TrainArguments& a,
                  const train::Ranks& ranks) {
  CompileOptions compile = compile_options(options);
  std::unique_ptr<train::Trainer> trainer;
  {
    Progress progress;
    // Ranks that are not connected yet compile side by side.
    if (!ranks.any() || (ranks.comm() && ranks.is_first())) compile.progress = progress.callback();
    TW_ASSIGN(trainer, train::Trainer::create(job, compile, options.threads, ranks));
  }
  if (ranks.is_first() && !trainer->note().empty())
    std::cerr << "note: " << trainer->note() << "\n";
  if (a.bench) return bench_training(*trainer, a);
  if (!a.scaling.empty()) return predict_scaling(*trainer, job, a);
  if (!ranks.any()) std::printf("%s\n", trainer->summary().c_str());
  return run_steps(*trainer, job, a);
}

// Each rank in a thread of its own. All ranks fail alike.
Status run_threads(const train::Job& job, const ModelOptions& options, const TrainArguments& a,
                   const distributed::CommOptions& comm) {
  const Interrupt interrupt({SIGINT, SIGTERM});  // once for all threads
  const auto world = distributed::LocalWorld::create(a.ranks);
  std::vector<Status> ends(static_cast<size_t>(a.ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < a.ranks; ++r)
    threads.emplace_back([&, r] {
      distributed::CommOptions own = comm;
      own.record_file += std::to_string(r);
      const auto group = distributed::make_fixed_group(world->connect(r), std::move(own));
      ends[static_cast<size_t>(r)] =
          catch_failures([&] { return run_joined(job, options, a, train::Ranks(group.get())); });
    });
  for (std::thread& t : threads) t.join();
  for (Status& end : ends) TW_RETURN_IF_ERROR(std::move(end));
  return {};
}

// Whether all files can be written, before the step is compiled: of a single process, as the first rank's come when
// that begins.
Status check_written(const train::Job& job, const TrainArguments& a) {
  const bool trains = !a.bench && a.scaling.empty();
  for (const auto& path :
       {std::filesystem::path(a.trace), std::filesystem::path(a.page), trains ? job.report : "",
        trains ? job.gradients : "", trains ? job.trained : ""})
    if (!path.empty()) TW_RETURN_IF_ERROR(check_writable(path.string()));
  return {};
}

Status run(const ModelOptions& options, const TrainArguments& a) {
  TW_ASSIGN(train::Job job, train::read_job(a.job));
  note_bounded_threads(options.threads);
  // The order of a file may have no more steps than the job: a measurement shuffles. It evaluates nothing.
  if (a.bench || !a.scaling.empty()) job.data.order.clear(), job.evaluation = {};
  job.distributed.bucket_bytes = a.bucket_bytes;
  distributed::JoinOptions join{.engine = job.distributed.engine};
  join.comm.deadline =
      std::chrono::milliseconds(static_cast<int64_t>(job.distributed.deadline * 1e3));
  std::filesystem::path record = job.file;
  join.comm.record_file = record.replace_extension(".calls-of-rank-").string();
  if (a.ranks > 0) {
    TW_RETURN_IF_ERROR(check_written(job, a));
    return run_threads(job, options, a, join.comm);
  }
  join.note = [](const std::string& text) { std::cerr << "note: " << text << "\n"; };
  TW_ASSIGN(const std::unique_ptr<distributed::Group> group, distributed::join_ranks(join));
  if (!group) TW_RETURN_IF_ERROR(check_written(job, a));
  // Ranges are started by the programs of ranks, if only one.
  if (!group && !a.scaling.empty()) {
    TrainArguments alone = a;
    alone.ranks = 1;
    return run_threads(job, options, alone, join.comm);
  }
  return run_joined(job, options, a, train::Ranks(group.get()));
}

}  // namespace

int train_command(const ModelOptions& options, const TrainArguments& arguments) {
  const Status status = run(options, arguments);
  return status.ok() ? static_cast<int>(kOk) : report(status.error());
}

}  // namespace tilewright::cli
