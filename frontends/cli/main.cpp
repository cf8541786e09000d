// The command: parses arguments and calls a subcommand.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "frontends/cli/cli.h"
#include "frontends/cli/launch_options.h"
#include "frontends/cli/standard_streams.h"
#include "frontends/cli/train_options.h"

using namespace tilewright::cli;

namespace {

struct Arguments {
  ModelOptions model;
  std::string inputs, outputs, trace, form = "loops", only, explain, file;
  double seconds = 3;
  TuneArguments tune;
  TrainArguments train;
  LaunchArguments launch;
  std::string action;
  std::vector<std::string> files;
  bool json = false, measure = false, pass_times = false, schedules = false;
};

void add_machine(CLI::App* app, ModelOptions& o) {
  app->add_option("--cpu", o.cpu,
                  "CPU to make code for: native, or LLVM's name (x86-64-v3, cascadelake, znver4)")
      ->capture_default_str();
  app->add_option("--machine", o.machine,
                  "a JSON file of what is otherwise on the machine to make code for: caches, "
                  "vectors, features, speeds; `tilewright devices --json` prints one");
}
void add_numerics(CLI::App* app, ModelOptions& o) {
  app->add_option("--numerics", o.numerics,
                  "exact: each result rounded to its type, sums in one order on every CPU with the "
                  "same vectors; standard: also Winograd convolutions, and what moves roundings; "
                  "relaxed: also activations of 16 bits where weights have 8")
      ->check(CLI::IsMember(std::vector<std::string>(tilewright::kNumericsNames.begin(),
                                                     tilewright::kNumericsNames.end())))
      ->capture_default_str();
}
void add_model_options(CLI::App* app, ModelOptions& o, const char* model) {
  app->add_option("MODEL", o.model, model)->required();
  app->add_option(
         "--shape", o.shapes,
         "extents of an input (x=1x3x224x224) or of a symbol (batch=1); may be repeated, see below")
      ->allow_extra_args(false);
  app->add_option(
         "--override", o.overrides,
         "an initializer that the model also lists as an input (from IR version 4 on), or a "
         "pattern of names (lora.*): it becomes an input, with what the model has for it as "
         "its default; else such initializers are constants, unless --inputs has them")
      ->allow_extra_args(false);
  add_machine(app, o);
  app->add_option("--threads", o.threads,
                  "threads to run with, and for schedules to assume; 0: one per available CPU")
      ->check(CLI::Range(0, 1024));
  add_numerics(app, o);
  app->add_flag("--no-cache{false}", o.use_cache,
                "compile all anew, and keep nothing; else what was compiled before is taken from "
                "~/.cache/tilewright (TILEWRIGHT_CACHE_BYTES says how large that may become)");
}
void add_database(CLI::App* app, ModelOptions& o) {
  auto* db = app->add_option(
      "--db", o.database,
      "a tuning database, as `tilewright tune` writes it: its schedules come before the "
      "usual ones");
  app->add_flag(
         "--guess", o.guess,
         "with --db: kernels that were not tuned here are scheduled like those of other sizes, "
         "or as on another machine")
      ->needs(db);
}
void add_seed(CLI::App* app, uint64_t& seed) {
  app->add_option("--seed", seed,
                  "of the model's random numbers, where its nodes have no seed of their own; 0: "
                  "drawn from the system");
}
void add_pass_times(CLI::App* app, bool& wanted) {
  app->add_flag("--pass-times", wanted, "print what each pass took, the longest first");
}
constexpr const char* kEither =
    "an .onnx file, an .so made by `tilewright compile`, or an .ir as `lower` prints";
constexpr const char* kInputs =
    "an .npz keyed by input names, or a folder of input_0.pb, ...; default: random ones";

void add_compile(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("compile",
                               "compile a model to a shared object that the runtime library runs");
  add_model_options(c, a.model, "an .onnx file");
  c->get_option("MODEL")->required(false);
  add_database(c, a.model);
  c->add_option(
      "--train", a.train.job,
      "instead of a model: a training job (see `tilewright train --help`), whose step is "
      "compiled, and beside it what the step updates, as that begins, and which tensors lie "
      "where in it: step.so, step-start.so and step-state.json");
  c->add_option("-o,--output", a.outputs, "file to write, e.g. model.so")->required();
  add_pass_times(c, a.pass_times);
  c->footer(std::string(kShapeHelp) +
            "\nExamples:\n  tilewright compile model.onnx -o model.so\n"
            "  tilewright compile resnet.onnx -o resnet.so --shape input=1x3x224x224 --shape "
            "input=8x3x224x224 --cpu x86-64-v3\n"
            "  tilewright compile --train job.toml -o step.so");
}
void add_run(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("run", "run a model once");
  add_model_options(c, a.model, kEither);
  add_database(c, a.model);
  c->add_option("--inputs", a.inputs, kInputs);
  add_seed(c, a.model.seed);
  c->add_option(
      "--outputs", a.outputs,
      "an .npz to write, or a folder for output_0.pb, ...; default: their types are printed");
  c->add_option(
      "--profile", a.trace,
      "write a trace for Perfetto or chrome://tracing to this file, and print a table per node");
  c->footer(
      std::string(kShapeHelp) +
      "\nExamples:\n  tilewright run model.onnx --inputs in.npz --outputs out.npz --threads 2\n"
      "  tilewright run model.so --profile trace.json");
}
void add_bench(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("bench", "time a model");
  add_model_options(c, a.model, kEither);
  add_database(c, a.model);
  c->add_option("--inputs", a.inputs, kInputs);
  add_seed(c, a.model.seed);
  c->add_option("--seconds", a.seconds, "how long to measure")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_flag("--json", a.json, "the last line is one JSON object");
  c->add_option("--profile", a.trace,
                "run for as long again, print what each node takes of all these runs together, and "
                "write a trace of the first of them to this file");
  c->footer(
      std::string(kShapeHelp) +
      "\nExample:\n  tilewright bench model.onnx --shape batch=8 --threads 2 --seconds 5 --json");
}
void add_lower(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("lower", "print a model at a stage of its compilation");
  add_model_options(c, a.model, "an .onnx file");
  add_database(c, a.model);
  c->get_option("MODEL")->required(false);
  c->add_option("--train", a.train.job,
                "instead of a model: a training job, whose step is printed");
  c->add_option("--ranks", a.train.ranks,
                "with --train: what each of so many ranks runs, the parts of a step with the "
                "ranges of gradients that they start, and the update")
      ->check(CLI::Range(1, 1 << 20));
  c->add_option("--bucket-bytes", a.train.bucket_bytes,
                "with --ranks: as `tilewright train` has it")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  c->add_option("--emit", a.form,
                "graph: as imported; typed: cleaned up; fused: in groups; loops: kernels with "
                "blocks; scheduled; flat: one index\n"
                "per access, vectors; llvm: LLVM IR; asm: assembly;\n"
                "program: buffers, kernels and instructions of a run")
      ->check(CLI::IsMember(kForms))
      ->capture_default_str();
  c->add_option("--only", a.only,
                "one kernel, by name or number (k3); for the forms from loops to asm");
  c->add_option(
      "--explain", a.explain,
      "say why a kernel, by name or number, is scheduled as it is: what was decided, out of what, "
      "at what expected cost, and its schedule; all: of every kernel, and what was decided on the "
      "graph");
  add_pass_times(c, a.pass_times);
  c->footer(std::string(kShapeHelp) +
            "\nExample:\n  tilewright lower model.onnx --emit scheduled --only k0\n"
            "With TILEWRIGHT_DUMP=FOLDER every command that compiles writes the text after each "
            "pass there.");
}
void add_tune(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("tune",
                               "look for better schedules of a model's kernels, by measuring "
                               "them inside the model");
  add_model_options(
      c, a.model,
      "an .onnx file, or an .ir: the text of a graph or kernel, as `tilewright lower` prints it");
  c->add_option("--db", a.model.database,
                "the tuning database to add to; made where there is none. Give it to compile, run, "
                "bench or lower afterwards")
      ->required();
  c->get_option("MODEL")->required(false);
  c->add_option("--train", a.train.job,
                "instead of a model: a training job (see `tilewright train --help`), whose step is "
                "tuned on its first batch");
  c->add_option("--inputs", a.inputs, kInputs);
  c->add_option("--time", a.tune.time, "when to end: 90s, 4m, 1h")->capture_default_str();
  c->add_option("--trials", a.tune.trials, "end after so many candidates; 0: no bound");
  c->add_option("--gap", a.tune.gap,
                "leave a kernel alone once it is, with 95 % confidence, within so much of the best "
                "form near it: 5%");
  c->add_flag("--same-bits", a.tune.same_bits,
              "only what surely keeps every bit of the results: with --numerics exact");
  c->add_option("--seed", a.tune.seed, "of the search's random choices")->capture_default_str();
  c->add_flag("--json", a.tune.json, "the last line is one JSON object");
  c->add_option("--report", a.tune.report,
                "write a page on what was found to this file: gains, decisions, roofline (HTML)");
  c->footer(std::string(kShapeHelp) +
            "\ntune measures kernels for any extents at each size that is stated beside `any`:\n"
            "--shape batch=1 --shape batch=8 --shape any. Else it takes one set.\n"
            "It goes on from what was found before. Ctrl-C ends it and keeps what was found.\n"
            "Examples:\n  tilewright tune model.onnx --db tuned.jsonl --shape batch=1 --time 4m\n"
            "  tilewright compile model.onnx --db tuned.jsonl --shape batch=1 -o model.so\n"
            "  tilewright tune --train job.toml --db tuned.jsonl && tilewright train job.toml --db "
            "tuned.jsonl");
}
void add_train(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("train", "train an ONNX model, as a job file says");
  c->add_option("JOB", a.train.job, "a job file (TOML): model, data, loss, optimiser, outputs")
      ->required();
  add_machine(c, a.model);
  add_database(c, a.model);
  c->add_option("--threads", a.model.threads, "threads to run with; 0: one per available CPU")
      ->check(CLI::Range(0, 1024));
  add_numerics(c, a.model);
  add_ranks(c, a.train);
  add_scaling(c, a.train);
  auto* resume = c->add_flag("--resume", a.train.resume,
                             "go on from the job's newest checkpoint, and end if there is none; "
                             "without this option, begin then");
  c->add_flag("--fresh", a.train.fresh, "begin anew, and remove the job's checkpoints")
      ->excludes(resume);
  add_step_times(c, a.train);
  c->footer(
      "A job file; paths are relative to it:\n"
      "  model = \"model.onnx\"\n"
      "  parameters = [\"head.*\"]       # patterns of names of float initialisers to train; "
      "without it, all\n"
      "                                # that are parameters of the network, as a line at the "
      "begin says:\n"
      "                                # no buffers, constants, masks, tables (a full name takes "
      "these, too)\n"
      "  exclude = [\"*.embed.*\"]       # of those, what stays as it is\n"
      "  statistics = \"running\"        # BatchNormalization's stay; without it, of the batch\n"
      "  loss = \"cross_entropy\"        # or mean_squares, logistic, output\n"
      "  class_axis = 1                # of cross_entropy's logits, as in [batch, classes, height, "
      "width];\n"
      "                                # without it, the last\n"
      "  steps = 300\n"
      "  seed = 1                      # of the order of samples, and of numbers that are drawn\n"
      "  batch = 64\n"
      "  accumulate = 4                # parts that a batch goes through the model in: less "
      "memory\n"
      "  [data]\n"
      "  kind = \"arrays\"               # or tokens: bytes of a text; libsvm: sparse rows\n"
      "  file = \"data.npz\"\n"
      "  inputs = { x = \"images\" }     # the array of each input of the model\n"
      "  targets = \"labels\"\n"
      "  [optimizer]\n"
      "  name = \"adam\"                 # or sgd, adagrad, rmsprop, adamw, lamb\n"
      "  lr = 0.001\n"
      "  no_decay = [\"*.bias\"]        # parameters that `weight_decay` leaves alone\n"
      "  [schedule]                    # of lr; without it, constant\n"
      "  kind = \"cosine\"               # to `least`; or step: times `gamma` after `every` steps\n"
      "  warmup = 20\n"
      "  [evaluation]                  # of held-back samples, in inference mode; with the keys of "
      "[data] and\n"
      "  kind = \"arrays\"\n"
      "  file = \"held_back.npz\"\n"
      "  inputs = { x = \"images\" }\n"
      "  targets = \"labels\"\n"
      "  every = 100                   # steps\n"
      "  [checkpoint]                  # the same command goes on from the newest one\n"
      "  folder = \"checkpoints\"        # holds the last two\n"
      "  every = 100                   # steps\n"
      "  [distributed]                 # with several ranks: mpirun -n 2 tilewright train "
      "job.toml\n"
      "  exact = true                  # equal bits on any number of ranks, for a given "
      "`accumulate`\n"
      "  deadline = 60                 # seconds that ranks wait for one another\n"
      "  engine = \"openmpi\"           # or mpich, gloo; without it, that of the launcher\n"
      "  verify = 100                  # steps after which ranks compare their states\n"
      "  [output]\n"
      "  log = \"log.jsonl\"\n"
      "  model = \"trained.onnx\"        # in inference mode, whatever mode `model` was exported "
      "for\n"
      "  outputs = [\"logits\"]          # values of the model that are its outputs; without it, "
      "the same\n"
      "  report = \"curves.html\"        # of loss, accuracy, learning rate and speed\n"
      "A step that makes a gradient or a state infinite or NaN ends the run with its name, and is "
      "not kept.\n"
      "Ctrl-C ends it after the step under way, with a checkpoint.\n"
      "Example:\n  tilewright train job.toml --threads 2");
}
void add_db(CLI::App& app, Arguments& a) {
  auto* c = app.add_subcommand("db", "show a tuning database, and keep it in order");
  c->add_option("ACTION", a.action,
                "show: its records; check: lines that are damaged; merge: add the records of other "
                "files to the first; prune: drop what later records replaced, and damaged lines; "
                "export: print it as one JSON array")
      ->required()
      ->check(CLI::IsMember({"show", "check", "merge", "prune", "export"}));
  c->add_option("FILE", a.files, "a database as `tilewright tune` writes it; of merge, several")
      ->required();
  c->footer("Example:\n  tilewright db merge all.jsonl tuned_here.jsonl tuned_there.jsonl");
}
void add_others(CLI::App& app, Arguments& a) {
  CLI::App* info =
      app.add_subcommand("info", "inputs, outputs, symbols, size and contents of a model");
  info->add_option("MODEL", a.model.model, kEither)->required();
  info->add_flag("--schedules", a.schedules,
                 "of a compiled model: the steps that scheduled each kernel");
  app.add_subcommand("reproduce", "replay a pass that failed, from the file that its error names")
      ->add_option("FILE", a.file, "the file")
      ->required();
  app.add_subcommand(
      "ops", "print the operator reference as Markdown, and the ONNX operators that are read");
  CLI::App* devices =
      app.add_subcommand("devices", "print what this machine offers, and what was measured of it");
  devices->add_flag("--measure", a.measure,
                    "measure arithmetic, memory and calls, in a few seconds, and keep the figures; "
                    "best on an idle machine");
  CLI::Option* json = devices->add_flag(
      "--json", a.json,
      "print the description that schedules follow from, as a file for --machine; of "
      "this machine, or of what --cpu and --machine say");
  add_machine(devices, a.model);
  json->excludes("--measure");
  for (const char* other : {"--cpu", "--machine"}) devices->get_option(other)->needs(json);
}

int dispatch(const CLI::App& app, const Arguments& a) {
  auto is = [&](const char* name) { return app.got_subcommand(name); };
  if (is("compile")) return compile_command(a.model, a.train.job, a.outputs);
  if (is("run")) return run_command(a.model, a.inputs, a.outputs, a.trace);
  if (is("bench")) return bench_command(a.model, a.inputs, a.seconds, a.json, a.trace);
  if (is("lower"))
    return a.explain.empty()
               ? lower_command(a.model, a.train, a.form, a.only)
               : lower_command(a.model, a.train, "explain", a.explain == "all" ? "" : a.explain);
  if (is("tune")) return tune_command(a.model, a.train.job, a.inputs, a.tune);
  if (is("train")) return train_command(a.model, a.train);
  if (is("launch")) {
    const auto launch = with_command(app, a.launch);
    return launch ? launch_command(*launch) : report_usage(launch.error().message);
  }
  if (is("db")) return db_command(a.action, a.files);
  if (is("info")) return info_command(a.model.model, a.schedules);
  if (is("reproduce")) return reproduce_command(a.file);
  if (is("ops")) return ops_command();
  return a.json ? describe_command(a.model) : devices_command(a.measure);
}

}  // namespace

static int run(int argc, char** argv) {
  CLI::App app{"Compiles ONNX models to native code, and runs them."};
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.require_subcommand(1);
  app.footer(
      "`tilewright COMMAND --help` explains a command.\n"
      "Exit status: 0 done, 1 error, 2 wrong usage, 3 the model needs something that is not "
      "supported.");
  Arguments arguments;
  add_compile(app, arguments);
  add_run(app, arguments);
  add_bench(app, arguments);
  add_lower(app, arguments);
  add_tune(app, arguments);
  add_train(app, arguments);
  add_launch(app, arguments.launch);
  add_db(app, arguments);
  add_others(app, arguments);
  std::string names;
  bool known = argc < 2 || argv[1][0] == '-';
  for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; })) {
    known |= argc > 1 && c->get_name() == argv[1];
    names += (names.empty() ? "" : ", ") + c->get_name();
  }
  if (!known)
    return report_usage("there is no command '" + std::string(argv[1]) + "'; the commands are " +
                        names);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) { return app.exit(e) == 0 ? kOk : kUsage; }
  try {
    const int status = dispatch(app, arguments);
    if (arguments.pass_times) print_pass_times();
    return status;
  } catch (const std::bad_alloc&) {
    return report(tilewright::limit_error("out of memory"));
  } catch (const std::exception& e) { return report(tilewright::internal_error(e.what())); }
}

int main(int argc, char** argv) {
  set_up_standard_streams();
  return finish_standard_output(run(argc, argv));
}
