// Models of a corpus with a few changes, imported, lowered through all passes and, each so many, compiled and run with
// operands between pages that may not be touched. A model ends in a result or in an error of the user's kind: a crash,
// a hang, an internal error or an access outside ends the process with the number of the model, which runs it alone.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/fuzz/model_mutator.h"
#include "tests/ops/graph_oracle.h"
#include "tests/ops/guarded_memory.h"

namespace tilewright {
namespace {

constexpr unsigned kMostSeconds = 60;         // for one model; sanitizers take most of it
constexpr int64_t kMostElements = 1 << 20;    // of an operand of a run
constexpr int64_t kMostRunBytes = 256 << 20;  // of buffers whose sizes the run decides

// What is being done, for the report of a signal.
char place[4096] = "nothing yet";
void report(int signal) {
  const char* why = signal == SIGALRM ? "\nhangs: " : "\ncrashes: ";
  (void)!write(2, why, std::strlen(why));
  (void)!write(2, place, std::strlen(place));
  (void)!write(2, "\n", 1);
  std::signal(signal, SIG_DFL);
  if (signal == SIGALRM) _exit(1);
  raise(signal);
}

// Again before each model, as the compiler has handlers of its own meanwhile. A stack that is used up needs another.
void report_signals() {
  static uint8_t stack[1 << 16];
  const stack_t other{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action{};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    sigaction(s, &action, nullptr);
}

struct Options {
  std::vector<std::string> folders;
  uint64_t first = 0, count = 1000, run_every = 0, seconds = 0;
};

// An error is the end that a wrong model is to have, but one that users can act on.
// Fails the process: an internal error is a fault of ours, whatever the model.
void judge(const Error& e) {
  if (e.kind != ErrorKind::kInternal && !e.message.empty()) return;
  std::fprintf(stderr, "fails: %s\n%s\n", place, e.to_string().c_str());
  std::exit(1);
}

// Operands of small extents for each symbol, at the end of their pages.
bool fill_inputs(const Session& session, std::mt19937_64& random,
                 std::vector<GuardedMemory>& memory, std::vector<Tensor>& inputs) {
  std::map<std::string, int64_t> symbols;
  for (const ValueInfo& info : session.inputs()) {
    Shape shape;
    for (size_t d = 0; d < info.extents.size(); ++d)
      shape.push_back(info.extents[d] >= 0
                          ? info.extents[d]
                          : symbols.emplace(info.dim_names[d], static_cast<int64_t>(random() % 6))
                                .first->second);
    const auto count = element_count(shape);
    if (!count || *count > kMostElements) return false;
    const HostTensor values = is_integer(info.dtype) && random() % 3 == 0
                                  ? random_bytes(info.dtype, shape, random)
                                  : random_tensor(info.dtype, shape, random);
    memory.emplace_back(values.bytes.size(), random() % 2 ? Place::kAtEnd : Place::kAlignedAtEnd);
    if (!values.bytes.empty())
      std::memcpy(memory.back().data(), values.bytes.data(), values.bytes.size());
    inputs.push_back(Tensor::borrow(info.dtype, shape, memory.back().data()));
  }
  return true;
}

// Temporaries lie between guard pages, too, either before or behind.
void run(const OnnxModel& model, const CompileOptions& options, std::mt19937_64& random) {
  auto executable = compile_in_memory(model, {}, options);
  if (!executable.ok()) return judge(executable.error());
  SessionOptions session_options;
  session_options.threads = 1;
  session_options.dynamic_limit = kMostRunBytes;
  session_options.guard = random() % 2 ? Guard::kBehind : Guard::kBefore;
  auto session = Session::create(*executable, session_options);
  if (!session.ok()) return judge(session.error());
  std::vector<GuardedMemory> memory;
  std::vector<Tensor> inputs, outputs;
  if (!fill_inputs(**session, random, memory, inputs)) return;
  if (const Status s = (*session)->run(inputs, outputs); !s.ok()) judge(s.error());
}

// Model number k is a function of k and of the files in the folders alone.
int fuzz(const Options& o) {
  std::vector<std::filesystem::path> corpus;
  for (const std::string& folder : o.folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".onnx" && entry.file_size() < 1 << 20)
        corpus.push_back(entry.path());
  std::sort(corpus.begin(), corpus.end());
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
    report_signals();
    std::mt19937_64 random(k);
    const auto& path = corpus[random() % corpus.size()];
    std::snprintf(place, sizeof place, "number %llu: %s", static_cast<unsigned long long>(k),
                  path.c_str());
    alarm(kMostSeconds);
    auto model = open_model(path);
    if (!model.ok()) continue;
    ++read;
    const std::string what = mutate(**model, random);
    std::snprintf(place, sizeof place, "number %llu: %s: %s", static_cast<unsigned long long>(k),
                  path.c_str(), what.c_str());
    auto program = compile_program(**model, {}, options);
    if (!program.ok()) {
      judge(program.error());
      continue;
    }
    ++right;
    if (o.run_every == 0 || k % o.run_every != 0) continue;
    run(**model, options, random);
    ++ran;
  }
  alarm(0);
  std::printf("%llu models of %zu files: %llu accepted after the changes, %llu run, 0 findings\n",
              static_cast<unsigned long long>(read), corpus.size(),
              static_cast<unsigned long long>(right), static_cast<unsigned long long>(ran));
  return read == 0;
}

int run_command(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (a == "--first")
      o.first = number();
    else if (a == "--count")
      o.count = number();
    else if (a == "--run-every")
      o.run_every = number();
    else if (a == "--seconds")
      o.seconds = number();
    else if (a.rfind("--", 0) == 0)
      o.folders.clear(), i = argc;
    else
      o.folders.push_back(a);
  }
  if (o.folders.empty()) {
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
