// tilewright train: a job's steps, or their time. What is wrong with a job is said before anything is
// compiled or written; while steps run, a line on standard error shows the loss and the time left.
#include "frontends/train/train_job.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "frontends/cli/cli.h"
#include "frontends/cli/interrupt.h"
#include "frontends/cli/progress.h"

namespace tilewright::cli {

namespace {

double seconds_since(int64_t start) {
  return static_cast<double>(now_nanoseconds() - start) * 1e-9;
}

// The first steps warm caches and plans, and are not timed.
Status bench(train::Trainer& trainer, const TrainArguments& a) {
  constexpr size_t kWarm = 3, kLeast = 5, kMost = 200000;
  std::vector<double> times;
  const auto step = [&]() -> Status {
    TW_ASSIGN(const double loss, trainer.step());
    (void)loss;
    return {};
  };
  for (size_t k = 0; k < kWarm; ++k) TW_RETURN_IF_ERROR(step());
  const int64_t start = now_nanoseconds();
  while ((seconds_since(start) < a.seconds || times.size() < kLeast) && times.size() < kMost) {
    const int64_t since = now_nanoseconds();
    TW_RETURN_IF_ERROR(step());
    times.push_back(seconds_since(since) * 1e3);
  }
  if (!a.trace.empty()) {
    trainer.session().set_profiling(true);
    const int64_t since = now_nanoseconds();
    do TW_RETURN_IF_ERROR(step());
    while (seconds_since(since) < a.seconds);
    const Profiler profile = trainer.session().profile();
    std::cout << profile_table(profile.rows(), now_nanoseconds() - since, trainer.threads());
    TW_RETURN_IF_ERROR(profile.write_trace(a.trace));
  }
  std::sort(times.begin(), times.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const nlohmann::ordered_json line{
      {"engine", "tilewright"},       {"version", TILEWRIGHT_VERSION},
      {"threads", trainer.threads()}, {"compile_s", trainer.compile_seconds()},
      {"min_ms", times.front()},      {"median_ms", times[times.size() / 2]},
      {"steps", times.size()},        {"peak_rss_mib", usage.ru_maxrss / 1024}};
  if (a.json)
    std::cout << line.dump() << "\n";
  else
    std::printf(
        "median %.3f ms a step, least %.3f ms of %zu, %d threads; compiled in %.2f s; peak memory "
        "%ld MiB\n",
        times[times.size() / 2], times.front(), times.size(), trainer.threads(),
        trainer.compile_seconds(), usage.ru_maxrss / 1024);
  return {};
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
  const Interrupt interrupt({SIGINT, SIGTERM});
  const int64_t start = now_nanoseconds();
  std::optional<int64_t> first;
  train::TrainOptions how;
  how.start = a.fresh    ? train::Start::kFresh
              : a.resume ? train::Start::kResume
                         : train::Start::kGoOn;
  how.stop = Interrupt::is_set;
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
  return {};
}

Status run(const ModelOptions& options, const TrainArguments& a) {
  TW_ASSIGN(train::Job job, train::read_job(a.job));
  // The order of a file may have no more steps than the job: a measurement shuffles. It evaluates nothing.
  if (a.bench) job.data.order.clear(), job.evaluation = {};
  CompileOptions compile = compile_options(options);
  std::unique_ptr<train::Trainer> trainer;
  {
    Progress progress;
    compile.progress = progress.callback();
    TW_ASSIGN(trainer, train::Trainer::create(job, compile, options.threads));
  }
  if (!trainer->note().empty()) std::cerr << "note: " << trainer->note() << "\n";
  if (a.bench) return bench(*trainer, a);
  std::printf("%s\n", trainer->summary().c_str());
  return run_steps(*trainer, job, a);
}

}  // namespace

int train_command(const ModelOptions& options, const TrainArguments& arguments) {
  const Status status = run(options, arguments);
  return status.ok() ? static_cast<int>(kOk) : report(status.error());
}

}  // namespace tilewright::cli
