// What the subcommands share: options, opening of models, inputs and outputs in files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontends/compiler/compiler.h"
#include "frontends/compiler/text_model.h"
#include "frontends/tensor_files/host_value.h"
#include "runtime/session.h"

namespace tilewright::cli {

// What a shell script can tell apart: anything that failed, a mistake in the arguments, a model
// with parts that are not supported.
enum ExitStatus { kOk = 0, kError = 1, kUsage = 2, kUnsupportedModel = 3 };

// Prints the error to standard error; the exit status that goes with its kind.
int report(const Error& error);
// The same for a mistake in the arguments.
int report_usage(const std::string& message);

// The options of the command line that all commands which open a model share.
struct ModelOptions {
  // The model's path: an ONNX file, a text (is_text_model), or a compiled one (is_compiled).
  std::string model;
  std::vector<std::string> shapes;     // --shape options as given (shapes.cpp)
  std::vector<std::string> overrides;  // --override options as given: names or patterns
  // What to compile for: "native" is the CPU of this machine, else a name in codegen/target.
  std::string cpu = "native";
  std::string machine;  // a file that describes it (codegen/measure/machine_file.h); empty: none
  int threads = 0;      // 0: one per CPU this process may use
  // A word of --numerics; the command line admits only those that parse.
  std::string numerics = std::string(name(Numerics::kStandard));
  uint64_t seed = 0;      // of random numbers; 0: drawn from the system
  std::string database;   // of tuned schedules; empty: none
  bool guess = false;     // schedules of kernels like those that it does not have
  bool use_cache = true;  // of compiled kernels and models
};
bool is_compiled(const std::string& path);  // by its name: an .so
// The options of the driver that follow from those of the command line. Kernels are scheduled for
// the threads that will run them.
CompileOptions compile_options(const ModelOptions& options);
// Says on standard error where runs have fewer threads than were asked for (ThreadPool::most_workers).
void note_bounded_threads(int threads);

// What shapes can be given for: an input of a model, ONNX or compiled.
struct InputInfo {
  // As the model calls it, and the type of its elements.
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> extents;      // -1: symbolic
  std::vector<std::string> symbols;  // of symbolic extents; "" when it has no name
  bool known_rank = true;            // false: `extents` says nothing
  bool has_default = false;          // a run may leave it out
};
// What a model wants to be given, in its order.
std::vector<InputInfo> inputs_of(const OnnxModel& model);
// Behind these the initializers that a caller may replace (is_overridable).
std::vector<InputInfo> inputs_and_defaults_of(const OnnxModel& model);
// And those of them that --override options name; one that names none is an error.
Result<std::vector<InputInfo>> inputs_of(const OnnxModel& model,
                                         const std::vector<std::string>& overrides);
std::vector<InputInfo> inputs_of(const std::vector<ValueInfo>& values);
std::vector<InputInfo> inputs_of(const TextModel& model);

// The sets of shapes that the --shape options make up (explained in kShapeHelp). No option: one
// empty set.
Result<std::vector<Binding>> parse_shapes(const std::vector<InputInfo>& inputs,
                                          const std::vector<std::string>& shapes);
// For commands that compile for one set.
Result<Binding> parse_one_set(const std::vector<InputInfo>& inputs,
                              const std::vector<std::string>& shapes);
extern const char* const kShapeHelp;
// The error of compiling for these sets, with a note on what to give so that it goes, which was tried: an
// error that --shape cures is kInvalid, since the call lacks something, not Tilewright.
Error with_cure(Error error, const OnnxModel& model, const std::vector<Binding>& sets,
                const std::vector<InputInfo>& inputs, const CompileOptions& options);

// Inputs in the model's order, from `path` (.npz or a folder; empty: seeded random ones, said on standard
// error). One that is missing, too many or of another type is an error; one that is missing and has a
// default is not defined. `model`: an ONNX one's, else null.
Result<std::vector<Tensor>> inputs_for(const std::string& path, const std::vector<InputInfo>& infos,
                                       const Binding& binding, const OnnxModel* model = nullptr);

// An ONNX model, with the inputs of a run and what they say of its shapes.
struct BoundModel {
  // Inputs are in the model's order, which is that of `infos`.
  std::unique_ptr<OnnxModel> model;
  std::vector<InputInfo> infos;
  Binding binding;
  std::vector<Tensor> inputs;
};
// Returns whether a run fixes the values of such an input, on which shapes may depend: small vectors.
bool may_decide_shapes(DType dtype, const Shape& shape);
// inputs: a path, as inputs_for takes it.
Result<BoundModel> open_bound(const ModelOptions& options, const std::string& inputs);

// A model with inputs at every size that --shape states. One set: bound to it. Several, with the set
// `any` among them: its extents stay symbolic.
// Extents of a text are as it has them, and sets are sizes.
struct SizedModel {
  // One of both.
  std::unique_ptr<OnnxModel> model;
  std::optional<TextModel> text;
  std::vector<InputInfo> infos;
  Binding binding;
  std::vector<std::vector<Tensor>> inputs;
};
Result<SizedModel> open_sized(const ModelOptions& options, const std::string& inputs);

// A model ready to run, from an ONNX file (compiled in memory for the given inputs) or a compiled
// one.
struct OpenedModel {
  // The code and constants, which may be shared, and the one session that runs them here.
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs;
  // Of `inputs`, and of what a run returns, in the model's order.
  std::vector<std::string> input_names, output_names;
};
// inputs: a path, as inputs_for takes it.
Result<OpenedModel> open_to_run(const ModelOptions& options, const std::string& inputs,
                                bool profile);

// Whether outputs can be written there, before a model is compiled. Errors: kIo, kInvalid.
Status check_outputs(const std::string& path);
// Outputs of a run into an .npz archive, or into a folder of .pb files, by the form of the path;
// errors are those of the writers.
Status write_outputs(const std::string& path, const std::vector<std::string>& names,
                     const std::vector<Tensor>& outputs);

// The table of a profiled run that took `run_nanoseconds`: a row per kernel with the model's nodes
// in it. Times, FLOP and bytes, and what part of this machine's peak they are: by what
// `tilewright devices --measure` kept, or measured here (a third of a second) and not kept.
std::string profile_table(const std::vector<Profiler::Row>& rows, int64_t run_nanoseconds,
                          int threads);

// Prints the time of every pass so far to standard error, the longest first.
void print_pass_times();

// The subcommands, one function each; main.cpp parses their arguments. All return an ExitStatus and
// have by then reported what went wrong. `inputs` and `outputs` are paths, or empty.
int run_command(const ModelOptions& options, const std::string& inputs, const std::string& outputs,
                const std::string& trace);
// Runs for about `seconds` and prints the median and the shortest time, as JSON where asked; with
// `trace` also what each node takes, of runs apart from those.
int bench_command(const ModelOptions& options, const std::string& inputs, double seconds, bool json,
                  const std::string& trace);
// Looks for better schedules and keeps them in options.database.
struct TuneArguments {
  // A duration ("90s", "4m", "1h"), and the most candidates that are measured; 0: no bound.
  std::string time = "4m";
  std::string gap;  // "5%": kernels this near to the best that is expected are left; empty: none
  size_t trials = 0;
  bool same_bits = false, json = false;
  std::string report;  // a page to write (autotune/report); empty: none
  uint32_t seed = 1;
};
// job: of training, whose step is tuned; empty: the model is.
int tune_command(const ModelOptions& options, const std::string& job, const std::string& inputs,
                 const TuneArguments& arguments);
// Trains a model as a job file says (frontends/train/job.h).
struct TrainArguments {
  std::string job;
  // Steps are timed for so many seconds, and nothing is written; the result as JSON.
  bool bench = false, json = false;
  double seconds = 3;
  int64_t bucket_bytes = 0;  // DistributedJob
  // Numbers of ranks for which the time of a step is predicted; how these are linked where nothing is measured
  // (frontends/train/scaling.h); the file for a page on it.
  std::vector<int> scaling;
  std::string link, page;
  int ranks = 0;  // that are threads of this process; 0: as the launcher says
  bool resume = false,
       fresh = false;  // at most one (train_job.h); neither: as checkpoints are there
  std::string
      trace;  // with bench: where time goes, node by node, and a trace of a step to this file
};
int train_command(const ModelOptions& options, const TrainArguments& arguments);
// Starts a command as several processes, ranks of one job (runtime/distributed/process_group.h).
struct LaunchArguments {
  // Of this machine: "N", or "LEAST:N", with how many it goes on. Machines: "LEAST:MOST"; empty: this one.
  std::string processes = "1", nodes;
  std::string store;  // its address (runtime/distributed/store.h); empty: one is served here
  std::string job;    // its name in the store; empty: one that no other has
  int restarts = 0;   // of each process
  std::vector<std::string> command;
  bool is_own = false;  // the command is one of this program's, without the program's name
};
int launch_command(const LaunchArguments& arguments);
// action: show, check, merge, prune or export.
int db_command(const std::string& action, const std::vector<std::string>& files);
// job: of training, whose step is compiled (frontends/train/compile_step.h); empty: the model is.
int compile_command(const ModelOptions& options, const std::string& job, const std::string& output);
int info_command(const std::string& model, bool schedules);
extern const std::vector<std::string> kForms;  // of lower --emit
// train: the job whose step is lowered where there is no model.
int lower_command(const ModelOptions& options, const TrainArguments& train, const std::string& form,
                  const std::string& only);
int ops_command();
int devices_command(bool measure);
// As a file for --machine.
int describe_command(const ModelOptions& options);
int reproduce_command(const std::string& file);

}  // namespace tilewright::cli
