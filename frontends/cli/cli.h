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

struct ModelOptions {
  std::string model;
  std::vector<std::string> shapes;  // name=1x3x224x224 (input) or name=4 (symbol or one-dimensional input)
  std::string cpu = "native";
  int threads = 0;                  // 0: one per CPU this process may use
};
Result<Binding> parse_shapes(const OnnxModel& model, const std::vector<std::string>& shapes);

// A model ready to run, from an ONNX file (compiled in memory for the given inputs) or a compiled one.
struct OpenedModel {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs;
  std::vector<std::string> input_names, output_names;
};
// inputs: a path (.npz or folder) or empty: seeded random ones, said on standard error.
Result<OpenedModel> open_to_run(const ModelOptions& options, const std::string& inputs, bool profile);

Status write_outputs(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& outputs);

int run_command(const ModelOptions& options, const std::string& inputs, const std::string& outputs, const std::string& trace);
int bench_command(const ModelOptions& options, const std::string& inputs, double seconds, bool json);
int compile_command(const ModelOptions& options, const std::vector<std::vector<std::string>>& variants, const std::string& output);
int info_command(const std::string& model);
int lower_command(const ModelOptions& options, const std::string& form, const std::string& only);
int ops_command();
int devices_command();

}  // namespace tilewright::cli
