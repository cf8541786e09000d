#include "codegen/measure/machine_cache.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "codegen/cache/file_cache.h"
#include "runtime/core/fnv.h"
#include "runtime/core/open_file.h"
#include "runtime/core/parse_json.h"
#include "runtime/core/write_file.h"

namespace tilewright::measure {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kVersion = 4;  // of the terms and of how they are measured
constexpr uint64_t kMostBytes = 1 << 16;

// All that a measurement depends on, as text.
std::string identity(const CpuInfo& cpu) {
  std::string text = cpu.model + "; " + std::to_string(cpu.available_cpus) + " CPUs; caches " +
                     std::to_string(cpu.l1_data_bytes) + " " + std::to_string(cpu.l2_bytes) + " " +
                     std::to_string(cpu.l3_bytes) + ";";
  for (const std::string& f : cpu.features) text += " " + f;
  for (char& c : text)  // a model's name is whatever bytes the CPU gives
    if (c < ' ' || c > '~') c = '?';
  return text;
}

Status read_term(const Json& terms, const std::string& name, double& value) {
  const auto found = terms.find(name);
  if (found == terms.end() || !found->is_number()) return invalid("no number '" + name + "'");
  const double v = found->get<double>();
  if (!(v > 0) || v > kLargestTerm) return invalid("'" + name + "' is " + found->dump());
  value = v;
  return {};
}

// Every figure must be there, positive and within reason: a wrong one would spoil every decision
// that reads it.
Result<ir::MachineSpeed> parse(const std::string& text, const CpuInfo& cpu) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return invalid("not a JSON object");
  const auto version = json.find("version"), machine = json.find("machine"),
             measured = json.find("measured");
  if (version == json.end() || *version != kVersion)
    return invalid("not of version " + std::to_string(kVersion));
  if (machine == json.end() || *machine != identity(cpu)) return invalid("of another machine");
  if (measured == json.end() || !measured->is_object()) return invalid("no object 'measured'");
  ir::MachineSpeed speed;
  for (const Term& t : terms()) {
    TW_RETURN_IF_ERROR(read_term(*measured, t.name, speed.*t.value));
    if (t.of_all)
      TW_RETURN_IF_ERROR(read_term(*measured, std::string(t.name) + kAll, speed.*t.of_all));
  }
  speed.measured = true;
  return speed;
}

std::string print(const ir::MachineSpeed& speed, const CpuInfo& cpu) {
  Json measured;
  for (const Term& t : terms()) {
    measured[t.name] = speed.*t.value;
    if (t.of_all) measured[std::string(t.name) + kAll] = speed.*t.of_all;
  }
  return Json{{"version", kVersion}, {"machine", identity(cpu)}, {"measured", measured}}.dump(1) +
         "\n";
}

}  // namespace

std::span<const Term> terms() {
  using S = ir::MachineSpeed;
  static constexpr auto kTerms = std::to_array<Term>({
      {"clock_ghz", "GHz", "clock of a busy core", &S::clock_ghz},
      {"fma_latency_cycles", "cycles", "latency of an f32 multiply-add", &S::fma_latency_cycles},
      {"fma_ports", "a cycle", "f32 multiply-adds of whole vectors", &S::fma_ports},
      {"f32_gflops", "GFLOP/s", "f32 multiply-adds", &S::f32_gflops, &S::f32_gflops_all},
      {"int8_gops", "GOP/s", "int8 dot products", &S::int8_gops, &S::int8_gops_all},
      {"l1_read", "GB/s", "read from L1", &S::l1_read, &S::l1_read_all},
      {"l2_read", "GB/s", "read from L2", &S::l2_read, &S::l2_read_all},
      {"l3_read", "GB/s", "read from L3", &S::l3_read, &S::l3_read_all},
      {"memory_read", "GB/s", "read from memory", &S::memory_read, &S::memory_read_all},
      {"memory_write", "GB/s", "written to memory", &S::memory_write, &S::memory_write_all},
      {"memory_copy", "GB/s", "copied, read and written", &S::memory_copy, &S::memory_copy_all},
      {"handed_over", "GB/s", "read of what another core wrote", &S::handed_over},
      {"fork_join_us", "us", "fork and join of all workers", &S::fork_join_us},
      {"serial_call_us", "us", "the same call on one worker", &S::serial_call_us},
  });
  return kTerms;
}

std::string cache_file(const CpuInfo& cpu) {
  const std::string folder = cache::user_folder();
  if (folder.empty()) return {};
  char name[48];
  // Only names the file, which repeats what it is of.
  std::snprintf(name, sizeof name, "machine_%016llx.json",
                static_cast<unsigned long long>(fnv1a(identity(cpu))));
  return folder + "/" + name;
}

static Result<std::string> read_opened(const Result<InputFile>& opened, const std::string& file) {
  Result<std::string> text =
      opened.ok() ? read_whole(*opened, file, kMostBytes) : Result<std::string>(opened.error());
  if (!text.ok() && is_taken(file)) text.error().kind = ErrorKind::kInvalid;
  return text;
}

Result<std::string> read_figures(const std::string& file) {
  return read_opened(open_to_read(file), file);
}

Result<ir::MachineSpeed> read_speed(const std::string& file, const CpuInfo& cpu) {
  TW_ASSIGN(const std::string text, read_opened(open_trusted(file), file));
  Result<ir::MachineSpeed> speed = parse(text, cpu);
  if (!speed.ok()) speed.error().location = file;
  return speed;
}

Status write_speed(const std::string& file, const ir::MachineSpeed& speed, const CpuInfo& cpu) {
  if (file.empty()) return io_error("neither XDG_CACHE_HOME nor HOME names a folder");
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  return write_file(file, print(speed, cpu), FileAccess::kPrivate);
}

bool fill_speed(ir::MachineDescription& machine) {
  const Result<ir::MachineSpeed> speed = read_speed(cache_file());
  if (speed.ok()) machine.speed = *speed;
  return speed.ok();
}

ir::MachineSpeed cached_speed(bool again, std::string* note, ir::MachineSpeed (*measure)()) {
  const std::string file = cache_file();
  const auto say = [&](const std::string& line) {
    if (note) *note += (note->empty() ? "" : "\n") + line;
  };
  if (!again) {
    const Result<ir::MachineSpeed> speed = read_speed(file);
    if (speed.ok()) return *speed;
    if (is_taken(file)) say(speed.error().to_string() + "; measured again");
  }
  const ir::MachineSpeed speed = measure();
  if (const Status s = write_speed(file, speed); !s.ok())
    say(s.error().to_string() + "; the figures are not kept");
  return speed;
}

}  // namespace tilewright::measure
