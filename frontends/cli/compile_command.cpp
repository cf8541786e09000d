// tilewright compile and reproduce.
#include <algorithm>
#include <iostream>

#include "frontends/cli/cli.h"
#include "frontends/cli/progress.h"
#include "frontends/train/compile_step.h"
#include "passes/reproducer.h"
#include "runtime/core/write_file.h"

namespace tilewright::cli {

namespace {

// Whether a set gives every extent of every input.
bool binds_all(const Binding& set, const std::vector<InputInfo>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [&](const InputInfo& i) {
    if (set.shapes.count(i.name)) return true;
    if (!i.known_rank) return false;
    for (size_t d = 0; d < i.extents.size(); ++d)
      if (i.extents[d] < 0 && !set.symbols.count(i.symbols[d])) return false;
    return true;
  });
}

}  // namespace

static int compile_training(const ModelOptions& options, const std::string& job_file,
                            const std::string& output) {
  if (!options.model.empty() || !options.shapes.empty())
    return report_usage("--train takes model and shapes from the job, and no others");
  auto job = train::read_job(job_file);
  if (!job.ok()) return report(job.error());
  Progress progress;
  CompileOptions compile = compile_options(options);
  compile.progress = progress.callback();
  const Status s = train::compile_step(*job, compile, output);
  progress.clear();
  if (!s.ok()) return report(s.error());
  std::cout << output << (job->is_cut() ? ": a part of a step; " : ": the step; ");
  if (job->is_cut()) std::cout << train::update_of(output).string() << ": its update; ";
  std::cout << train::start_of(output).string() << ": what it updates, as that begins; "
            << train::state_of(output).string() << ": which tensors lie where in that\n";
  return kOk;
}

int compile_command(const ModelOptions& options, const std::string& job,
                    const std::string& output) {
  if (Status s = check_writable(output); !s.ok()) return report(s.error());
  if (!job.empty()) return compile_training(options, job, output);
  if (options.model.empty()) return report_usage("give a model, or a job with --train");
  if (is_compiled(options.model))
    return report_usage("'" + options.model + "' is compiled already");
  auto model = open_model(options.model);
  if (!model.ok()) return report(model.error());
  auto inputs = inputs_of(**model, options.overrides);
  if (!inputs.ok()) return report(inputs.error());
  auto sets = parse_shapes(*inputs, options.shapes);
  if (!sets.ok()) return report(sets.error());
  // Exact matches are tried first.
  std::stable_partition(sets->begin(), sets->end(),
                        [&](const Binding& b) { return binds_all(b, *inputs); });
  Progress progress;
  CompileOptions compile = compile_options(options);
  compile.progress = progress.callback();
  Status s = compile_to_file(**model, *sets, compile, output);
  progress.clear();
  return s.ok() ? kOk : report(with_cure(s.error(), **model, *sets, *inputs, compile));
}

int reproduce_command(const std::string& file) {
  auto options = lower_options({});
  if (!options.ok()) return report(options.error());
  if (Status s = passes::replay(file, options->run_constants); !s.ok()) return report(s.error());
  std::cout << "all passes of the file succeed and their results are valid\n";
  return kOk;
}

}  // namespace tilewright::cli
