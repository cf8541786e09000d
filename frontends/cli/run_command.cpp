// tilewright run and bench.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "frontends/cli/cli.h"
#include "runtime/core/write_file.h"

namespace tilewright::cli {

namespace {
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

int run_command(const ModelOptions& options, const std::string& inputs, const std::string& outputs,
                const std::string& trace) {
  if (!trace.empty())
    if (Status s = check_writable(trace); !s.ok()) return report(s.error());
  if (!outputs.empty())
    if (Status s = check_outputs(outputs); !s.ok()) return report(s.error());
  auto opened = open_to_run(options, inputs, false);
  if (!opened.ok()) return report(opened.error());
  std::vector<Tensor> results;
  if (Status s = opened->session->run(opened->inputs, results); !s.ok()) return report(s.error());
  if (!trace.empty()) {
    opened->session->set_profiling(true);  // the first run warmed up; this one is shown
    const int64_t start = now_nanoseconds();
    if (Status s = opened->session->run(opened->inputs, results); !s.ok()) return report(s.error());
    const int64_t run_time = now_nanoseconds() - start;
    const Profiler profile = opened->session->profile();
    if (Status s = profile.write_trace(trace); !s.ok()) return report(s.error());
    std::cout << profile_table(profile.rows(), run_time, opened->session->threads());
  }
  if (!outputs.empty()) {
    if (Status s = write_outputs(outputs, opened->output_names, results); !s.ok())
      return report(s.error());
  } else {
    for (size_t i = 0; i < results.size(); ++i)
      std::cout << opened->output_names[i] << ": " << name(results[i].dtype())
                << to_string(results[i].shape()) << "\n";
  }
  return kOk;
}

namespace {

// Runs for a while and adds up what each node takes, with its caches as they are run after run.
Status profile_runs(OpenedModel& opened, double seconds, const std::string& trace) {
  std::vector<Tensor> results;
  opened.session->set_profiling(true);
  const int64_t start = now_nanoseconds();
  const double end = seconds_now() + seconds;
  do {
    TW_RETURN_IF_ERROR(opened.session->run(opened.inputs, results));
  } while (seconds_now() < end);
  const int64_t time = now_nanoseconds() - start;
  const Profiler profile = opened.session->profile();
  std::cout << profile_table(profile.rows(), time, opened.session->threads());
  return profile.write_trace(trace);
}

}  // namespace

int bench_command(const ModelOptions& options, const std::string& inputs, double seconds, bool json,
                  const std::string& trace) {
  if (!trace.empty())
    if (Status s = check_writable(trace); !s.ok()) return report(s.error());
  const double start = seconds_now();
  auto opened = open_to_run(options, inputs, false);
  if (!opened.ok()) return report(opened.error());
  std::vector<Tensor> results;
  if (Status s = opened->session->run(opened->inputs, results); !s.ok()) return report(s.error());
  const double load = seconds_now() - start;
  std::vector<double> times;
  constexpr size_t kMostRuns = 200000, kLeastRuns = 5;
  for (const double end = seconds_now() + seconds;
       (seconds_now() < end || times.size() < kLeastRuns) && times.size() < kMostRuns;) {
    const double t = seconds_now();
    if (Status s = opened->session->run(opened->inputs, results); !s.ok()) return report(s.error());
    times.push_back((seconds_now() - t) * 1e3);
  }
  if (!trace.empty())
    if (Status s = profile_runs(*opened, seconds, trace); !s.ok()) return report(s.error());
  std::sort(times.begin(), times.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json line{{"engine", "tilewright"},
                              {"version", TILEWRIGHT_VERSION},
                              {"threads", opened->session->threads()},
                              {"load_s", load},
                              {"min_ms", times.front()},
                              {"median_ms", times[times.size() / 2]},
                              {"runs", times.size()},
                              {"peak_rss_mib", usage.ru_maxrss / 1024}};
  if (json)
    std::cout << line.dump() << "\n";
  else
    std::printf(
        "median %.3f ms, least %.3f ms of %zu runs, %d threads; load %.2f s; peak memory %ld MiB\n",
        times[times.size() / 2], times.front(), times.size(), opened->session->threads(), load,
        usage.ru_maxrss / 1024);
  return kOk;
}

}  // namespace tilewright::cli
