// Descriptions of machines as people write them: what comes back, and what is wrong with a file.
#include "codegen/measure/machine_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "codegen/measure/machine_cache.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright::measure {
namespace {

// The CPUs there are: "native", and "small", whose every field is another.
Result<ir::MachineDescription> describe(const std::string& cpu) {
  ir::MachineDescription m;
  if (cpu == "small") {
    m = {.cpu = "small", .features = {"avx"}, .vector_bytes = 16, .has_fma = false};
    m.l1_bytes = 16 << 10, m.l2_bytes = 512 << 10, m.l3_bytes = 4 << 20;
    double value = 0.1;
    for (const Term& t : terms()) {
      m.speed.*t.value = value += 1.0 / 3;
      if (t.of_all) m.speed.*t.of_all = value += 1.0 / 3;
    }
    m.speed.measured = true;
  } else if (cpu != "native") {
    return invalid("unknown CPU '" + cpu + "'");
  }
  return m;
}

class MachineFile : public testing::Test {
 protected:
  Result<ir::MachineDescription> read(const std::string& text, const std::string& cpu = "native") {
    write_file(folder_ / "machine.json", text);
    return read_machine(folder_ / "machine.json", cpu, describe);
  }
  // The message when the file is refused.
  std::string refusal(const std::string& text, const std::string& cpu = "native") {
    const auto machine = read(text, cpu);
    EXPECT_FALSE(machine.ok()) << text;
    if (machine.ok()) return {};
    EXPECT_EQ(machine.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(machine.error().location, folder_ / "machine.json");
    return machine.error().message;
  }
  ScratchFolder folder_;
};

TEST_F(MachineFile, GivesBackWhatWasWritten) {
  for (const char* cpu : {"native", "small"}) {
    const auto machine = describe(cpu);
    auto text = nlohmann::json::parse(to_json(*machine));
    if (machine->cpu != cpu) text["cpu"] = cpu;
    const auto back = read(text.dump());
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(to_json(*back), to_json(*machine)) << cpu;
    EXPECT_EQ(back->speed.measured, machine->speed.measured);
  }
}

TEST_F(MachineFile, LiesOverTheCpuThatIsNamed) {
  const auto native = read(R"({"l2_bytes": 65536, "has_masks": true})");
  ASSERT_TRUE(native.ok()) << native.error().to_string();
  EXPECT_EQ(native->l2_bytes, 65536);
  EXPECT_TRUE(native->has_masks);
  EXPECT_EQ(native->l3_bytes, describe("native")->l3_bytes);
  EXPECT_FALSE(native->speed.given);
  for (const char* cpu : {"native", "small"}) {
    const auto small = read(R"({"cpu": "small"})", cpu);
    ASSERT_TRUE(small.ok()) << small.error().to_string();
    EXPECT_EQ(to_json(*small), to_json(*describe("small")));
  }
}

TEST_F(MachineFile, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "not JSON: wrong at byte 1"},
      {"{\"l2_bytes\": 65536", "not JSON: wrong at byte 19"},
      {"[]", "not a JSON object"},
      {R"({"l4_bytes": 1})",
       "'l4_bytes' is no field of a machine; there are cpu, features, has_fma, has_masks, "
       "l1_bytes, "
       "l2_bytes, l3_bytes, speed, vector_bytes, vector_registers"},
      {R"({"l2_bytes": 65536, "l2_bytes": 65536})", "'l2_bytes' is there twice"},
      {R"({"l2_bytes": "64K"})", "'l2_bytes' is \"64K\", expected a number of bytes"},
      {R"({"l2_bytes": 65536.5})", "'l2_bytes' is 65536.5, expected a number of bytes"},
      {R"({"l1_bytes": 100})",
       "'l1_bytes' is 100, expected a number of bytes from 4096 to 1099511627776"},
      {R"({"l2_bytes": 8192})",
       "'l2_bytes' is 8192, expected a number of bytes from 32768 (the level before) to "
       "1099511627776"},
      {R"({"l3_bytes": 18446744073709551615})",
       "'l3_bytes' is 9223372036854775807, expected a number of bytes from 1048576 (the level "
       "before) to 1099511627776"},
      {R"({"vector_bytes": 48})", "'vector_bytes' is 48, expected 16, 32 or 64"},
      {R"({"vector_registers": true})", "'vector_registers' is true, expected 16 or 32"},
      {R"({"has_fma": 1})", "'has_fma' is 1, expected true or false"},
      {R"({"cpu": 5})", "'cpu' is 5, expected LLVM's name of a CPU"},
      {R"({"features": "avx"})",
       "'features' is \"avx\", expected LLVM's names of CPU features, each once"},
      {R"({"features": ["avx", "avx"]})",
       "'features' is \"avx\", expected LLVM's names of CPU features, each once"},
      {R"({"speed": 3})", "'speed' is 3, expected an object of figures"},
      {R"({"speed": {"clock_ghz": 4}})",
       "'speed' has no 'fma_latency_cycles': a file gives all figures or none"},
      {R"({"speed": {"clock_ghz": 0}})",
       "'speed.clock_ghz' is 0, expected a number above 0, of at most 1e9"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal(text), message) << text;
  EXPECT_EQ(refusal(R"({"cpu": "small"})", "znver4"),
            "'cpu' is \"small\", expected 'znver4', as the command line says");
  EXPECT_EQ(refusal(R"({"cpu": "fast"})"), "unknown CPU 'fast'");
  auto whole = nlohmann::json::parse(to_json(*describe("small")));
  whole["speed"]["warp"] = 9;
  EXPECT_TRUE(refusal(whole.dump()).starts_with("'warp' is no figure of a speed; there are "));
  // Long values are cut short, and bytes that are no text do no harm.
  EXPECT_LT(refusal("{\"cpu\": [\"" + std::string(9000, 'x') + "\"]}").size(), 200u);
  EXPECT_NE(refusal("{\"cpu\": [\"\xff\"]}"), "");
  EXPECT_NE(refusal(std::string(60000, '[')), "");
  EXPECT_EQ(refusal(std::string(1 << 17, ' ')), "is larger than 65536 bytes");
  const auto none = read_machine(folder_ / "none.json", "native", describe);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace tilewright::measure
