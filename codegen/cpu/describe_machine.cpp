// CPU features: the host's by detection, others by LLVM's tables.
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "codegen/cpu/compile_kernels.h"

namespace tilewright::cpu {

namespace {

// The instruction sets that generated code may use; all else is left off, so that a file names what
// it really needs.
constexpr std::array<const char*, 27> kUsed{
    "amx-bf16", "amx-int8", "amx-tile", "avx",        "avx2",       "avx512bf16", "avx512bw",
    "avx512cd", "avx512dq", "avx512f",  "avx512fp16", "avx512vbmi", "avx512vl",   "avx512vnni",
    "avxvnni",  "bmi",      "bmi2",     "f16c",       "fma",        "lzcnt",      "movbe",
    "popcnt",   "sse3",     "sse4.1",   "sse4.2",     "ssse3",      "cx16"};

bool is_of_tiles(std::string_view feature) { return feature.starts_with("amx-"); }
// Linux lends tile registers to processes that ask for them, as the runtime does once more for
// files.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

int64_t cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string base =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::ifstream level_file(base + "level"), type_file(base + "type"), size_file(base + "size");
    int found = 0;
    std::string type, size;
    if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size)) continue;
    if (found != level || type == "Instruction") continue;
    int64_t n = std::atoll(size.c_str());
    if (size.back() == 'K') n <<= 10;
    if (size.back() == 'M') n <<= 20;
    return n;
  }
  return 0;
}

// Vectors of 64 bytes, 32 registers and masked accesses come together with the AVX-512 subsets F,
// VL, BW and DQ (those of x86-64-v4); without all four the machine is taken for one of AVX.
void derive(ir::MachineDescription& m) {
  auto has = [&](const char* f) {
    return std::find(m.features.begin(), m.features.end(), f) != m.features.end();
  };
  const bool wide = has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
  m.vector_bytes = wide ? 64 : has("avx") ? 32 : 16;
  m.vector_registers = wide ? 32 : 16;
  m.has_masks = wide;
  m.has_fma = has("fma");
}

std::vector<std::string> features_of(const std::string& cpu) {
  std::vector<std::string> features;
  if (cpu == "native") {
    const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    for (const char* f : kUsed)
      if (host.lookup(f) && (!is_of_tiles(f) || may_use_tiles())) features.push_back(f);
    return features;
  }
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, cpu, ""));
  for (const char* f : kUsed)
    if (info->checkFeatures(std::string("+") + f)) features.push_back(f);
  return features;
}

}  // namespace

Status check_machine(const ir::MachineDescription& m) {
  for (const std::string& f : m.features)
    if (std::find(kUsed.begin(), kUsed.end(), f) == kUsed.end())
      return invalid("'features' has '" + f + "', which generated code does not use");
  ir::MachineDescription most = m;
  derive(most);
  const auto refuse = [](const std::string& field, const char* needed) -> Status {
    return invalid("'" + field + "' needs the features " + needed);
  };
  const char* wide = "avx512f, avx512vl, avx512bw and avx512dq";
  if (m.vector_bytes > most.vector_bytes)
    return refuse("vector_bytes", m.vector_bytes == 64 ? wide : "avx");
  if (m.vector_registers > most.vector_registers) return refuse("vector_registers", wide);
  if (m.has_masks && !most.has_masks) return refuse("has_masks", wide);
  if (m.has_fma && !most.has_fma) return invalid("'has_fma' needs the feature fma");
  return {};
}

Result<ir::MachineDescription> describe_machine(const std::string& cpu) {
  llvm::InitializeNativeTarget();
  ir::MachineDescription m;
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  if (cpu == "native") {
    m.cpu = llvm::sys::getHostCPUName().str();
  } else {
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    TW_CHECK(target);
    std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, "", ""));
    if (!info->isCPUStringValid(cpu))
      return invalid("unknown CPU '" + cpu +
                     "' (examples: native, x86-64-v3, x86-64-v4, cascadelake, znver4)");
    m.cpu = cpu;
  }
  m.features = features_of(cpu);
  derive(m);
  if (cpu == "native") {
    if (int64_t b = cache_bytes(1)) m.l1_bytes = b;
    if (int64_t b = cache_bytes(2)) m.l2_bytes = b;
    if (int64_t b = cache_bytes(3)) m.l3_bytes = b;
  }
  return m;
}

}  // namespace tilewright::cpu
