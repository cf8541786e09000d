// The driver: calls all stages, from an ONNX file to an executable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/assemble_executable.h"
#include "codegen/cache/file_cache.h"
#include "frontends/onnx/import_graph.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/read_model.h"
#include "ir/program/program.h"
#include "passes/lower.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/numerics.h"
#include "runtime/executable.h"

namespace tilewright {

// What a caller of the driver may choose; the defaults are those of the command line.
struct CompileOptions {
  // "native", or a CPU that codegen/target knows by name; the code runs only where it has the
  // instructions of that one.
  std::string cpu = "native";
  // A file that describes the machine instead (codegen/measure/machine_file.h), in what it says;
  // empty: none.
  std::string machine;
  // Holds the text of such a file and takes precedence over `machine`; it is empty where there is none.
  std::string machine_text;
  int schedule_threads = 1;  // what schedules assume
  int compile_threads = 0;   // 0: as many as this process may use
  // Off, to compare with: one kernel per operator, and loops as the operator was written.
  bool fuse = true, schedule = true;
  // Which results may differ from strict IEEE order and rounding.
  Numerics numerics = Numerics::kStandard;
  // A tuning database (autotune/database/database.h) whose schedules come before the usual ones; empty: none.
  std::string database;
  // Kernels that it does not have get the answers of others like them (Database::find_like).
  bool guess = false;
  // Ranges of results that the run starts before it ends (passes/plan_program.h); empty: none.
  std::vector<passes::ResultRange> starts;
  // Where compiled kernels and models are kept and looked for; null: nowhere.
  cache::FileCache* cache = nullptr;
  // Called as kernels get ready: what is being done, how many are done, of how many (0: not known).
  // From any thread.
  std::function<void(const std::string& stage, size_t done, size_t total)> progress;
  // Called with what the user should know of the model.
  std::function<void(const std::string& note)> note;
};

// One set of input shapes: by input name (`shapes`) or by symbol (`symbols`). Empty: extents stay
// symbolic.
struct Binding {
  std::map<std::string, Shape> shapes;
  std::map<std::string, int64_t> symbols;
  std::map<std::string, ir::ConstantRef>
      values;                // tried only where a shape depends on the value of an input
  bool names_apart = false;  // extents of one name may differ
  // Initialisers that are inputs, behind the others, with what the model has for them as a default;
  // all else is constant, to be folded and packed.
  std::set<std::string> overrides;
};

// Reads and checks a model file, which is untrusted input; errors are those of read_model.
// For training, weights that are nodes become initialisers (frontends/onnx/lift_constants.h).
Result<std::unique_ptr<OnnxModel>> open_model(const std::string& path,
                                              ModelUse use = ModelUse::kInference);

// The typed graph under a binding. Where a shape depends on values of inputs that the binding has,
// the graph is specialised to them; `specialised` (may be null) names these inputs. `notes` (may be
// null): see ImportOptions.
Result<ir::Graph> build_graph(const OnnxModel& model, const Binding& binding,
                              std::vector<std::string>* specialised = nullptr,
                              std::vector<std::string>* notes = nullptr);

// Builds one or two typed graphs. The first assumes that input extents which meet in broadcasting are equal.
// Where that assumption was made, a second graph follows that lets either be 1 at run time; it is the only
// one when the assumption contradicts the model.
Result<std::vector<ir::Graph>> build_graphs(const OnnxModel& model, const Binding& binding,
                                            std::vector<std::string>* specialised = nullptr,
                                            std::vector<std::string>* notes = nullptr);

// What the passes are told under these options.
Result<passes::LowerOptions> lower_options(const CompileOptions& options);

// And what code generation is told; `name`: of the model.
codegen::AssembleOptions assemble_options(const CompileOptions& options,
                                          const ir::MachineDescription& machine,
                                          const std::string& name);

// All passes, without code generation: what `lower` prints, and what both ways to an executable
// begin with.
Result<ir::Program> compile_program(const OnnxModel& model, const Binding& binding,
                                    const CompileOptions& options);
// One for each of the graphs (build_graphs).
Result<std::vector<ir::Program>> compile_programs(const OnnxModel& model, const Binding& binding,
                                                  const CompileOptions& options);

// An executable of this process, through the JIT of codegen. The constants are kept alive by it.
// With a model: for one binding, where `specialised` is as in build_graph; from options.cache where
// that has it.
Result<std::shared_ptr<Executable>> compile_in_memory(ir::Graph graph,
                                                      const CompileOptions& options);
Result<std::shared_ptr<Executable>> compile_in_memory(
    const OnnxModel& model, const Binding& binding, const CompileOptions& options,
    std::vector<std::string>* specialised = nullptr);
// A shared object, for machines that have neither LLVM nor a compiler.
Status compile_to_file(ir::Graph graph, const CompileOptions& options, const std::string& path);
// One variant per binding, in this order, or two (build_graphs).
Status compile_to_file(const OnnxModel& model, const std::vector<Binding>& bindings,
                       const CompileOptions& options, const std::string& path);

}  // namespace tilewright
