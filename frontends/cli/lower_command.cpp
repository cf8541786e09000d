// tilewright lower: a model at each stage of its compilation, as text.
#include <algorithm>
#include <iostream>

#include "codegen/backend.h"
#include "frontends/cli/cli.h"
#include "frontends/cli/progress.h"
#include "frontends/train/part_sums.h"
#include "frontends/train/ranks.h"
#include "frontends/train/step_graph.h"
#include "ir/module_text/printer_graph.h"
#include "ir/module_text/printer_program.h"
#include "ir/text/printer_loops.h"
#include "passes/decisions/decisions.h"
#include "passes/plan_program.h"
#include "passes/price_decisions.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::cli {

const std::vector<std::string> kForms{"graph", "typed", "fused", "loops",  "scheduled",
                                      "flat",  "llvm",  "asm",   "program"};

namespace {

// The graph as imported, cleaned up, or in groups.
Result<ir::Graph> graph_at(ir::Graph graph, const std::string& form,
                           const passes::LowerOptions& options) {
  if (form == "graph") return graph;
  auto passes = passes::graph_passes();
  if (form != "typed") return passes::run_pipeline(passes, std::move(graph), options);
  auto fuse = std::find_if(passes.begin(), passes.end(),
                           [](const auto& p) { return p.name == "fuse_operators"; });
  return passes::run_pipeline(passes.first(static_cast<size_t>(fuse - passes.begin())),
                              std::move(graph), options);
}

Result<std::string> print_kernel(ir::Kernel kernel, const std::set<std::string>& constants,
                                 const std::string& form, const passes::LowerOptions& options) {
  if (form == "loops") return ir::to_text(kernel);
  TW_ASSIGN(passes::ScheduledKernel scheduled,
            passes::schedule_kernel(std::move(kernel), constants, options));
  kernel = std::move(scheduled.kernel);
  if (form == "scheduled") return ir::to_text(kernel);
  TW_ASSIGN(kernel, passes::lower_to_flat(std::move(kernel), options));
  if (form == "flat") return ir::to_text(kernel);
  TW_ASSIGN(const codegen::Backend* backend, codegen::open_backend());
  return backend->print(kernel, options.machine,
                        form == "llvm" ? codegen::CodeForm::kLlvm : codegen::CodeForm::kAssembly);
}

std::string found_in_database(const passes::FoundSchedule& found, const passes::Trace& follows) {
  std::string text = "as tuned:";
  for (const auto& [name, value] : found.answers)
    text += " " + name + " = " + std::to_string(value);
  if (passes::to_string(found.schedule) != passes::to_string(follows))
    text += "; these answers would lead to another schedule by now, what was measured is used";
  return text;
}

// Why the kernel is scheduled as it is: notes of the rules, their decisions, the steps. Where a database
// has answers, with these.
Result<std::string> explain_kernel(const ir::Kernel& kernel, const std::set<std::string>& constants,
                                   const passes::LowerOptions& options) {
  std::optional<passes::FoundSchedule> found;
  if (options.find_schedule) found = options.find_schedule(kernel, constants);
  const passes::Answers answers = found ? found->answers : passes::Answers{};
  TW_ASSIGN(passes::Choice choice, passes::choose_trace(kernel, {.machine = &options.machine,
                                                                 .constants = constants,
                                                                 .answers = answers,
                                                                 .explain = true}));
  passes::price_decisions(choice.decisions, kernel, constants, options);
  std::string text = kernel.name + ", for " + options.machine.cpu + " (" +
                     std::to_string(8 * options.machine.vector_bytes) + "-bit vectors, " +
                     std::to_string(options.machine.l2_bytes >> 10) + " KiB L2)\n";
  TW_ASSIGN(const passes::LoopCost cost, passes::cost_of(kernel, constants, options, answers));
  text += passes::explain(cost) + "\n";
  if (found) text += found_in_database(*found, choice.trace) + "\n";
  for (const std::string& n : choice.notes) text += n + "\n";
  return text + "decisions:\n" + passes::to_string(choice.decisions) + "schedule:\n" +
         passes::to_string(found ? found->schedule : choice.trace);
}

// `only`: a kernel's name or its number, "k3".
bool is_wanted(const std::string& name, const std::string& only) {
  return only.empty() || name == only || name.starts_with(only + "_");
}

// What the model calls the operands of a kernel's first call: "# in0: x, in1: fc1.weight, out0: y".
// And which of them are constants: "# constants: in1", as files of text say it (text_model.h).
std::string name_operands(const ir::Program& program, size_t kernel) {
  std::string line, constants;
  for (const auto& block : program.blocks)
    for (const ir::ProgramInstruction& i : block) {
      const auto* call = std::get_if<ir::CallInstruction>(&i);
      if (!call || call->kernel != static_cast<int32_t>(kernel) || !line.empty()) continue;
      for (size_t p = 0; p < call->buffers.size(); ++p) {
        const ir::ProgramBuffer& b = program.buffers[static_cast<size_t>(call->buffers[p])];
        const std::string& name = program.kernels[kernel].params[p]->name;
        line += (p == 0 ? "# " : ", ") + name + ": " + b.name;
        if (b.kind == ir::StorageKind::kConstant)
          constants += (constants.empty() ? "# constants: " : ", ") + name;
      }
    }
  return line.empty() ? line : line + "\n" + constants + (constants.empty() ? "" : "\n");
}

Result<std::string> print_kernels(ir::Graph graph, const std::string& form, const std::string& only,
                                  passes::LowerOptions options) {
  const passes::Answers known =
      options.find_answers ? options.find_answers(graph) : passes::Answers{};
  passes::Decisions decisions(known, options.numerics != Numerics::kExact);
  options.decisions = &decisions;
  std::string text, names;
  std::vector<std::string> texts;  // by kernel; empty for those that are not wanted
  Progress progress;
  const ir::Graph imported = graph;
  TW_ASSIGN(graph, passes::lower_graph(std::move(graph), options));
  if (!known.empty() && !decisions.check_answers("graph").ok()) {  // as passes::lower does
    options.find_answers = nullptr;
    return print_kernels(imported, form, only, options);
  }
  if (form == "explain" && only.empty()) {
    std::vector<passes::Decision> made = decisions.made();
    passes::LowerOptions priced = options;
    priced.on_kernel = [&](size_t done) { progress.update("pricing", done, 0); };
    passes::price_decisions(made, imported, priced);
    text = "decisions on the graph:\n" + passes::to_string(made) + "\n";
  }
  auto collect = [&](ir::Kernel k,
                     const std::set<std::string>& constants) -> Result<passes::LoweredKernel> {
    names += "\n  " + k.name;
    progress.update("lowering", texts.size(), 0);
    texts.emplace_back();
    if (!is_wanted(k.name, only)) return passes::LoweredKernel{std::move(k), ""};
    if (form == "explain") {
      TW_ASSIGN(texts.back(), explain_kernel(k, constants, options));
    } else {
      TW_ASSIGN(texts.back(), print_kernel(k, constants, form, options));
    }
    return passes::LoweredKernel{std::move(k), ""};
  };
  auto program = passes::plan_program(graph, options, collect);
  if (!program.ok()) return program.error();
  const bool is_code = form == "llvm" || form == "asm";
  for (size_t k = 0; k < texts.size(); ++k)
    if (!texts[k].empty()) text += (is_code ? "" : name_operands(*program, k)) + texts[k] + "\n";
  if (text.empty() && !only.empty())
    return invalid((form == "explain" ? "--explain" : "--only") +
                   std::string(": there is no kernel '") + only + "'; the model has" +
                   (names.empty() ? " none" : ":" + names));
  return text;
}

}  // namespace

namespace {

bool is_graph_form(const std::string& form) {
  return form == "graph" || form == "typed" || form == "fused";
}

Result<std::string> lowered(ir::Graph graph, const passes::LowerOptions& options,
                            const std::string& form, const std::string& only) {
  if (is_graph_form(form)) {
    TW_ASSIGN(const ir::Graph result, graph_at(std::move(graph), form, options));
    return ir::to_text(result);
  }
  if (form == "program") {
    TW_ASSIGN(const ir::Program program, passes::lower(std::move(graph), options));
    return ir::to_text(program);
  }
  return print_kernels(std::move(graph), form, only, options);
}

Result<std::string> lowered_model(const ModelOptions& options, const std::string& form,
                                  const std::string& only) {
  TW_ASSIGN(const auto model, open_model(options.model));
  TW_ASSIGN(const auto inputs, inputs_of(*model, options.overrides));
  TW_ASSIGN(const auto binding, parse_one_set(inputs, options.shapes));
  TW_ASSIGN(ir::Graph graph, build_graph(*model, binding));
  TW_ASSIGN(const passes::LowerOptions lower, lower_options(compile_options(options)));
  return lowered(std::move(graph), lower, form, only);
}

// A step, or a part of one and the update that follows from its parts: as one rank of several has them where the job
// is for ranks.
Result<std::string> lowered_step(const ModelOptions& options, const TrainArguments& a,
                                 const std::string& form, const std::string& only) {
  TW_ASSIGN(train::Job job, train::read_job(a.job));
  job.distributed.bucket_bytes = a.bucket_bytes;
  if (a.ranks > 0) { TW_ASSIGN(job, train::for_ranks(std::move(job), a.ranks)); }
  TW_ASSIGN(const auto model, open_model(job.model.string(), ModelUse::kTraining));
  TW_ASSIGN(train::Trained trained, train::find_trained(*model, job));
  TW_ASSIGN(train::StepGraph step, train::build_step(*model, trained, job));
  CompileOptions compile = compile_options(options);
  compile.starts = train::ranges_of_part(job, trained);
  TW_ASSIGN(const passes::LowerOptions part, lower_options(compile));
  Result<std::string> text = lowered(std::move(step.graph), part, form, only);
  if (!step.update) return text;
  compile.starts.clear();
  TW_ASSIGN(const passes::LowerOptions whole, lower_options(compile));
  const Result<std::string> update = lowered(std::move(*step.update), whole, form, only);
  // A kernel that is asked for is one of either.
  if (!text.ok() && (only.empty() || !update.ok())) return text;
  if (!update.ok() && only.empty()) return update;
  return (text.ok() ? "# a part of a step\n" + *text : "") +
         (update.ok() ? "# the update\n" + *update : "");
}

}  // namespace

int lower_command(const ModelOptions& options, const TrainArguments& train, const std::string& form,
                  const std::string& only) {
  if (options.model.empty() == train.job.empty())
    return report_usage("lower takes a model, or --train with a job");
  if (is_compiled(options.model))
    return report_usage("lower reads an .onnx file; '" + options.model + "' is compiled already");
  if ((is_graph_form(form) || form == "program") && !only.empty())
    return report_usage("--only goes with forms of kernels, not with --emit " + form);
  const auto text = train.job.empty() ? lowered_model(options, form, only)
                                      : lowered_step(options, train, form, only);
  if (!text.ok()) return report(text.error());
  std::cout << *text;
  return kOk;
}

}  // namespace tilewright::cli
