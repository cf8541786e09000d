// The format of compiled models: round trips, and files that are damaged, foreign or hostile. What
// is loaded gets executed, so that no code may run before the file has been found to be a model.
#include "runtime/executable.h"

#include <random>

#include "runtime/device_cpu.h"
#include "tests/runtime/model_copy.h"

namespace tilewright::testing {
namespace {

// Together they use every part of the format.
std::vector<Executable> all_models() {
  return {add_relu_model(), add_relu_two_variants(), compact_model(),
          branch_model(),   fibonacci_model(),       gather_model()};
}

TEST(Executable, SurvivesSerialisation) {
  for (const Executable& e : all_models()) {
    const std::vector<uint8_t> bytes = serialize_executable(e);
    auto back = deserialize_executable(bytes.data(), bytes.size());
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(serialize_executable(*back), bytes);
    EXPECT_EQ(back->model_name, e.model_name);
    EXPECT_EQ(back->variants[0].buffers.size(), e.variants[0].buffers.size());
    EXPECT_EQ(back->variants[0].loops.size(), e.variants[0].loops.size());
  }
}

// What was read back runs like the original once its kernels are attached.
TEST(Executable, RunsAfterSerialisation) {
  const Executable original = fibonacci_model();
  const std::vector<uint8_t> bytes = serialize_executable(original);
  Executable e = std::move(*deserialize_executable(bytes.data(), bytes.size()));
  e.variants[0].kernels[0].function = original.variants[0].kernels[0].function;
  auto session =
      std::move(*Session::create(std::make_shared<Executable>(std::move(e)), {.threads = 1}));
  std::vector<Tensor> in{integers({}, {0}), integers({}, {1}), integers({}, {10}),
                         integers({}, {1000})},
      out;
  ASSERT_TRUE(session->run(in, out).ok());
  EXPECT_EQ(*out[0].data_as<int64_t>(), 55);
}

TEST(Executable, EveryTruncationIsAnError) {
  for (const Executable& e : all_models()) {
    const std::vector<uint8_t> bytes = serialize_executable(e);
    for (size_t n = 0; n < bytes.size(); ++n) {
      const std::vector<uint8_t> part(bytes.begin(),
                                      bytes.begin() + n);  // its own allocation: overruns show
      ASSERT_FALSE(deserialize_executable(part.data(), n).ok()) << n;
    }
    std::vector<uint8_t> longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(deserialize_executable(longer.data(), longer.size()).ok());
  }
}

// Damage is refused or harmless: whatever is accepted obeys the rules again when written and read.
TEST(Executable, DamageNeverCrashes) {
  std::mt19937 random(3);
  int refused = 0;
  for (const Executable& e : all_models()) {
    const std::vector<uint8_t> bytes = serialize_executable(e);
    for (int round = 0; round < 3000; ++round) {
      std::vector<uint8_t> damaged = bytes;
      for (uint32_t k = 0; k <= random() % 3; ++k)
        damaged[random() % damaged.size()] = static_cast<uint8_t>(random() % 4 ? random() : 0xff);
      auto result = deserialize_executable(damaged.data(), damaged.size());
      refused += !result.ok();
      if (!result.ok()) continue;
      EXPECT_EQ(serialize_executable(*result), damaged);
    }
  }
  EXPECT_GT(refused, 3000);
}

// Said by the version, before anything that may have changed is read.
TEST(Executable, RefusesAnotherVersion) {
  std::vector<uint8_t> bytes = serialize_executable(branch_model());
  bytes[4] = 77;
  EXPECT_EQ(deserialize_executable(bytes.data(), bytes.size()).error().message,
            std::string("the model has format version 77, this runtime reads version ") +
                std::to_string(kExecutableAbi));
}

TEST(LoadExecutable, LoadsAndRunsASharedObject) {
  auto e = load_executable(TEST_MODEL);
  ASSERT_TRUE(e.ok()) << e.error().to_string();
  EXPECT_EQ((*e)->model_name, "scale");
  auto session = std::move(*Session::create(*e, {.threads = 2}));
  std::vector<Tensor> in{floats({3}, {1, 2, 3})}, out;
  ASSERT_TRUE(session->run(in, out).ok());
  EXPECT_EQ(values<float>(out[0]), (std::vector<float>{2.5, 5, 7.5}));
}

// A missing file, a folder, text, a library, and a model of another version.
TEST(LoadExecutable, RefusesForeignFiles) {
  EXPECT_EQ(load_error("/nonexistent/model.so"), "no such file");
  EXPECT_EQ(load_error(::testing::TempDir()), "is a folder, not a file");
  EXPECT_EQ(load_error(TILEWRIGHT_SOURCE_DIR "/CMakeLists.txt"), "not a shared object");
  EXPECT_EQ(load_error(OTHER_LIBRARY), "not a tilewright model: it does not export tilewright_abi");
  EXPECT_EQ(load_error(OTHER_ABI_MODEL),
            "compiled for runtime ABI 999, this runtime has ABI " + std::to_string(kExecutableAbi));
}

// The system would run a library's constructors before we could look at what it exports.
TEST(LoadExecutable, RunsNoCodeOfForeignLibraries) {
  unsetenv("TILEWRIGHT_CONSTRUCTOR_RAN");
  EXPECT_EQ(load_error(ACTIVE_LIBRARY),
            "not a tilewright model: it does not export tilewright_abi");
  const std::string error = load_error(ACTIVE_MODEL);
  EXPECT_TRUE(error.starts_with("not a tilewright model: it loads or runs something")) << error;
  EXPECT_EQ(getenv("TILEWRIGHT_CONSTRUCTOR_RAN"), nullptr);
}

// An error instead of an invalid instruction in the middle of a run.
TEST(LoadExecutable, RefusesACpuThatLacksAFeature) {
  EXPECT_EQ(load_error(OTHER_CPU_MODEL),
            "this CPU (" + cpu_info().model + ") lacks avx9999, which the model was compiled for");
}

TEST(Cpu, KnowsItself) {
  const CpuInfo& cpu = cpu_info();
  EXPECT_FALSE(cpu.model.empty());
  EXPECT_GE(cpu.available_cpus, 1);
  EXPECT_TRUE(cpu.vector_bytes == 16 || cpu.vector_bytes == 32 || cpu.vector_bytes == 64);
#if defined(__x86_64__)
  EXPECT_TRUE(cpu_has("sse2"));
  EXPECT_EQ(cpu_has("avx2"), static_cast<bool>(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(cpu_has("fma"), static_cast<bool>(__builtin_cpu_supports("fma")));
  EXPECT_EQ(cpu_has("avx512f"), static_cast<bool>(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(cpu_has("avx512vnni"), static_cast<bool>(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(cpu_has("avx512bf16"), static_cast<bool>(__builtin_cpu_supports("avx512bf16")));
  EXPECT_EQ(cpu_has("avx512vbmi2"), static_cast<bool>(__builtin_cpu_supports("avx512vbmi2")));
  EXPECT_EQ(cpu_has("gfni"), static_cast<bool>(__builtin_cpu_supports("gfni")));
#endif
  EXPECT_FALSE(check_cpu_features({"sse2", "no-such-feature"}).ok());
  if (!cpu_has("amx-int8")) {
    const Status tiles = check_cpu_features({"amx-int8", "amx-tile", "sse2"});
    ASSERT_FALSE(tiles.ok());
    EXPECT_NE(tiles.error().message.find("lacks amx-int8, amx-tile,"), std::string::npos)
        << tiles.error().message;
  }
  EXPECT_TRUE(check_cpu_features({}).ok());
}

}  // namespace
}  // namespace tilewright::testing
