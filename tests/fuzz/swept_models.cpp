// Compiles models of a corpus with each single change, and runs them with operands between pages that may not be
// touched. Each ends in a result or in an error of the user's kind. With --save those with a result are kept with what
// was given and what came, for compare_swept.py, which holds them against ONNX Runtime.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "frontends/onnx/read_model.h"
#include "frontends/tensor_files/npz.h"
#include "tests/frontends/model_builder.h"
#include "tests/fuzz/command_line.h"
#include "tests/fuzz/guarded_run.h"
#include "tests/fuzz/model_changes.h"
#include "tests/fuzz/tried.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kMostSeconds = 60;   // for one model; sanitizers take most of it
constexpr size_t kMostSaved = 1 << 16;  // of a result

// What the command is told. Numbers are those of changes, counted over all files.
struct Options {
  std::vector<std::string> folders;
  std::string save;
  uint64_t first = 0, count = ~uint64_t{0}, every = 1;
};

// Goes over all changes of all files in order, and tries those of the options.
class Sweep {
 public:
  explicit Sweep(Options options) : o_(std::move(options)) { compile_.compile_threads = 1; }

  // Change number k is the same one for ever, as long as the files are.
  int run() {
    const std::vector<fs::path> files = small_models(o_.folders);
    for (const fs::path& file : files) {
      onnx_format::ModelProto model;
      std::ifstream in(file, std::ios::binary);
      if (!model.ParseFromIstream(&in)) continue;
      for (const ModelChange& change : single_changes(model)) {
        const uint64_t k = number_++;
        if (k < o_.first || k - o_.first >= o_.count || (k - o_.first) % o_.every != 0) continue;
        begin_try(
            "--first " + std::to_string(k) + " --count 1: " + file.string() + ": " + change.what,
            kMostSeconds);
        onnx_format::ModelProto changed = model;
        change.apply(changed);
        sweep(changed, k, file.stem().string() + ": " + change.what);
      }
    }
    begin_try("nothing", 0);
    std::printf("%zu files, %llu changes: %llu tried, %llu with a result, 0 findings\n",
                files.size(), static_cast<unsigned long long>(number_),
                static_cast<unsigned long long>(tried_), static_cast<unsigned long long>(ran_));
    return tried_ == 0;
  }

 private:
  // A model may be refused when it is read, when it is compiled, or at the run.
  void sweep(const onnx_format::ModelProto& changed, uint64_t k, const std::string& what) {
    ++tried_;
    auto model = parse(changed);
    if (!model.ok()) return judge(model.error());
    std::mt19937_64 random(k);
    const GuardedRun run = run_guarded(**model, compile_, random);
    if (run.outputs.empty()) return;
    ++ran_;
    if (!o_.save.empty()) save(changed, run, k, what);
  }
  // Writes K.onnx, K.in.npz, K.out.npz, and K.txt with the change in words, but no large results.
  void save(const onnx_format::ModelProto& model, const GuardedRun& run, uint64_t k,
            const std::string& what) const {
    for (const auto& [name, t] : run.outputs)
      if (t.bytes.size() > kMostSaved) return;
    const std::string path = o_.save + "/" + std::to_string(k);
    // NumPy lacks bf16.
    if (!run.inputs.empty() && !write_npz(path + ".in.npz", run.inputs).ok()) return;
    if (!write_npz(path + ".out.npz", run.outputs).ok()) return;
    std::ofstream(path + ".onnx", std::ios::binary) << model.SerializeAsString();
    std::ofstream(path + ".txt") << what << "\n";
  }

  Options o_;
  CompileOptions compile_;
  uint64_t number_ = 0, tried_ = 0, ran_ = 0;
};

int run_command(int argc, char** argv) {
  Options o;
  CommandLine line{.numbers = {{"--first", &o.first}, {"--count", &o.count}, {"--every", &o.every}},
                   .texts = {{"--save", &o.save}}};
  const bool known = read_options(argc, argv, line);
  o.folders = line.words;
  if (!known || o.folders.empty() || o.every == 0) {
    std::fprintf(stderr,
                 "usage: swept_models [--first N] [--count N] [--every N] [--save FOLDER] "
                 "FOLDER...\n");
    return 2;
  }
  return Sweep(std::move(o)).run();
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::run_command(argc, argv); }
