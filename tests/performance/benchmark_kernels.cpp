// Kernels against what this machine can do.
// usage: benchmark_kernels [--threads=N] [Google Benchmark's options, e.g. --benchmark_filter=gemm]
#include <benchmark/benchmark.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "codegen/backend.h"
#include "codegen/measure/machine_cache.h"
#include "runtime/thread_pool.h"
#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

// The number of --threads=N, which is taken out of the arguments; 0 when it is none.
int take_threads(int& argc, char** argv) {
  constexpr std::string_view kOption = "--threads=";
  int threads = 1, kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kOption)) {
      argv[kept++] = argv[i];
      continue;
    }
    const char* end = argument.data() + argument.size();
    const auto [at, error] = std::from_chars(argument.data() + kOption.size(), end, threads);
    if (error != std::errc{} || at != end || threads < 1 || threads > ThreadPool::kMaxWorkers)
      return 0;
  }
  argc = kept;
  return threads;
}

void add_context(const Setting& setting) {
  const Result<const codegen::Backend*> backend = codegen::open_backend();
  const Result<ir::MachineDescription> machine =
      backend.ok() ? (*backend)->describe("native") : backend.error();
  benchmark::AddCustomContext("cpu", machine.ok() ? machine->cpu : "unknown");
  benchmark::AddCustomContext("cpu_model", cpu_info().model);
  benchmark::AddCustomContext("threads", std::to_string(setting.threads));
  for (const measure::Term& t : measure::terms()) {
    benchmark::AddCustomContext(t.name, std::to_string(setting.speed.*t.value));
    if (t.of_all)
      benchmark::AddCustomContext(std::string(t.name) + "_all",
                                  std::to_string(setting.speed.*t.of_all));
  }
}

int run(int argc, char** argv) {
  Setting setting;
  setting.threads = take_threads(argc, argv);
  if (setting.threads == 0) {
    std::fprintf(stderr, "--threads=N takes a number from 1 to %d\n", ThreadPool::kMaxWorkers);
    return 2;
  }
  std::string note;
  setting.speed = measure::cached_speed(false, &note);
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  set_setting(setting);
  add_context(setting);
  add_gemm();
  add_convolution();
  add_pointwise();
  add_reduction();
  add_movement();
  add_attention();
  add_recurrent();
  add_training();
  add_int8();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace

}  // namespace tilewright::performance

int main(int argc, char** argv) { return tilewright::performance::run(argc, argv); }
