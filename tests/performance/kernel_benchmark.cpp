#include "tests/performance/kernel_benchmark.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "codegen/measure/measure_machine.h"
#include "frontends/compiler/compiler.h"
#include "runtime/session.h"

namespace tilewright::performance {

namespace {

Setting setting;

struct Kernel {
  KernelGraph graph;
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs, outputs;
};

// Compiled and run twice: memory is planned, outputs are there to be written again.
Result<std::shared_ptr<Kernel>> prepare(const std::function<void(KernelGraph&)>& build) {
  auto kernel = std::make_shared<Kernel>();
  build(kernel->graph);
  CompileOptions options;
  options.schedule_threads = setting.threads;
  TW_ASSIGN(std::shared_ptr<Executable> executable,
            compile_in_memory(kernel->graph.graph(), options));
  SessionOptions session_options;
  session_options.threads = setting.threads;
  TW_ASSIGN(kernel->session, Session::create(std::move(executable), session_options));
  for (const HostTensor& t : kernel->graph.inputs()) {  // aligned, as a model's inputs mostly are
    TW_ASSIGN(Tensor input, Tensor::allocate(t.dtype, t.shape));
    std::copy(t.bytes.begin(), t.bytes.end(), input.data_as<uint8_t>());
    kernel->inputs.push_back(std::move(input));
  }
  for (int i = 0; i < 2; ++i)
    TW_RETURN_IF_ERROR(kernel->session->run(kernel->inputs, kernel->outputs));
  return kernel;
}

// Seconds that memory takes to bring and take the graph's bytes: as much as both directions have
// in common at the rate of a copy.
double memory_seconds(const KernelGraph& graph) {
  const ir::MachineSpeed& s = setting.speed;
  const auto rate = [](double one, double all) {
    return 1e9 * measure::at_threads(one, all, setting.threads);
  };
  const double in = graph.bytes_read(), out = graph.bytes_written(), both = std::min(in, out);
  return 2 * both / rate(s.memory_copy, s.memory_copy_all) +
         (in - both) / rate(s.memory_read, s.memory_read_all) +
         (out - both) / rate(s.memory_write, s.memory_write_all);
}

// f32_gflops: what multiply-adds reach between the runs, as clocks change from one moment to the next.
void count(benchmark::State& state, const KernelGraph& graph, double seconds, double f32_gflops) {
  const ir::MachineSpeed& s = setting.speed;
  state.counters["ms"] = seconds * 1e3;
  if (graph.operations > 0) {
    const double peak = graph.int8
                            ? measure::at_threads(s.int8_gops, s.int8_gops_all, setting.threads)
                            : f32_gflops;
    if (!graph.int8) state.counters["peak_GFLOP/s"] = f32_gflops;
    state.counters["GFLOP/s"] = graph.operations / seconds / 1e9;
    state.counters["peak"] = graph.operations / seconds / 1e9 / peak;
  }
  state.counters["GB/s"] = (graph.bytes_read() + graph.bytes_written()) / seconds / 1e9;
  state.counters["bandwidth"] = memory_seconds(graph) / seconds;
}

// Seconds of one run, or of the kernels in it that are timed.
Result<double> time_run(Kernel& kernel) {
  const std::string& timed = kernel.graph.timed;
  if (!timed.empty()) kernel.session->set_profiling(true);  // of this run alone
  const int64_t start = now_nanoseconds();
  TW_RETURN_IF_ERROR(kernel.session->run(kernel.inputs, kernel.outputs));
  int64_t nanoseconds = now_nanoseconds() - start;
  if (!timed.empty()) {
    nanoseconds = 0;
    for (const Profiler::Row& r : kernel.session->profile().rows())
      if (r.nodes.find(timed) != std::string::npos) nanoseconds += r.nanoseconds;
    if (nanoseconds == 0) return invalid("no kernel has a node '" + timed + "'");
  }
  return static_cast<double>(nanoseconds) / 1e9;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void run(benchmark::State& state, Kernel& kernel) {
  constexpr double kEach =
      0.001;  // seconds of runs for each look at the peak: some take microseconds
  std::vector<double> times, peaks;
  measure::PeakNow peak(setting.threads);
  double since = kEach;
  for (auto _ : state) {
    if (since >= kEach) {
      peaks.push_back(peak.gflops());
      since = 0;
    }
    const Result<double> seconds = time_run(kernel);
    if (!seconds.ok()) return state.SkipWithError(seconds.error().to_string().c_str());
    times.push_back(*seconds);
    since += *seconds;
    state.SetIterationTime(*seconds);
  }
  count(state, kernel.graph, median(times), median(peaks));
  state.counters["least_ms"] = *std::min_element(times.begin(), times.end()) * 1e3;
}

}  // namespace

void set_setting(const Setting& s) { setting = s; }

void add_benchmark(const std::string& name, std::function<void(KernelGraph&)> build) {
  // The library calls a benchmark several times, to learn how often to run it; one is kept ready.
  static std::string ready_name;
  static std::shared_ptr<Kernel> ready;
  const auto body = [name, build = std::move(build)](benchmark::State& state) {
    if (ready_name != name) {
      ready.reset();
      auto kernel = prepare(build);
      if (!kernel.ok()) {
        for (auto _ : state) state.SkipWithError(kernel.error().to_string().c_str());
        return;
      }
      ready = std::move(*kernel);
      ready_name = name;
    }
    run(state, *ready);
  };
  benchmark::RegisterBenchmark(name.c_str(), body)->UseManualTime()->Unit(benchmark::kMillisecond);
}

}  // namespace tilewright::performance
