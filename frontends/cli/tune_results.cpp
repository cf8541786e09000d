#include "frontends/cli/tune_results.h"

#include <cstdio>
#include <filesystem>

#include "codegen/measure/machine_cache.h"
#include "runtime/device_cpu.h"

namespace tilewright::cli {

namespace {

std::string answers_of(const passes::Answers& answers) {
  std::string text;
  for (const auto& [name, value] : answers)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  return text;
}

void print_table(const autotune::TuneResult& r) {
  std::printf("%10s %10s %7s %17s %7s %7s  %s\n", "usual us", "tuned us", "ratio", "95 % between",
              "trials", "gap", "kernel: what is answered otherwise");
  for (const autotune::TunedKernel& k : r.kernels) {
    if (k.improved)
      std::printf("%10.1f %10.1f %7.3f %8.3f %8.3f %7zu %5.1f %%  %s: %s\n", k.gain.a, k.gain.b,
                  k.gain.ratio, k.gain.low, k.gain.high, k.trials.size(), 100 * k.gap,
                  k.name.c_str(), answers_of(k.best.answers).c_str());
    else
      std::printf("%10.1f %10s %7s %17s %7zu %5.1f %%  %s\n", k.us, "-", "-", "-", k.trials.size(),
                  100 * k.gap, k.name.c_str());
  }
}

void print_graph(const autotune::TunedGraph& g) {
  for (const autotune::GraphTrial& t : g.trials) {
    if (!t.confirmed || !g.improved()) continue;
    std::printf("%10.1f %10.1f %7.3f %8.3f %8.3f %7s  graph: %s, %zu times: %s\n", t.measured.a,
                t.measured.b, t.measured.ratio, t.measured.low, t.measured.high, "",
                t.alike.c_str(), t.answers.size(), t.answer.c_str());
  }
  if (!g.improved() && !g.trials.empty())
    std::printf("graph: %zu other answers tried, none faster\n", g.trials.size());
}

}  // namespace

void print_tuned(const autotune::TuneResult& r) {
  print_table(r);
  print_graph(r.graph);
}

nlohmann::ordered_json tuned_json(const autotune::TuneResult& r) {
  size_t improved = 0;
  for (const autotune::TunedKernel& k : r.kernels) improved += k.improved;
  auto graph = nlohmann::ordered_json::array();
  for (const autotune::GraphTrial& t : r.graph.trials)
    graph.push_back({{"asked", t.alike},
                     {"answer", t.answer},
                     {"decisions", t.answers.size()},
                     {"ratio", t.measured.ratio},
                     {"low", t.measured.low},
                     {"high", t.measured.high},
                     {"confirmed", t.confirmed}});
  return {{"usual_ms", r.runs.a * 1e-3},
          {"tuned_ms", r.runs.b * 1e-3},
          {"ratio", r.runs.ratio},
          {"low", r.runs.low},
          {"high", r.runs.high},
          {"kernels", r.kernels.size()},
          {"improved", improved},
          {"graph_answers", r.graph.form.answers.size()},
          {"graph", graph},
          {"trials", r.progress.trials},
          {"rounds", r.progress.rounds},
          {"seconds", r.progress.seconds},
          {"gap", r.progress.gap},
          {"learning_seconds", r.progress.learning}};
}

autotune::report::Facts facts_of(const ModelOptions& options, const std::string& model,
                                 const std::string& inputs, const CompileOptions& compile) {
  autotune::report::Facts facts{.model = std::filesystem::path(model).filename(),
                                .device = cpu_info().model,
                                .numerics = options.numerics,
                                .threads = compile.schedule_threads};
  facts.inputs = inputs;
  if (options.cpu != "native") facts.device += ", code for " + options.cpu;
  if (!options.machine.empty()) facts.device += ", described by " + options.machine;
  const int threads = compile.schedule_threads;
  if (const auto kept = measure::read_speed(measure::cache_file()); kept.ok()) {
    const auto at = [&](double one, double all) { return measure::at_threads(one, all, threads); };
    facts.arithmetic = {{"f32 multiply-adds", at(kept->f32_gflops, kept->f32_gflops_all)},
                        {"int8 dot products", at(kept->int8_gops, kept->int8_gops_all)}};
    facts.memory = {{"L2", at(kept->l2_read, kept->l2_read_all)},
                    {"L3", at(kept->l3_read, kept->l3_read_all)},
                    {"memory", at(kept->memory_read, kept->memory_read_all)}};
  } else {
    const measure::Peak peak = measure::measure_peak(threads);
    facts.arithmetic = {{"f32 multiply-adds", peak.gflops}};
    facts.memory = {{"memory", peak.memory_read}};
  }
  return facts;
}

}  // namespace tilewright::cli
