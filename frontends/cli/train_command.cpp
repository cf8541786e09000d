// tilewright train: a job's steps, or their time. What is wrong with a job is said before anything is
// compiled or written; while steps run, a line on standard error shows the loss and the time left.
#include "frontends/train/trainer.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "frontends/cli/cli.h"
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

Status run(const ModelOptions& options, const TrainArguments& a) {
  TW_ASSIGN(train::Job job, train::read_job(a.job));
  // The order of a file may have no more steps than the job: a measurement shuffles.
  if (a.bench) job.data.order.clear();
  CompileOptions compile = compile_options(options);
  std::unique_ptr<train::Trainer> trainer;
  {
    Progress progress;
    compile.progress = progress.callback();
    TW_ASSIGN(trainer, train::Trainer::create(job, compile, options.threads));
  }
  if (a.bench) return bench(*trainer, a);
  Progress progress;
  const int64_t start = now_nanoseconds();
  double last = 0;
  TW_RETURN_IF_ERROR(train::train(*trainer, job, [&](int64_t step, double loss) {
    const double done = static_cast<double>(step + 1), total = static_cast<double>(job.steps),
                 seconds = seconds_since(start);
    char line[160];
    std::snprintf(line, sizeof line, "step %lld of %lld, loss %.4f, %.0f samples/s, %.0f s left",
                  static_cast<long long>(step + 1), static_cast<long long>(job.steps), loss,
                  done * static_cast<double>(job.batch) / seconds, seconds / done * (total - done));
    progress.show(line);
    last = loss;
  }));
  progress.clear();
  std::printf("%lld steps of %lld samples in %.1f s, %lld parameters; loss %.4f\n",
              static_cast<long long>(job.steps), static_cast<long long>(job.batch),
              seconds_since(start), static_cast<long long>(trainer->parameter_count()), last);
  return {};
}

}  // namespace

int train_command(const ModelOptions& options, const TrainArguments& arguments) {
  const Status status = run(options, arguments);
  return status.ok() ? static_cast<int>(kOk) : report(status.error());
}

}  // namespace tilewright::cli
