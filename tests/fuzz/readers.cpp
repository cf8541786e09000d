#include "tests/fuzz/readers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "autotune/database/record.h"
#include "codegen/measure/machine_file.h"
#include "frontends/compiler/compiler.h"
#include "frontends/tensor_files/npy.h"
#include "frontends/tensor_files/npy_file.h"
#include "frontends/tensor_files/npz.h"
#include "frontends/tensor_files/tensor_pb.h"
#include "frontends/train/checkpoint.h"
#include "frontends/train/job.h"
#include "ir/module_text/parser_graph.h"
#include "ir/module_text/parser_program.h"
#include "ir/module_text/printer_graph.h"
#include "ir/module_text/printer_program.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_graph.h"
#include "ir/verify_loops.h"
#include "ir/verify_program.h"
#include "runtime/executable.h"
#include "tests/fuzz/tried.h"

namespace tilewright {
namespace {

using Span = std::span<const uint8_t>;

// Whether there is something to go on with.
template <typename T>
bool judged(const Result<T>& r) {
  if (r.ok()) return true;
  judge(r.error());
  return false;
}
// Between the bytes of a file and the text that some readers take.
std::string text_of(Span bytes) { return {bytes.begin(), bytes.end()}; }
Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// A regular file in memory, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(Span bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || (!bytes.empty() && write(fd_, bytes.data(), bytes.size()) < 0)) std::abort();
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Of a file that a writer of ours makes in a folder of its own.
template <typename Write>
Bytes written(Write write) {
  std::string folder = std::filesystem::temp_directory_path() / "tilewright-seeds-XXXXXX";
  if (!mkdtemp(folder.data())) std::abort();
  const std::filesystem::path path = std::filesystem::path(folder) / "seed";
  if (!write(path).ok()) std::abort();
  std::ifstream file(path, std::ios::binary);
  Bytes bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  return bytes;
}

// A tensor whose bytes differ, so that pieces at the wrong place show.
HostTensor small_tensor() {
  HostTensor t(DType::kFloat32, {2, 3});
  for (size_t k = 0; k < t.bytes.size(); ++k) t.bytes[k] = static_cast<uint8_t>(k);
  return t;
}

// --- models ------------------------------------------------------------------------------------

std::vector<Bytes> model_files() {
  std::vector<Bytes> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/tests/fuzz/corpus")) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.push_back(Bytes{std::istreambuf_iterator<char>(file), {}});
  }
  std::sort(all.begin(), all.end());
  return all;
}
void read_onnx(Span bytes) {
  auto model = parse_model(bytes, nullptr, {});
  if (!judged(model)) return;
  volatile uint8_t sum = 0;  // reads every byte of every view
  for (const auto& [name, tensor] : (*model)->graph.initializers)
    for (size_t i = 0; i < tensor.bytes; ++i) sum = sum + tensor.data[i];
  (void)judged(build_graph(**model, {}));
}

// Of the first few models of the corpus.
template <typename Make>
std::vector<Bytes> of_models(Make make) {
  std::vector<Bytes> all;
  for (const Bytes& file : model_files()) {
    auto model = parse_model(file, nullptr, {});
    if (model.ok()) make(**model, all);
    if (all.size() > 12) break;
  }
  return all;
}

// --- texts of the compiler -----------------------------------------------------------------------

void read_graph(Span bytes) {
  const auto graph = ir::parse_graph(text_of(bytes));
  if (graph.ok()) (void)ir::verify(*graph).ok();
}
std::vector<Bytes> graph_texts() {
  return of_models([](const OnnxModel& model, std::vector<Bytes>& all) {
    if (auto graph = build_graph(model, {}); graph.ok()) all.push_back(bytes_of(to_text(*graph)));
  });
}
std::vector<ir::Program> programs_of(const OnnxModel& model) {
  auto programs = compile_programs(model, {}, {});
  return programs.ok() ? std::move(*programs) : std::vector<ir::Program>{};
}
void read_program(Span bytes) {
  const auto program = ir::parse_program(text_of(bytes));
  if (program.ok()) (void)ir::verify(*program).ok();
}
std::vector<Bytes> program_texts() {
  return of_models([](const OnnxModel& model, std::vector<Bytes>& all) {
    for (const ir::Program& p : programs_of(model)) all.push_back(bytes_of(to_text(p)));
  });
}
void read_kernel(Span bytes) {
  const auto kernel = ir::parse_kernel(text_of(bytes));
  if (kernel.ok())
    for (const ir::Stage stage : {ir::Stage::kBlocks, ir::Stage::kFlat})
      (void)ir::verify(*kernel, stage).ok();
}
std::vector<Bytes> kernel_texts() {
  return of_models([](const OnnxModel& model, std::vector<Bytes>& all) {
    for (const ir::Program& p : programs_of(model))
      for (const ir::Kernel& k : p.kernels) all.push_back(bytes_of(to_text(k)));
  });
}

// --- compiled models, databases, machines -------------------------------------------------------

void read_executable(Span bytes) {
  (void)judged(deserialize_executable(bytes.data(), bytes.size()));
}
std::vector<Bytes> executables() {
  return of_models([](const OnnxModel& model, std::vector<Bytes>& all) {
    if (auto e = compile_in_memory(model, {}, {}); e.ok()) all.push_back(serialize_executable(**e));
  });
}
void read_database(Span bytes) { (void)judged(autotune::parse_line(text_of(bytes))); }
std::vector<Bytes> database_lines() {
  autotune::Record r;
  r.task = std::string(32, 'a');
  r.device = std::string(32, 'b');
  r.usual_us = 4;
  r.tuned_us = 3;
  r.low = 0.7;
  r.high = 0.8;
  return {bytes_of(autotune::to_line(r))};
}
const ir::MachineDescription& usual_machine() {
  static const ir::MachineDescription machine = [] {
    CompileOptions options;
    options.cpu = "x86-64-v3";
    return lower_options(options).value().machine;
  }();
  return machine;
}
void read_machine_text(Span bytes) {
  (void)judged(measure::parse_machine(
      text_of(bytes), "x86-64-v3",
      [](const std::string&) -> Result<ir::MachineDescription> { return usual_machine(); }));
}
std::vector<Bytes> machine_texts() { return {bytes_of(measure::to_json(usual_machine()))}; }

// --- tensors, checkpoints, jobs -----------------------------------------------------------------

void read_npz_file(Span bytes) { (void)judged(read_npz(MemoryFile(bytes).path())); }
std::vector<Bytes> npz_files() {
  return {written([](const auto& path) {
    return write_npz(path, {{"a", small_tensor()}, {"b", HostTensor(DType::kInt64, {0, 4})}});
  })};
}
void read_npy_file(Span bytes) { (void)judged(read_npy(MemoryFile(bytes).path())); }
std::vector<Bytes> npy_files() {
  const HostTensor t = small_tensor();
  Bytes bytes = bytes_of(format_npy_header(t.dtype, t.shape).value());
  bytes.insert(bytes.end(), t.bytes.begin(), t.bytes.end());
  return {bytes};
}
void read_tensor_pb(Span bytes) {
  for (const PbKind kind : {PbKind::kTensor, PbKind::kSequence, PbKind::kOptional})
    (void)judged(read_pb(MemoryFile(bytes).path(), kind));
}
std::vector<Bytes> tensor_pbs() {
  return {written([](const auto& path) {
    return write_pb(path, "x", HostValue(small_tensor()), PbKind::kTensor);
  })};
}
void read_checkpoint_file(Span bytes) {
  (void)judged(train::read_checkpoint(MemoryFile(bytes).path()));
}
std::vector<Bytes> checkpoint_files() {
  return {written([](const auto& path) {
    return train::write_checkpoint(
        path, {3, "job", {{"parameters/w", HostTensor(DType::kFloat32, {2, 3})}}});
  })};
}
void read_job_file(Span bytes) { (void)judged(train::read_job(MemoryFile(bytes).path())); }
std::vector<Bytes> job_files() {
  return {bytes_of(R"(model = "model.onnx"
loss = "cross_entropy"
steps = 400
batch = 50
parameters = ["w*", "b"]
[data]
kind = "arrays"
file = "train.npz"
inputs = { x = "images" }
targets = "labels"
[optimizer]
name = "adamw"
lr = 0.003
[schedule]
kind = "cosine"
warmup = 40
[checkpoint]
folder = "checkpoints"
every = 100
[output]
log = "log.jsonl"
)")};
}

constexpr Reader kReaders[] = {
    {"onnx", read_onnx, model_files},
    {"graph", read_graph, graph_texts},
    {"program", read_program, program_texts},
    {"kernel", read_kernel, kernel_texts},
    {"executable", read_executable, executables},
    {"database", read_database, database_lines},
    {"machine", read_machine_text, machine_texts},
    {"npz", read_npz_file, npz_files},
    {"npy", read_npy_file, npy_files},
    {"tensor_pb", read_tensor_pb, tensor_pbs},
    {"checkpoint", read_checkpoint_file, checkpoint_files},
    {"job", read_job_file, job_files},
};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

}  // namespace tilewright
