// The wrapper around every pass: time it, run it, verify the result, dump it, and on failure write
// what replays it. No pass does any of this itself (as LLVM's PassInstrumentation and DuckDB's
// optimizer runner).
#include "passes/pipeline.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "ir/module_text/printer_graph.h"
#include "ir/module_text/printer_program.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_graph.h"
#include "ir/verify_program.h"
#include "passes/lower.h"
#include "passes/planner.h"
#include "passes/reproducer.h"
#include "runtime/core/write_file.h"

namespace tilewright::passes {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::mutex times_mutex;
std::vector<PassTime>& times() {
  static auto* const all = new std::vector<PassTime>;
  return *all;
}
void add_time(std::string_view pass, double seconds, double verify_seconds) {
  std::lock_guard lock(times_mutex);
  for (PassTime& t : times())
    if (t.name == pass) {
      ++t.calls;
      t.seconds += seconds;
      t.verify_seconds += verify_seconds;
      return;
    }
  times().push_back({std::string(pass), 1, seconds, verify_seconds});
}

const char* dump_folder() {
  const char* folder = std::getenv("TILEWRIGHT_DUMP");
  return folder && *folder ? folder : nullptr;
}

// A file name of letters, digits, '_' and '-'.
std::string file_name(std::string name) {
  constexpr size_t kLongest = 80;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  return name.substr(0, kLongest);
}

const LowerOptions& options_of(const LowerOptions& options) { return options; }
const LowerOptions& options_of(const KernelContext& context) { return context.options; }
Status verify_result(const ir::Graph& graph, const GraphPass&) { return ir::verify(graph); }
Status verify_result(const ir::Kernel& kernel, const KernelPass& pass) {
  return ir::verify(kernel, pass.after);
}
Status verify_result(const ir::Program& program, const ProgramPass&) { return ir::verify(program); }
std::string name_of(const ir::Program& program) { return program.name + "_program"; }
std::string text_of(const ir::Program& program) { return ir::to_text(program); }
const std::string& name_of(const ir::Graph& graph) { return graph.name; }
const std::string& name_of(const ir::Kernel& kernel) { return kernel.name; }
std::string text_of(const ir::Graph& graph) { return ir::to_text(graph); }
std::string text_of(const ir::Kernel& kernel) { return ir::to_text(kernel); }
std::string name_of(const GraphPlan& plan) { return plan.graph.name + "_plan"; }
std::string text_of(const GraphPlan& plan) { return to_text(plan); }

// Writes FOLDER/<name>.<number>_<pass>.txt where a folder for dumps is named. Errors: kIo.
template <typename Module>
Status dump(const Module& module, size_t number, std::string_view pass) {
  const char* folder = dump_folder();
  if (!folder) return {};
  char digits[32];
  std::snprintf(digits, sizeof digits, ".%02zu_", number);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return io_error("cannot be made: " + error.message(), folder);
  return write_file(std::filesystem::path(folder) /
                        (file_name(name_of(module)) + digits + std::string(pass) + ".txt"),
                    text_of(module));
}

// The error, with the pass that it is of and, where it is one of Tilewright's own, the file that
// replays it.
template <typename Pass, typename Module, typename Context>
Error failure(Error error, std::string_view pass, const Module& before,
              std::span<const Pass> remaining, const Context& context) {
  if (error.kind != ErrorKind::kInternal) return error;
  error.message = "pass " + std::string(pass) + ": " + error.message;
  if (auto path = write_reproducer(before, remaining, context, error); path.ok())
    error.notes.push_back("to see it again: tilewright reproduce " + *path);
  return error;
}

template <typename Pass, typename Module, typename Context>
Result<Module> run_all(std::span<const Pass> passes, Module module, const Context& context) {
  const Numerics level = options_of(context).numerics;
  for (size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    if (level_of(pass.change) > level) continue;
    const Module before = module;
    const double start = seconds_now();
    Result<Module> after = catch_failures([&] { return pass.run(std::move(module), context); });
    const double end = seconds_now();
    std::optional<Error> error;
    if (!after.ok()) error = after.error();
    if (!error && options_of(context).verify)
      if (Status s = catch_failures([&] { return verify_result(*after, pass); }); !s.ok())
        error = s.error();
    add_time(pass.name, end - start, seconds_now() - end);
    if (!error) {
      module = std::move(*after);
      TW_RETURN_IF_ERROR(dump(module, i + 1, pass.name));
      continue;
    }
    return failure(std::move(*error), pass.name, before, passes.subspan(i), context);
  }
  return module;
}

}  // namespace

Result<ir::Graph> run_pipeline(std::span<const GraphPass> passes, ir::Graph graph,
                               const LowerOptions& options) {
  TW_RETURN_IF_ERROR(dump(graph, 0, "graph"));
  return run_all(passes, std::move(graph), options);
}

Result<ir::Kernel> run_pipeline(std::span<const KernelPass> passes, ir::Kernel kernel,
                                const KernelContext& context) {
  return run_all(passes, std::move(kernel), context);
}

Result<ir::Program> run_pipeline(std::span<const ProgramPass> passes, ir::Program program,
                                 const LowerOptions& options) {
  TW_RETURN_IF_ERROR(dump(program, 0, "planned"));
  return run_all(passes, std::move(program), options);
}

Status run_pipeline(std::span<const PlanPass> passes, GraphPlan& plan,
                    const LowerOptions& options) {
  for (size_t i = 0; i < passes.size(); ++i) {
    const PlanPass& pass = passes[i];
    const double start = seconds_now();
    Status done = catch_failures([&]() -> Status {
      pass.run(plan);
      return {};
    });
    const double end = seconds_now();
    if (done.ok()) done = catch_failures([&] { return verify(plan, pass.ordered); });
    add_time(pass.name, end - start, seconds_now() - end);
    if (!done.ok()) return failure(done.error(), pass.name, plan.graph, passes, options);
    TW_RETURN_IF_ERROR(dump(plan, i + 1, pass.name));
  }
  return {};
}

std::vector<PassTime> pass_times() {
  std::lock_guard lock(times_mutex);
  return times();
}

}  // namespace tilewright::passes
