// What CPUID says of this CPU, and what of it the system lets programs use. A feature is usable
// only when the CPU has it and the system saves its registers on a switch of threads: OSXSAVE, then
// the bits of XCR0 that XGETBV reads (Intel SDM volume 1, chapter 13). AMX needs a request to Linux
// besides.
#include "runtime/device_cpu.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tilewright {
namespace {

#if defined(__x86_64__)

// Register state that the system must save before a feature is usable (bits of XCR0).
constexpr uint64_t kAnyState = 0, kAvxState = 0x6, kAvx512State = 0xe6, kAmxState = 0x60000;
enum Register { kEax, kEbx, kEcx, kEdx };

// Bit `bit` of a register of CPUID(leaf, subleaf), and the state it needs.
struct FeatureBit {
  const char* name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  uint64_t state;
};

// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E. Names as in LLVM's X86.td.
constexpr FeatureBit kFeatures[] = {
    {"cx8", 1, 0, kEdx, 8, kAnyState},
    {"cmov", 1, 0, kEdx, 15, kAnyState},
    {"mmx", 1, 0, kEdx, 23, kAnyState},
    {"fxsr", 1, 0, kEdx, 24, kAnyState},
    {"sse", 1, 0, kEdx, 25, kAnyState},
    {"sse2", 1, 0, kEdx, 26, kAnyState},
    {"sse3", 1, 0, kEcx, 0, kAnyState},
    {"pclmul", 1, 0, kEcx, 1, kAnyState},
    {"ssse3", 1, 0, kEcx, 9, kAnyState},
    {"fma", 1, 0, kEcx, 12, kAvxState},
    {"cx16", 1, 0, kEcx, 13, kAnyState},
    {"sse4.1", 1, 0, kEcx, 19, kAnyState},
    {"sse4.2", 1, 0, kEcx, 20, kAnyState},
    {"crc32", 1, 0, kEcx, 20, kAnyState},
    {"movbe", 1, 0, kEcx, 22, kAnyState},
    {"popcnt", 1, 0, kEcx, 23, kAnyState},
    {"aes", 1, 0, kEcx, 25, kAnyState},
    {"xsave", 1, 0, kEcx, 27, kAnyState},
    {"avx", 1, 0, kEcx, 28, kAvxState},
    {"f16c", 1, 0, kEcx, 29, kAvxState},
    {"rdrnd", 1, 0, kEcx, 30, kAnyState},
    {"fsgsbase", 7, 0, kEbx, 0, kAnyState},
    {"bmi", 7, 0, kEbx, 3, kAnyState},
    {"avx2", 7, 0, kEbx, 5, kAvxState},
    {"bmi2", 7, 0, kEbx, 8, kAnyState},
    {"invpcid", 7, 0, kEbx, 10, kAnyState},
    {"avx512f", 7, 0, kEbx, 16, kAvx512State},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512State},
    {"rdseed", 7, 0, kEbx, 18, kAnyState},
    {"adx", 7, 0, kEbx, 19, kAnyState},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512State},
    {"clflushopt", 7, 0, kEbx, 23, kAnyState},
    {"clwb", 7, 0, kEbx, 24, kAnyState},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512State},
    {"sha", 7, 0, kEbx, 29, kAnyState},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512State},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512State},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512State},
    {"pku", 7, 0, kEcx, 4, kAnyState},
    {"waitpkg", 7, 0, kEcx, 5, kAnyState},
    {"avx512vbmi2", 7, 0, kEcx, 6, kAvx512State},
    {"shstk", 7, 0, kEcx, 7, kAnyState},
    {"gfni", 7, 0, kEcx, 8, kAnyState},
    {"vaes", 7, 0, kEcx, 9, kAvxState},
    {"vpclmulqdq", 7, 0, kEcx, 10, kAvxState},
    {"avx512vnni", 7, 0, kEcx, 11, kAvx512State},
    {"avx512bitalg", 7, 0, kEcx, 12, kAvx512State},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512State},
    {"rdpid", 7, 0, kEcx, 22, kAnyState},
    {"cldemote", 7, 0, kEcx, 25, kAnyState},
    {"movdiri", 7, 0, kEcx, 27, kAnyState},
    {"movdir64b", 7, 0, kEcx, 28, kAnyState},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kAvx512State},
    {"serialize", 7, 0, kEdx, 14, kAnyState},
    {"amx-bf16", 7, 0, kEdx, 22, kAmxState},
    {"avx512fp16", 7, 0, kEdx, 23, kAvx512State},
    {"amx-tile", 7, 0, kEdx, 24, kAmxState},
    {"amx-int8", 7, 0, kEdx, 25, kAmxState},
    {"avxvnni", 7, 1, kEax, 4, kAvxState},
    {"avx512bf16", 7, 1, kEax, 5, kAvx512State},
    {"amx-fp16", 7, 1, kEax, 21, kAmxState},
    {"avxifma", 7, 1, kEax, 23, kAvxState},
    {"avxvnniint8", 7, 1, kEdx, 4, kAvxState},
    {"avxneconvert", 7, 1, kEdx, 5, kAvxState},
    {"prefetchi", 7, 1, kEdx, 14, kAnyState},
    {"xsaveopt", 13, 1, kEax, 0, kAnyState},
    {"xsavec", 13, 1, kEax, 1, kAnyState},
    {"xsaves", 13, 1, kEax, 3, kAnyState},
    {"sahf", 0x80000001, 0, kEcx, 0, kAnyState},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kAnyState},
    {"sse4a", 0x80000001, 0, kEcx, 6, kAnyState},
    {"prfchw", 0x80000001, 0, kEcx, 8, kAnyState},
    {"mwaitx", 0x80000001, 0, kEcx, 29, kAnyState},
    {"64bit", 0x80000001, 0, kEdx, 29, kAnyState},
    {"clzero", 0x80000008, 0, kEbx, 0, kAnyState},
    {"rdpru", 0x80000008, 0, kEbx, 4, kAnyState},
    {"wbnoinvd", 0x80000008, 0, kEbx, 9, kAnyState},
};

std::array<uint32_t, 4> cpuid(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> r{};
  if (!__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3])) return {};
  return r;
}

uint64_t saved_state() {
  constexpr uint32_t kOsxsave = 1u << 27;
  if (!(cpuid(1, 0)[kEcx] & kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Linux lends tile registers only to processes that ask for them; the permission is for all
// threads.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2), bit of XCR0
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

std::vector<std::string> detect_features() {
  const uint64_t state = saved_state();
  std::vector<std::string> names;
  for (const FeatureBit& f : kFeatures)
    if ((cpuid(f.leaf, f.subleaf)[f.reg] >> f.bit & 1) && (state & f.state) == f.state)
      names.push_back(f.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string detect_model() {
  if (cpuid(0x80000000, 0)[kEax] < 0x80000004) return "x86-64";
  char text[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const auto r = cpuid(0x80000002 + i, 0);
    std::memcpy(text + 16 * i, r.data(), 16);
  }
  std::string model = text;
  model.erase(model.find_last_not_of(' ') + 1);
  model.erase(0, std::min(model.find_first_not_of(' '), model.size()));
  return model;
}

#else

bool may_use_tiles() { return false; }
std::vector<std::string> detect_features() { return {}; }
std::string detect_model() { return "unknown"; }

#endif

std::string read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "32K" or "1024K" or "96M" -> bytes; 0 when it is something else.
int64_t parse_size(const std::string& text) {
  int64_t n = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && n < (1 << 30); ++i)
    n = n * 10 + (text[i] - '0');
  if (i < text.size() && text[i] == 'K') return n << 10;
  if (i < text.size() && text[i] == 'M') return n << 20;
  return n;
}

// Linux's view of the caches that CPU 0 reaches (Documentation/ABI: cache/index*/); sizes stay 0
// elsewhere.
void detect_caches(CpuInfo& cpu) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = read_word(folder + "level"), type = read_word(folder + "type");
    if (level.empty()) return;
    if (type == "Instruction") continue;
    const int64_t bytes = parse_size(read_word(folder + "size"));
    if (level == "1") cpu.l1_data_bytes = bytes;
    if (level == "2") cpu.l2_bytes = bytes;
    if (level == "3") cpu.l3_bytes = bytes;
  }
}

bool contains(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

CpuInfo detect_cpu() {
  CpuInfo cpu;
  cpu.model = detect_model();
  cpu.features = detect_features();
  cpu.available_cpus = available_cpus();
  if (contains(cpu.features, "avx")) cpu.vector_bytes = 32;
  if (contains(cpu.features, "avx512f")) cpu.vector_bytes = 64;
  detect_caches(cpu);
  return cpu;
}

}  // namespace

const CpuInfo& cpu_info() {
  static const CpuInfo cpu = detect_cpu();
  return cpu;
}

bool cpu_has(const std::string& feature) { return contains(cpu_info().features, feature); }

Status check_cpu_features(const std::vector<std::string>& required) {
  std::string missing;
  bool tiles = false;
  for (const std::string& f : required) {
    if (!cpu_has(f)) missing += (missing.empty() ? "" : ", ") + f;
    tiles |= f.starts_with("amx-");
  }
  if (missing.empty() && tiles && !may_use_tiles())
    return unsupported(
        "the system does not let this process use the CPU's tile registers (AMX), "
        "which the model was compiled for");
  if (missing.empty()) return {};
  return unsupported("this CPU (" + cpu_info().model + ") lacks " + missing +
                     ", which the model was compiled for");
}

}  // namespace tilewright
