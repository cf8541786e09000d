// tilewright tune: better schedules for a model's kernels, by measuring them where they run.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autotune/report/page.h"
#include "autotune/report/report.h"
#include "frontends/cli/cli.h"
#include "frontends/cli/interrupt.h"
#include "frontends/cli/progress.h"
#include "frontends/cli/tune_results.h"
#include "frontends/compiler/tune.h"
#include "frontends/train/tunable_step.h"
#include "runtime/core/write_file.h"

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

// The inputs as a page names them, with the extents at each size.
std::string inputs_text(const SizedModel& bound) {
  std::string text;
  for (size_t i = 0; i < bound.infos.size(); ++i) {
    text += (i == 0 ? "" : ", ") + bound.infos[i].name + ": " +
            std::string(name(bound.inputs[0][i].dtype()));
    for (size_t size = 0; size < bound.inputs.size(); ++size)
      text += (size == 0 ? "" : " or ") + to_string(bound.inputs[size][i].shape());
  }
  return text;
}

using Tune = std::function<Result<autotune::TuneResult>(const CompileOptions&,
                                                        const autotune::TuneOptions&)>;

// Tunes by `run`, and says what came of it. model, inputs: what a page is on.
int tune_and_report(const ModelOptions& options, const TuneArguments& arguments,
                    const autotune::TuneOptions& limits, const std::string& model,
                    const std::string& inputs, const Tune& run) {
  const CompileOptions compile = compile_options(options);
  note_bounded_threads(options.threads);
  Progress progress;
  autotune::TuneOptions tuning = limits;
  tuning.trials = arguments.trials;
  tuning.same_bits = arguments.same_bits;
  tuning.seed = arguments.seed;
  tuning.threads = compile.schedule_threads;
  tuning.stop = Interrupt::is_set;
  tuning.progress = [&](const autotune::TuneProgress& p) {
    char line[120];
    std::snprintf(line, sizeof line,
                  "tuning: %zu of %zu kernels faster, gap %.0f %%, %zu trials, %.0f s left",
                  p.improved, p.kernels, 100 * p.gap, p.trials, p.seconds_left);
    progress.show(line);
  };
  auto result = run(compile, tuning);
  progress.clear();
  if (!result.ok()) return report(result.error());
  print_tuned(*result);
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
                                                      facts_of(options, model, inputs, compile));
        !s.ok())
      return report(s.error());
  if (arguments.json) std::cout << tuned_json(*result).dump() << "\n";
  return kOk;
}

int tune_training(const ModelOptions& options, const std::string& job_file,
                  const TuneArguments& arguments, const autotune::TuneOptions& limits) {
  auto job = train::read_job(job_file);
  if (!job.ok()) return report(job.error());
  auto steps = train::tunable_steps(*job);
  if (!steps.ok()) return report(steps.error());
  // What updates in parts is one pass over the parameters.
  constexpr double kOfUpdate = 0.1;
  for (size_t k = 0; k < steps->size(); ++k) {
    train::TunableStep& step = (*steps)[k];
    autotune::TuneOptions part = limits;
    if (steps->size() > 1) part.seconds *= k == 0 ? 1 - kOfUpdate : kOfUpdate;
    std::string inputs;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      inputs += (i == 0 ? "" : ", ") + step.graph.value(step.graph.inputs[i]).name + ": " +
                std::string(name(step.inputs[i].dtype())) + to_string(step.inputs[i].shape());
    const std::vector<std::vector<Tensor>> sets{step.inputs};
    TuneArguments how = arguments;
    if (k > 0) how.report.clear();  // the page is on what takes the time
    const int done = tune_and_report(options, how, part, job_file, inputs,
                                     [&](const auto& compile, const auto& tuning) {
                                       return tune(step.graph, sets, compile, tuning);
                                     });
    if (done != kOk) return done;
  }
  return kOk;
}

}  // namespace

int tune_command(const ModelOptions& options, const std::string& job, const std::string& inputs,
                 const TuneArguments& arguments) {
  if (job.empty() && options.model.empty())
    return report_usage("give a model, or a job with --train");
  if (!job.empty() && (!options.model.empty() || !options.shapes.empty() || !inputs.empty()))
    return report_usage("--train takes model, shapes and inputs from the job, and no others");
  if (is_compiled(options.model))
    return report_usage("tune reads an .onnx file; '" + options.model + "' is compiled already");
  const auto seconds = parse_duration(arguments.time);
  if (!seconds)
    return report_usage("--time " + arguments.time + ": expected a duration like 90s, 4m or 1h");
  const auto gap = parse_percent(arguments.gap);
  if (!gap) return report_usage("--gap " + arguments.gap + ": expected a percentage like 5%");
  if (!arguments.report.empty())
    if (const Status s = check_writable(arguments.report); !s.ok()) return report(s.error());
  const Interrupt interrupt;
  const autotune::TuneOptions limits{.seconds = *seconds, .gap = *gap};
  if (!job.empty()) return tune_training(options, job, arguments, limits);
  auto bound = open_sized(options, inputs);
  if (!bound.ok()) return report(bound.error());
  return tune_and_report(options, arguments, limits, options.model, inputs_text(*bound),
                         [&](const auto& compile, const auto& tuning) {
                           return bound->text ? tune(*bound->text, bound->inputs, compile, tuning)
                                              : tune(*bound->model, bound->binding, bound->inputs,
                                                     compile, tuning);
                         });
}

}  // namespace tilewright::cli
