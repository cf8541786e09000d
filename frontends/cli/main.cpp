// The command: parses arguments and calls a subcommand.
#include <CLI/CLI.hpp>

#include "frontends/cli/cli.h"

using namespace tilewright::cli;

namespace {

void add_model_options(CLI::App* app, ModelOptions& o, bool shapes) {
  app->add_option("MODEL", o.model, "an .onnx file, or an .so made by `tilewright compile`")->required();
  if (shapes) app->add_option("--shape", o.shapes, "extents of an input (x=1x3x224x224) or of a symbol (batch=1); may be repeated");
  app->add_option("--cpu", o.cpu, "CPU to make code for: native, or LLVM's name (x86-64-v3, cascadelake, znver4)")->capture_default_str();
  app->add_option("--threads", o.threads, "threads to run with, and for schedules to assume; 0: one per available CPU")->check(CLI::Range(0, 1024));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Compiles ONNX models to native code, and runs them."};
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.require_subcommand(1);
  app.footer("Exit status: 0 done, 1 error, 2 wrong usage, 3 the model needs something that is not supported.");
  ModelOptions options;
  std::string inputs, outputs, trace;
  double seconds = 3;
  bool json = false;

  auto* compile = app.add_subcommand("compile", "compile a model to a shared object that the runtime library runs");
  add_model_options(compile, options, true);
  compile->add_option("-o,--output", outputs, "file to write, e.g. model.so")->required();
  compile->footer("Without --shape extents stay symbolic. Example:\n  tilewright compile resnet.onnx -o resnet.so --shape input=1x3x224x224");

  auto* run = app.add_subcommand("run", "run a model once");
  add_model_options(run, options, true);
  run->add_option("--inputs", inputs, "an .npz keyed by input names, or a folder of input_0.pb, ...; default: random ones");
  run->add_option("--outputs", outputs, "an .npz to write, or a folder for output_0.pb, ...");
  run->add_option("--profile", trace, "write a trace for Perfetto or chrome://tracing, and print a table per node");
  run->footer("Example:\n  tilewright run model.onnx --inputs in.npz --outputs out.npz --threads 2");

  auto* bench = app.add_subcommand("bench", "time a model");
  add_model_options(bench, options, true);
  bench->add_option("--inputs", inputs, "an .npz keyed by input names, or a folder of input_0.pb, ...; default: random ones");
  bench->add_option("--seconds", seconds, "how long to measure")->capture_default_str()->check(CLI::PositiveNumber);
  bench->add_flag("--json", json, "the last line is one JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int status = app.exit(e);
    return status == 0 ? kOk : kUsage;
  }
  if (*compile) {
    std::vector<std::vector<std::string>> variants;
    if (!options.shapes.empty()) variants.push_back(options.shapes);
    return compile_command(options, variants, outputs);
  }
  if (*run) return run_command(options, inputs, outputs, trace);
  return bench_command(options, inputs, seconds, json);
}
