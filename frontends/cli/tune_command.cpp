// tilewright tune: better schedules for a model's kernels, by measuring them where they run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autotune/report/page.h"
#include "autotune/report/report.h"
#include "codegen/measure/machine_cache.h"
#include "frontends/cli/cli.h"
#include "frontends/cli/interrupt.h"
#include "frontends/cli/progress.h"
#include "frontends/compiler/tune.h"
#include "runtime/device_cpu.h"

namespace tilewright::cli {

namespace {

// "90", "90s", "4m", "1.5h" in seconds.
std::optional<double> parse_duration(const std::string& text) {
  char unit = 's', more = 0;
  double n = 0;
  const int read = std::sscanf(text.c_str(), "%lf%c%c", &n, &unit, &more);
  const double factor = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
  if (read < 1 || read > 2 || !(n > 0) || !(n < 1e6) || factor == 0) return std::nullopt;
  return n * factor;
}

// "5%" or "0.5%": the part of 1; "": 0.
std::optional<double> parse_percent(const std::string& text) {
  if (text.empty()) return 0;
  double n = 0;
  char sign = 0, more = 0;
  if (std::sscanf(text.c_str(), "%lf%c%c", &n, &sign, &more) != 2 || sign != '%' || !(n > 0) ||
      !(n < 100))
    return std::nullopt;
  return n / 100;
}

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

nlohmann::ordered_json to_json(const autotune::TuneResult& r) {
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

// Roofs are those of the machine that was measured on, whatever --machine says of it.
autotune::report::Facts facts_of(const ModelOptions& options, const SizedModel& bound,
                                 const CompileOptions& compile) {
  autotune::report::Facts facts{.model = std::filesystem::path(options.model).filename(),
                                .device = cpu_info().model,
                                .numerics = options.numerics,
                                .threads = compile.schedule_threads};
  if (options.cpu != "native") facts.device += ", code for " + options.cpu;
  if (!options.machine.empty()) facts.device += ", described by " + options.machine;
  for (size_t i = 0; i < bound.infos.size(); ++i) {
    facts.inputs += (i == 0 ? "" : ", ") + bound.infos[i].name + ": " +
                    std::string(name(bound.inputs[0][i].dtype()));
    for (size_t size = 0; size < bound.inputs.size(); ++size)
      facts.inputs += (size == 0 ? "" : " or ") + to_string(bound.inputs[size][i].shape());
  }
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

}  // namespace

int tune_command(const ModelOptions& options, const std::string& inputs,
                 const TuneArguments& arguments) {
  if (is_compiled(options.model))
    return report_usage("tune reads an .onnx file; '" + options.model + "' is compiled already");
  const auto seconds = parse_duration(arguments.time);
  if (!seconds)
    return report_usage("--time " + arguments.time + ": expected a duration like 90s, 4m or 1h");
  const auto gap = parse_percent(arguments.gap);
  if (!gap) return report_usage("--gap " + arguments.gap + ": expected a percentage like 5%");
  if (!arguments.report.empty())
    if (const Status s = autotune::report::check_writable(arguments.report); !s.ok())
      return report(s.error());
  const Interrupt interrupt;
  auto bound = open_sized(options, inputs);
  if (!bound.ok()) return report(bound.error());
  const CompileOptions compile = compile_options(options);
  Progress progress;
  autotune::TuneOptions tuning{.seconds = *seconds,
                               .trials = arguments.trials,
                               .gap = *gap,
                               .same_bits = arguments.same_bits,
                               .seed = arguments.seed,
                               .threads = compile.schedule_threads};
  tuning.stop = Interrupt::is_set;
  tuning.progress = [&](const autotune::TuneProgress& p) {
    char line[120];
    std::snprintf(line, sizeof line,
                  "tuning: %zu of %zu kernels faster, gap %.0f %%, %zu trials, %.0f s left",
                  p.improved, p.kernels, 100 * p.gap, p.trials, p.seconds_left);
    progress.show(line);
  };
  auto result = bound->text ? tune(*bound->text, bound->inputs, compile, tuning)
                            : tune(*bound->model, bound->binding, bound->inputs, compile, tuning);
  progress.clear();
  if (!result.ok()) return report(result.error());
  print_table(*result);
  print_graph(result->graph);
  if (result->refused > 0)
    std::cerr << "tilewright: note: " << result->refused
              << " candidates or rounds were refused; the first: " << result->refusal << "\n";
  if (!result->unlearned.empty())
    std::cerr << "tilewright: note: analytic costs alone said what to measure: "
              << result->unlearned << "\n";
  const autotune::Comparison& runs = result->runs;
  std::printf(
      "whole runs: %.3f ms usual, %.3f ms tuned; ratio %.3f, with 95 %% confidence between "
      "%.3f and %.3f; %zu trials in %.0f s\n",
      runs.a * 1e-3, runs.b * 1e-3, runs.ratio, runs.low, runs.high, result->progress.trials,
      result->progress.seconds);
  if (!arguments.report.empty())
    if (const Status s = autotune::report::write_page(arguments.report, *result,
                                                      facts_of(options, *bound, compile));
        !s.ok())
      return report(s.error());
  if (arguments.json) std::cout << to_json(*result).dump() << "\n";
  return kOk;
}

}  // namespace tilewright::cli
