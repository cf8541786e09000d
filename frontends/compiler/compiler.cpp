#include "frontends/compiler/compiler.h"

#include "autotune/database/database.h"
#include "autotune/database/task.h"
#include "autotune/graph_form.h"
#include "codegen/assemble_executable.h"
#include "codegen/backend.h"
#include "codegen/measure/machine_cache.h"
#include "codegen/measure/machine_file.h"
#include "frontends/compiler/kept_executable.h"
#include "frontends/onnx/inline_functions.h"
#include "frontends/onnx/lift_constants.h"
#include "frontends/onnx/read_model.h"
#include "passes/schedule/rules/choose_trace.h"
#include "runtime/device_cpu.h"
#include "runtime/session.h"

namespace tilewright {

namespace {

int compile_threads(const CompileOptions& options) {
  return options.compile_threads > 0 ? options.compile_threads : available_cpus();
}

// Runs a graph without inputs on this machine, whatever the target.
Result<std::vector<ir::ConstantRef>> run_constants(const ir::Graph& graph,
                                                   const CompileOptions& options) {
  CompileOptions host = options;
  host.cpu = "native";
  host.machine.clear();
  host.machine_text.clear();
  host.starts.clear();
  host.progress = nullptr;
  host.database.clear();
  TW_ASSIGN(passes::LowerOptions lower, lower_options(host));
  lower.fold = false;
  TW_ASSIGN(ir::Program program, passes::lower(graph, lower));
  std::vector<ir::Program> programs;
  programs.push_back(std::move(program));
  TW_ASSIGN(std::shared_ptr<Executable> executable,
            codegen::assemble_in_memory(std::move(programs),
                                        assemble_options(host, lower.machine, graph.name)));
  TW_ASSIGN(std::unique_ptr<Session> session, Session::create(executable, {}));
  std::vector<Tensor> outputs;
  TW_RETURN_IF_ERROR(session->run({}, outputs));
  std::vector<ir::ConstantRef> constants;
  for (const Tensor& t : outputs) {
    auto keep = std::make_shared<Tensor>(t);
    constants.push_back(std::make_shared<const ir::Constant>(
        ir::Constant{t.dtype(), t.shape(), static_cast<const uint8_t*>(t.data()),
                     static_cast<size_t>(t.bytes()), keep}));
  }
  return constants;
}

void pass_on(const std::vector<std::string>& notes, const CompileOptions& options) {
  for (const std::string& note : notes)
    if (options.note) options.note(note);
}

Result<ir::MachineDescription> find_machine(const codegen::Backend& backend,
                                            const CompileOptions& options) {
  const auto describe = [&](const std::string& cpu) -> Result<ir::MachineDescription> {
    TW_ASSIGN(ir::MachineDescription machine, backend.describe(cpu));
    if (cpu == "native") measure::fill_speed(machine);
    return machine;
  };
  if (options.machine.empty() && options.machine_text.empty()) return describe(options.cpu);
  TW_ASSIGN(ir::MachineDescription machine,
            options.machine_text.empty()
                ? measure::read_machine(options.machine, options.cpu, describe)
                : measure::parse_machine(options.machine_text, options.cpu, describe));
  if (const Status s = backend.check(machine); !s.ok())
    return invalid(s.error().message, options.machine);
  return machine;
}

// The schedule that a database has for a kernel on the machine that is compiled for, or else, where
// that is wanted, the one that follows from the answers of a kernel like it. One that a change of the
// compiler has made illegal is as good as none.
passes::FindSchedule find_in(std::shared_ptr<const autotune::Database> db, std::string device,
                             const passes::LowerOptions& lower, bool guess) {
  return [db = std::move(db), device = std::move(device), machine = lower.machine, guess](
             const ir::Kernel& k,
             const std::set<std::string>& constants) -> std::optional<passes::FoundSchedule> {
    const std::string task = autotune::task_key(k, constants);
    if (const autotune::Record* r = db->find(task, device)) {
      if (!passes::apply_trace(k, r->schedule).ok()) return std::nullopt;
      return passes::FoundSchedule{r->schedule, r->answers};
    }
    const autotune::Record* r =
        guess ? db->find_like(task, autotune::family_key(k, constants), device) : nullptr;
    if (!r) return std::nullopt;
    auto choice = passes::choose_trace(
        k, {.machine = &machine, .constants = constants, .answers = r->answers});
    if (!choice.ok()) return std::nullopt;
    return passes::FoundSchedule{std::move(choice->trace), r->answers};
  };
}

std::map<std::string, ir::ConstantRef> defaults_of(const OnnxModel& model, const Binding& binding) {
  std::map<std::string, ir::ConstantRef> defaults;
  for (const std::string& name : binding.overrides) {
    const auto at = model.graph.initializers.find(name);
    if (at == model.graph.initializers.end() || !at->second.dtype()) continue;
    const TensorView& t = at->second;
    defaults[name] = std::make_shared<const ir::Constant>(
        ir::Constant{*t.dtype(), t.shape, t.data, t.bytes, t.owner});
  }
  return defaults;
}

}  // namespace

Result<passes::LowerOptions> lower_options(const CompileOptions& options) {
  passes::LowerOptions lower;
  TW_ASSIGN(const codegen::Backend* backend, codegen::open_backend());
  TW_ASSIGN(lower.machine, find_machine(*backend, options));
  lower.machine.threads = options.schedule_threads;
  lower.fuse = options.fuse;
  lower.schedule = options.schedule;
  lower.numerics = options.numerics;
  lower.starts = options.starts;
  lower.threads = compile_threads(options);
  if (!options.database.empty()) {
    TW_ASSIGN(autotune::Database db, autotune::Database::open(options.database));
    if (!db.damaged().empty() && options.note)
      options.note(options.database + ": " + std::to_string(db.damaged().size()) +
                   " lines were passed over; the first is " + db.damaged()[0]);
    const auto shared = std::make_shared<const autotune::Database>(std::move(db));
    const std::string device = autotune::device_key(lower.machine, options.numerics);
    lower.find_schedule = find_in(shared, device, lower, options.guess);
    lower.find_answers = [shared, device](const ir::Graph& graph) {
      const autotune::Record* r = shared->find(autotune::graph_key(graph), device);
      return r ? r->answers : passes::Answers{};
    };
  }
  lower.run_constants = [options](const ir::Graph& g) { return run_constants(g, options); };
  if (options.progress)
    lower.on_kernel = [options](size_t done) { options.progress("lowering", done, 0); };
  return lower;
}

codegen::AssembleOptions assemble_options(const CompileOptions& options,
                                          const ir::MachineDescription& machine,
                                          const std::string& name) {
  codegen::AssembleOptions assemble{machine, compile_threads(options), name, {}};
  assemble.cache = options.cache;
  if (options.progress)
    assemble.progress = [options](size_t done, size_t total) {
      options.progress("compiling", done, total);
    };
  return assemble;
}

Result<std::unique_ptr<OnnxModel>> open_model(const std::string& path, ModelUse use) {
  return catch_failures([&]() -> Result<std::unique_ptr<OnnxModel>> {
    TW_ASSIGN(std::unique_ptr<OnnxModel> model, read_model(path, use));
    if (use == ModelUse::kTraining) lift_constants(*model);
    TW_RETURN_IF_ERROR(inline_functions(*model));
    return model;
  });
}

// `met`: did extents of inputs meet in broadcasting?
static Result<ir::Graph> import_as(const OnnxModel& model, const Binding& binding,
                                   ImportOptions::Broadcast broadcast, bool& met,
                                   std::vector<std::string>* specialised,
                                   std::vector<std::string>* notes) {
  ImportOptions options{.input_shapes = binding.shapes,
                        .symbols = binding.symbols,
                        .input_values = {},
                        .broadcast = broadcast,
                        .met_in_broadcast = &met,
                        .names_apart = binding.names_apart,
                        .overrides = binding.overrides,
                        .bind = {},
                        .training = nullptr,
                        .notes = notes};
  Result<ir::Graph> graph = import_graph(model, options);
  if (graph.ok() || binding.values.empty() || graph.error().by_inputs == Cure::kNone) return graph;
  options.input_values = binding.values;
  Result<ir::Graph> again = import_graph(model, options);
  if (!again.ok()) return again;
  if (specialised)
    for (const auto& [name, value] : binding.values) specialised->push_back(name);
  return again;
}
static Result<std::vector<ir::Graph>> import_bound(const OnnxModel& model, const Binding& binding,
                                                   bool all, std::vector<std::string>* specialised,
                                                   std::vector<std::string>* notes) {
  using Broadcast = ImportOptions::Broadcast;
  bool met = false, expanded = false;
  std::vector<ir::Graph> graphs;
  Result<ir::Graph> equal = import_as(model, binding, Broadcast::kEqual, met, specialised, notes);
  if (!equal.ok() && (!met || equal.error().kind != ErrorKind::kInvalid)) return equal.error();
  if (equal.ok()) graphs.push_back(std::move(equal).value());
  if (!met || (!all && equal.ok())) return graphs;
  std::vector<std::string> of_open;
  Result<ir::Graph> open = import_as(model, binding, Broadcast::kOpen, expanded,
                                     graphs.empty() ? specialised : nullptr, &of_open);
  if (!open.ok() && graphs.empty()) return equal.error();
  if (!open.ok() || !expanded) return graphs;
  graphs.push_back(std::move(open).value());
  // The session also runs the second graph, so the stricter notes of the first one would be false.
  if (notes) *notes = std::move(of_open);
  return graphs;
}
Result<ir::Graph> build_graph(const OnnxModel& model, const Binding& binding,
                              std::vector<std::string>* specialised,
                              std::vector<std::string>* notes) {
  return catch_failures([&]() -> Result<ir::Graph> {
    TW_ASSIGN(std::vector<ir::Graph> graphs,
              import_bound(model, binding, false, specialised, notes));
    return std::move(graphs[0]);
  });
}
Result<std::vector<ir::Graph>> build_graphs(const OnnxModel& model, const Binding& binding,
                                            std::vector<std::string>* specialised,
                                            std::vector<std::string>* notes) {
  return catch_failures([&] { return import_bound(model, binding, true, specialised, notes); });
}

static Result<std::vector<ir::Program>> lower_all(std::vector<ir::Graph> graphs,
                                                  const passes::LowerOptions& options) {
  std::vector<ir::Program> programs;
  for (ir::Graph& graph : graphs) {
    TW_ASSIGN(ir::Program program, passes::lower(std::move(graph), options));
    programs.push_back(std::move(program));
  }
  return programs;
}

Result<ir::Program> compile_program(const OnnxModel& model, const Binding& binding,
                                    const CompileOptions& options) {
  std::vector<std::string> notes;
  TW_ASSIGN(ir::Graph graph, build_graph(model, binding, nullptr, &notes));
  pass_on(notes, options);
  TW_ASSIGN(passes::LowerOptions lower, lower_options(options));
  return catch_failures([&] { return passes::lower(std::move(graph), lower); });
}
Result<std::vector<ir::Program>> compile_programs(const OnnxModel& model, const Binding& binding,
                                                  const CompileOptions& options) {
  std::vector<std::string> notes;
  TW_ASSIGN(std::vector<ir::Graph> graphs, build_graphs(model, binding, nullptr, &notes));
  pass_on(notes, options);
  TW_ASSIGN(passes::LowerOptions lower, lower_options(options));
  return catch_failures([&] { return lower_all(std::move(graphs), lower); });
}

Result<std::shared_ptr<Executable>> compile_in_memory(ir::Graph graph,
                                                      const CompileOptions& options) {
  return catch_failures([&]() -> Result<std::shared_ptr<Executable>> {
    const std::string name = graph.name;
    TW_ASSIGN(passes::LowerOptions lower, lower_options(options));
    TW_ASSIGN(ir::Program program, passes::lower(std::move(graph), lower));
    std::vector<ir::Program> programs;
    programs.push_back(std::move(program));
    TW_ASSIGN(std::shared_ptr<Executable> executable,
              codegen::assemble_in_memory(std::move(programs),
                                          assemble_options(options, lower.machine, name)));
    TW_RETURN_IF_ERROR(check_cpu_features(executable->cpu_features));
    return executable;
  });
}

Result<std::shared_ptr<Executable>> compile_in_memory(const OnnxModel& model,
                                                      const Binding& binding,
                                                      const CompileOptions& options,
                                                      std::vector<std::string>* specialised) {
  KeptAbout about;
  // What is said of the database, too, is said again where the model is found.
  CompileOptions told = options;
  told.note = [&](const std::string& note) { about.notes.push_back(note); };
  auto executable = catch_failures([&]() -> Result<std::shared_ptr<Executable>> {
    const KeptExecutable kept(model, binding, options);
    if (auto found = kept.find(about)) return found;
    TW_ASSIGN(std::vector<ir::Graph> graphs,
              build_graphs(model, binding, &about.specialised, &about.notes));
    TW_ASSIGN(passes::LowerOptions lower, lower_options(told));
    TW_ASSIGN(std::vector<ir::Program> programs, lower_all(std::move(graphs), lower));
    codegen::AssembleOptions assemble = assemble_options(options, lower.machine, model.graph.name);
    assemble.defaults = defaults_of(model, binding);
    TW_ASSIGN(std::shared_ptr<Executable> made,
              kept.assemble(std::move(programs), assemble, about));
    TW_RETURN_IF_ERROR(check_cpu_features(made->cpu_features));
    return made;
  });
  pass_on(about.notes, options);
  if (specialised) *specialised = about.specialised;
  return executable;
}

Status compile_to_file(ir::Graph graph, const CompileOptions& options, const std::string& path) {
  return catch_failures([&]() -> Status {
    const std::string name = graph.name;
    TW_ASSIGN(passes::LowerOptions lower, lower_options(options));
    std::vector<ir::Program> programs(1);
    TW_ASSIGN(programs[0], passes::lower(std::move(graph), lower));
    return codegen::assemble_shared_object(std::move(programs),
                                           assemble_options(options, lower.machine, name), path);
  });
}

Status compile_to_file(const OnnxModel& model, const std::vector<Binding>& bindings,
                       const CompileOptions& options, const std::string& path) {
  std::vector<ir::Program> programs;
  for (const Binding& b : bindings) {
    TW_ASSIGN(std::vector<ir::Program> all, compile_programs(model, b, options));
    for (ir::Program& p : all) programs.push_back(std::move(p));
  }
  TW_ASSIGN(passes::LowerOptions lower, lower_options(options));
  codegen::AssembleOptions assemble = assemble_options(options, lower.machine, model.graph.name);
  for (const Binding& b : bindings) assemble.defaults.merge(defaults_of(model, b));
  return catch_failures(
      [&] { return codegen::assemble_shared_object(std::move(programs), assemble, path); });
}

}  // namespace tilewright
