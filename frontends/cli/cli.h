// What the subcommands share: options, opening of models, inputs and outputs in files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontends/compiler/compiler.h"
#include "frontends/tensor_files/host_value.h"
#include "runtime/session.h"

namespace tilewright::cli {

enum ExitStatus { kOk = 0, kError = 1, kUsage = 2, kUnsupportedModel = 3 };

// Prints the error to standard error; the exit status that goes with its kind.
int report(const Error& error);
// The same for a mistake in the arguments.
int report_usage(const std::string& message);

struct ModelOptions {
  std::string model;
  std::vector<std::string> shapes;  // --shape options as given (shapes.cpp)
  std::string cpu = "native";
  int threads = 0;  // 0: one per CPU this process may use
  std::string numerics = std::string(name(Numerics::kStandard));
  uint64_t seed = 0;  // of random numbers; 0: drawn from the system
};
bool is_compiled(const std::string& path);  // by its name: an .so
CompileOptions compile_options(const ModelOptions& options);

// What shapes can be given for: an input of a model, ONNX or compiled.
struct InputInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> extents;      // -1: symbolic
  std::vector<std::string> symbols;  // of symbolic extents; "" when it has no name
  bool known_rank = true;
};
std::vector<InputInfo> inputs_of(const OnnxModel& model);
std::vector<InputInfo> inputs_of(const std::vector<ValueInfo>& values);

// The sets of shapes that the --shape options make up (explained in kShapeHelp). No option: one
// empty set.
Result<std::vector<Binding>> parse_shapes(const std::vector<InputInfo>& inputs,
                                          const std::vector<std::string>& shapes);
// For commands that compile for one set.
Result<Binding> parse_one_set(const std::vector<InputInfo>& inputs,
                              const std::vector<std::string>& shapes);
extern const char* const kShapeHelp;

// A model ready to run, from an ONNX file (compiled in memory for the given inputs) or a compiled
// one.
struct OpenedModel {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs;
  std::vector<std::string> input_names, output_names;
};
// inputs: a path (.npz or folder) or empty: seeded random ones, said on standard error.
Result<OpenedModel> open_to_run(const ModelOptions& options, const std::string& inputs,
                                bool profile);

Status write_outputs(const std::string& path, const std::vector<std::string>& names,
                     const std::vector<Tensor>& outputs);

// The table of a profiled run that took `run_nanoseconds`: a row per kernel with the model's nodes
// in it. Times, FLOP and bytes, and what part of this machine's peak they are: by what
// `tilewright devices --measure` kept, or measured here (a third of a second) and not kept.
std::string profile_table(const std::vector<Profiler::Row>& rows, int64_t run_nanoseconds,
                          int threads);

// Prints the time of every pass so far to standard error, the longest first.
void print_pass_times();

int run_command(const ModelOptions& options, const std::string& inputs, const std::string& outputs,
                const std::string& trace);
int bench_command(const ModelOptions& options, const std::string& inputs, double seconds, bool json,
                  const std::string& trace);
int compile_command(const ModelOptions& options, const std::string& output);
int info_command(const std::string& model, bool schedules);
extern const std::vector<std::string> kForms;  // of lower --emit
int lower_command(const ModelOptions& options, const std::string& form, const std::string& only);
int ops_command();
int devices_command(bool measure);
int reproduce_command(const std::string& file);

}  // namespace tilewright::cli
