// Models of a corpus with a few changes, imported, lowered through all passes and, each so many, compiled and run with
// operands between pages that may not be touched. A model ends in a result or in an error of the user's kind: a crash,
// a hang, an internal error or an access outside ends the process with the number of the model, which runs it alone.
#include <cstdio>
#include <ctime>

#include "tests/fuzz/command_line.h"
#include "tests/fuzz/guarded_run.h"
#include "tests/fuzz/model_mutator.h"
#include "tests/fuzz/tried.h"

namespace tilewright {
namespace {

constexpr unsigned kMostSeconds = 60;  // for one model; sanitizers take most of it

// What the command is told. A run compiles for this machine, which takes most of the time.
struct Options {
  std::vector<std::string> folders;
  uint64_t first = 0, count = 1000, run_every = 0, seconds = 0;
};

// Model number k is a function of k and of the files in the folders alone.
int fuzz(const Options& o) {
  const std::vector<std::filesystem::path> corpus = small_models(o.folders);
  if (corpus.empty()) {
    std::fprintf(stderr, "no .onnx files of less than a megabyte in the folders\n");
    return 2;
  }
  CompileOptions options;
  options.compile_threads = 1;
  uint64_t read = 0, right = 0, ran = 0, k = o.first;
  const auto start = time(nullptr);
  for (; k < o.first + o.count &&
         (o.seconds == 0 || time(nullptr) - start < static_cast<long>(o.seconds));
       ++k) {
    std::mt19937_64 random(k);
    const auto& path = corpus[random() % corpus.size()];
    const std::string number = "number " + std::to_string(k) + ": " + path.string();
    begin_try(number, kMostSeconds);
    auto model = open_model(path);
    if (!model.ok()) continue;
    ++read;
    const std::string what = mutate(**model, random);
    begin_try(number + ": " + what, kMostSeconds);
    auto program = compile_program(**model, {}, options);
    if (!program.ok()) {
      judge(program.error());
      continue;
    }
    ++right;
    if (o.run_every == 0 || k % o.run_every != 0) continue;
    run_guarded(**model, options, random);
    ++ran;
  }
  begin_try("nothing", 0);
  std::printf("%llu models of %zu files: %llu accepted after the changes, %llu run, 0 findings\n",
              static_cast<unsigned long long>(read), corpus.size(),
              static_cast<unsigned long long>(right), static_cast<unsigned long long>(ran));
  return read == 0;
}

int run_command(int argc, char** argv) {
  Options o;
  CommandLine line{.numbers = {{"--first", &o.first},
                               {"--count", &o.count},
                               {"--run-every", &o.run_every},
                               {"--seconds", &o.seconds}}};
  const bool known = read_options(argc, argv, line);
  o.folders = line.words;
  if (!known || o.folders.empty()) {
    std::fprintf(
        stderr,
        "usage: mutated_models [--first N] [--count N] [--run-every N] [--seconds S] FOLDER...\n");
    return 2;
  }
  return fuzz(o);
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::run_command(argc, argv); }
