// A model's usual form raced against itself, as tuning confirms what it found: how many kernels would be
// taken for faster, and how far apart two runs of one form seem to be. Another load makes it harder.
// usage: race_default MODEL.onnx INPUTS.npz THREADS RACES [--load]
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "autotune/measure/placements.h"
#include "autotune/model_compiler.h"
#include "frontends/cli/cli.h"

namespace tilewright {
namespace {

struct Arguments {
  cli::ModelOptions model;
  std::string inputs;
  size_t races = 20;
  bool load = false;
};

// Keeps one CPU busy, and its part of the caches.
class Load {
 public:
  explicit Load(bool wanted) {
    if (wanted) thread_ = std::thread([this] { work(); });
  }
  ~Load() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    std::vector<float> memory(size_t{1} << 22, 1.0f);
    for (size_t i = 0; !over_; i = (i + 16) % memory.size()) memory[i] = memory[i] * 1.0001f + 1;
  }
  std::atomic<bool> over_{false};
  std::thread thread_;
};

Status race(const Arguments& a) {
  TW_ASSIGN(const cli::BoundModel bound, cli::open_bound(a.model, a.inputs));
  const CompileOptions options = cli::compile_options(a.model);
  TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
  TW_ASSIGN(ir::Graph graph, build_graph(*bound.model, bound.binding));
  const std::string name = graph.name;
  TW_ASSIGN(const ir::Graph fused, passes::lower_graph(std::move(graph), lower));
  const autotune::ModelCompiler compiler(lower, assemble_options(options, lower.machine, name),
                                         options.schedule_threads);
  const auto usual = [&] { return compiler.compile(autotune::plan_of(fused), {}); };
  TW_ASSIGN(const ir::Program program, compiler.program(autotune::plan_of(fused), {}));
  std::mt19937 random(1);
  const Load load(a.load);
  size_t raced = 0, accepted = 0, once = 0, runs_accepted = 0;
  double squares = 0, sum = 0;
  const auto measure = [&] {
    const autotune::PairedOptions pairs{.seconds = 0.25, .least = 4, .most = 40};
    return autotune::run_at_placements(usual, usual, {&bound.inputs, 1}, pairs, random);
  };
  const auto is_accepted = [](const autotune::Comparison& c) {
    return c.b_is_faster() && c.ratio < autotune::worth_keeping(c.a);
  };
  for (size_t r = 0; r < a.races; ++r) {
    TW_ASSIGN(const autotune::Placements times, measure());
    runs_accepted += is_accepted(times.runs());
    sum += std::log(times.runs().ratio);
    std::optional<autotune::Placements> again;
    for (const ir::Kernel& k : program.kernels) {
      const autotune::Comparison c = times.kernel(k.name);
      if (c.a < 0.002 * times.runs().a) continue;
      ++raced;
      squares += std::log(c.ratio) * std::log(c.ratio);
      bool taken = is_accepted(c);
      if (taken && autotune::confirmations(c.a) > 1) {
        ++once;
        if (!again) { TW_ASSIGN(again, measure()); }
        taken = is_accepted(again->kernel(k.name));
      }
      accepted += taken;
    }
    std::printf("race %zu: whole runs %.3f (%.3f to %.3f); of %zu kernels %zu accepted\n", r + 1,
                times.runs().ratio, times.runs().low, times.runs().high, raced, accepted);
    std::fflush(stdout);
  }
  std::printf(
      "%zu kernels raced, %zu accepted (%zu short ones the first time), deviation %.4f; whole "
      "runs: %zu of %zu accepted, mean "
      "%.4f\n",
      raced, accepted, once, std::sqrt(squares / static_cast<double>(std::max<size_t>(raced, 1))),
      runs_accepted, a.races, std::exp(sum / static_cast<double>(a.races)));
  return {};
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  tilewright::Arguments a;
  a.load = argc == 6 && std::string(argv[5]) == "--load";
  if (argc < 5 || (argc > 5 && !a.load))
    return tilewright::cli::report_usage(
        "race_default MODEL.onnx INPUTS.npz THREADS RACES [--load]");
  a.model.model = argv[1];
  a.inputs = argv[2];
  a.model.threads = std::atoi(argv[3]);
  a.races = static_cast<size_t>(std::max(1, std::atoi(argv[4])));
  const tilewright::Status status = tilewright::race(a);
  return status.ok() ? 0 : tilewright::cli::report(status.error());
}
