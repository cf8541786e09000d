#include "frontends/cli/train_bench.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/core/write_file.h"
#include "runtime/distributed/link.h"
#include "runtime/trace_events.h"

namespace tilewright::cli {

namespace {

// The first steps warm caches and plans, and are not timed.
constexpr size_t kWarm = 3, kLeast = 5, kMost = 200000;
// Of a rank's events, so that those of all ranks fit a message each.
constexpr size_t kMostTraceBytes = 32 << 20;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Milliseconds of each round.
struct Rounds {
  std::vector<double> step, computing, communicating;
};

class Bench {
 public:
  Bench(train::Trainer& trainer, double seconds) : trainer_(trainer), seconds_(seconds) {}

  // Rank 0 says when all ranks have measured enough.
  Status measure(Rounds& rounds) {
    const int64_t start = now_nanoseconds();
    const auto enough = [&] {
      const size_t done = rounds.step.size() + 1;
      return trainer_.ranks().is_first() &&
             ((now_nanoseconds() - start >= seconds_ * 1e9 && done >= kLeast) || done >= kMost);
    };
    return run(rounds, enough);
  }
  Status warm() {
    Rounds ignored;
    return run(ignored,
               [&] { return trainer_.ranks().is_first() && ignored.step.size() + 1 >= kWarm; });
  }
  const train::StepTimesLog& log() const { return log_; }

 private:
  Status run(Rounds& rounds, const std::function<bool()>& enough) {
    for (bool stop = false; !stop;) {
      TW_RETURN_IF_ERROR(meet());
      TW_ASSIGN(const train::StepEnd end, trainer_.step(enough));
      rounds.step.push_back(end.times.step_seconds() * 1e3);
      log_.add(trainer_.steps_done() - 1, end.times);
      stop = end.stop;
      if (!trainer_.ranks().comm()) continue;
      TW_RETURN_IF_ERROR(meet());
      TW_ASSIGN(const double computing, trainer_.time_alone(train::StepPart::kComputing));
      TW_RETURN_IF_ERROR(meet());
      TW_ASSIGN(const double communicating, trainer_.time_alone(train::StepPart::kCommunicating));
      rounds.computing.push_back(computing * 1e3);
      rounds.communicating.push_back(communicating * 1e3);
    }
    return {};
  }
  // Ranks begin together.
  Status meet() {
    return trainer_.ranks().comm() ? trainer_.ranks().comm()->barrier("the measurement") : Status();
  }

  train::Trainer& trainer_;
  const double seconds_;
  train::StepTimesLog log_;
};

// One trace of all ranks, on rank 0's clock.
Status write_trace(const train::Trainer& trainer, int64_t since, int64_t clock_offset,
                   const std::string& path) {
  const train::Ranks& ranks = trainer.ranks();
  int64_t origin = since + clock_offset;  // the earliest of all ranks
  if (ranks.comm())
    TW_RETURN_IF_ERROR(ranks.comm()->all_reduce(distributed::ReduceOp::kMin,
                                                {DType::kInt64, &origin, 1}, "the trace"));
  std::string events = trainer.trace_events(origin, clock_offset);
  if (events.size() > kMostTraceBytes) events.resize(events.rfind(",\n", kMostTraceBytes));
  if (ranks.comm()) {
    TW_ASSIGN(const auto all, ranks.comm()->gather_texts(events, "the trace"));
    events.clear();
    for (const std::string& text : all) events += (events.empty() ? "" : ",\n") + text;
  }
  return ranks.is_first() ? write_file(path, whole_trace(events)) : Status();
}

nlohmann::ordered_json result(const train::Trainer& trainer, const Rounds& rounds) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double step = median(rounds.step);
  nlohmann::ordered_json line{{"engine", "tilewright"},
                              {"version", TILEWRIGHT_VERSION},
                              {"ranks", trainer.ranks().size()},
                              {"threads", trainer.threads()},
                              {"compile_s", trainer.compile_seconds()},
                              {"min_ms", *std::ranges::min_element(rounds.step)},
                              {"median_ms", step},
                              {"steps", rounds.step.size()},
                              {"peak_rss_mib", usage.ru_maxrss / 1024}};
  if (rounds.communicating.empty()) return line;
  const double computing = median(rounds.computing), communicating = median(rounds.communicating);
  line["computing_ms"] = computing;
  line["communicating_ms"] = communicating;
  line["hidden"] = communicating > 0 ? 1 - (step - computing) / communicating : 1.0;
  return line;
}

void print(const nlohmann::ordered_json& line) {
  std::printf(
      "median %.3f ms a step, least %.3f ms of %zu, %d threads; compiled in %.2f s; peak memory "
      "%ld MiB\n",
      line["median_ms"].get<double>(), line["min_ms"].get<double>(), line["steps"].get<size_t>(),
      line["threads"].get<int>(), line["compile_s"].get<double>(),
      line["peak_rss_mib"].get<long>());
  if (line.contains("hidden"))
    std::printf("alone: computing %.3f ms, communicating %.3f ms, of which %.0f %% are hidden\n",
                line["computing_ms"].get<double>(), line["communicating_ms"].get<double>(),
                100 * std::clamp(line["hidden"].get<double>(), 0.0, 1.0));
}

}  // namespace

Status print_ranks(const train::Trainer& trainer) {
  const train::Ranks& ranks = trainer.ranks();
  if (!ranks.any()) return {};
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string mine = std::string(host) + ", process " + std::to_string(getpid()) + ", " +
                           std::to_string(available_cpus()) + " CPUs, " + ranks.comm()->describe() +
                           ", " + trainer.version() + ", job " + trainer.common_hash();
  TW_ASSIGN(const auto all, ranks.comm()->gather_texts(mine, "the table of ranks"));
  for (size_t r = 0; ranks.is_first() && r < all.size(); ++r)
    std::fprintf(stderr, "rank %zu: %s\n", r, all[r].c_str());
  return {};
}

Status bench_training(train::Trainer& trainer, const TrainArguments& a) {
  const train::Ranks& ranks = trainer.ranks();
  if (ranks.any()) TW_RETURN_IF_ERROR(ranks.group()->connect(-1, nullptr));
  TW_RETURN_IF_ERROR(print_ranks(trainer));
  int64_t clock_offset = 0;
  if (ranks.comm()) { TW_ASSIGN(clock_offset, distributed::clock_offset(*ranks.comm())); }
  TW_RETURN_IF_ERROR(Bench(trainer, 0).warm());
  Bench bench(trainer, a.seconds);
  Rounds rounds;
  TW_RETURN_IF_ERROR(bench.measure(rounds));
  TW_ASSIGN(const auto rank_times, bench.log().gather(ranks));
  if (ranks.is_first() && ranks.size() > 1 && !a.json) std::cout << train::to_table(rank_times);
  if (!a.trace.empty()) {
    trainer.set_profiling(true);
    const int64_t since = now_nanoseconds();
    Rounds traced;
    TW_RETURN_IF_ERROR(Bench(trainer, a.seconds).measure(traced));
    const int64_t end = now_nanoseconds();
    TW_RETURN_IF_ERROR(write_trace(trainer, since, clock_offset, a.trace));
    if (ranks.is_first())
      std::cout << profile_table(trainer.session().profile().rows(), end - since,
                                 trainer.threads());
  }
  if (!ranks.is_first()) return {};
  const auto line = result(trainer, rounds);
  if (a.json)
    std::cout << line.dump() << "\n";
  else
    print(line);
  return {};
}

}  // namespace tilewright::cli
