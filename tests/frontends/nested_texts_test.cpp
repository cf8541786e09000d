// Texts of unknown origin that are JSON or TOML, or nearly: whatever they are, they end in values or in an error.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "autotune/database/record.h"
#include "codegen/measure/machine_file.h"
#include "frontends/train/job.h"
#include "frontends/train/step_log.h"
#include "runtime/core/parse_json.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

std::string repeat(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

// Anew: file systems write a file that is cut and filled again to the disk at once.
void put(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::remove(path);
  std::ofstream(path) << text;
}

const int kDepths[] = {1, kMostJsonDepth, kMostJsonDepth + 1, 1000, 300000};

TEST(NestedTexts, JsonIsReadToItsDepth) {
  for (const int depth : kDepths)
    for (const auto& [open, close] : {std::pair("[", "]"), {"{\"a\":", "}"}, {"[\"]\",", "]"}}) {
      const std::string text = repeat(open, depth) + "1" + repeat(close, depth);
      const auto json = parse_json<nlohmann::ordered_json>(text);
      EXPECT_EQ(json.is_discarded(), depth > kMostJsonDepth) << depth << open;
      if (!json.is_discarded()) { EXPECT_EQ(json.dump(), text); }
    }
  EXPECT_TRUE(parse_json<nlohmann::json>(repeat("[]", 1000)).is_discarded());
  EXPECT_EQ(parse_json<nlohmann::json>("\"" + repeat("[", 1000) + "\"").get<std::string>(),
            repeat("[", 1000));
}

TEST(NestedTexts, EachReaderRefusesThem) {
  const ScratchFolder folder;
  for (const int depth : {1000, 300000}) {
    const std::string nested = repeat("[", depth) + repeat("]", depth);
    EXPECT_FALSE(autotune::parse_line("{\"checksum\":\"0\",\"a\":" + nested + "}").ok());
    put(folder / "machine.json", "{\"cpu\": " + repeat("[", 30000) + repeat("]", 30000) + "}");
    const auto machine = measure::read_machine(
        folder / "machine.json", "native",
        [](const std::string&) { return Result<ir::MachineDescription>(invalid("")); });
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.error().message, "nested deeper than 64");
    put(folder / "log.jsonl", "{\"step\":0,\"loss\":" + nested + "}\n");
    const auto log = train::StepLog::open(folder / "log.jsonl", 5, true);
    ASSERT_TRUE(log.ok());
    EXPECT_EQ((*log)->steps_kept(), 0);
    for (const std::string& text :
         {"a = " + nested, "a = " + repeat("{a=", depth) + "1" + repeat("}", depth),
          "a" + repeat(".a", depth) + " = 1", "[a" + repeat(".a", depth) + "]",
          "x = {a = \"\"\"x\"y\"\"\", b" + repeat(".b", depth) + " = 1}",
          "x = {a = \"\"\"\\\"\"x\"\"\"\"\", b" + repeat(".b", depth) + " = 1}",
          "x = {a = ''''x\"'''', \"b\"" + repeat(".b", depth) + " = 1}",
          "[[a" + repeat(".a", depth) + "]]"}) {
      put(folder / "job.toml", text);
      EXPECT_FALSE(train::read_job(folder / "job.toml").ok());
    }
  }
}

// A job file with some bytes put in, taken out or exchanged, most of them of TOML's own signs.
TEST(NestedTexts, JobsThatAreNearlyRight) {
  const ScratchFolder folder;
  const std::string good =
      "model = \"m.onnx\"\nsteps = 3\nbatch = 2\nloss = 'output'\n[data]\nkind = \"arrays\"\n"
      "file = \"d.npz\"\ninputs = { x = \"y\" }\n[optimizer]\nname = \"adam\"\nbetas = [0.9, "
      "0.99]\n"
      "[[more]]\ntime = 1979-05-27T07:32:00Z\n[output]\nlog = \"l\" # a log\n";
  const std::string signs = "[]{}=.,'\"\\#\n\t +-*_:0xe\x01\x7f\xc3\xff";
  std::mt19937 random(1);
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (size_t n = 1 + random() % 3; n > 0; --n) {
      const size_t at = random() % text.size(), removed = random() % 3;
      text.replace(at, removed, std::string(random() % 3, signs[random() % signs.size()]));
    }
    put(folder / "job.toml", text);
    const auto job = train::read_job(folder / "job.toml");
    if (job.ok()) continue;
    ++refused;
    EXPECT_EQ(job.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_TRUE(job.error().location.starts_with((folder / "job.toml").string())) << text;
  }
  EXPECT_GT(refused, 500U);
  put(folder / "job.toml", "model = \"m.onnx\"\n  [*utput]\n");
  EXPECT_EQ(train::read_job(folder / "job.toml").error().to_string(),
            (folder / "job.toml").string() + ":2:4: is no TOML");
}

}  // namespace
}  // namespace tilewright
