// The file of what was measured: what comes back from it, and which files are refused. No test here
// depends on how fast the machine is.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "codegen/measure/machine_cache.h"
#include "codegen/measure/measure_machine.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright::measure {
namespace {

namespace fs = std::filesystem;

CpuInfo some_cpu() {
  CpuInfo cpu;
  cpu.model = "Some CPU \xff";
  cpu.features = {"avx", "avx2"};
  cpu.available_cpus = 4;
  return cpu;
}

// Every term with a value of its own.
ir::MachineSpeed some_speed() {
  ir::MachineSpeed speed;
  double value = 1.25;
  for (const Term& t : terms()) {
    speed.*t.value = value += 1;
    if (t.of_all) speed.*t.of_all = value += 1;
  }
  speed.measured = true;
  return speed;
}
ir::MachineSpeed other_speed() {
  ir::MachineSpeed speed = some_speed();
  speed.f32_gflops = 7;
  return speed;
}
bool same(const ir::MachineSpeed& a, const ir::MachineSpeed& b) {
  bool equal = a.measured == b.measured;
  for (const Term& t : terms())
    equal &= a.*t.value == b.*t.value && (!t.of_all || a.*t.of_all == b.*t.of_all);
  return equal;
}
void expect_positive(const ir::MachineSpeed& speed) {
  for (const Term& t : terms()) {
    EXPECT_GT(speed.*t.value, 0) << t.name;
    EXPECT_GT(speed.*(t.of_all ? t.of_all : t.value), 0) << t.name;
  }
}

class MachineCache : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }
  void write(const std::string& text) {
    fs::create_directories(fs::path(file()).parent_path());
    write_file(file(), text);
  }
  std::string file() const { return cache_file(cpu_); }
  // The message when the file is refused as invalid.
  std::string refusal() {
    auto speed = read_speed(file(), cpu_);
    EXPECT_FALSE(speed.ok());
    if (speed.ok()) return {};
    EXPECT_EQ(speed.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(speed.error().location, file());
    return speed.error().message;
  }
  // The file after `change` was made to its JSON.
  template <typename Change>
  void write_changed(Change change) {
    ASSERT_TRUE(write_speed(file(), some_speed(), cpu_).ok());
    auto json = nlohmann::json::parse(read_file(file()));
    change(json);
    write(json.dump());
  }

  ScratchFolder folder_;
  CpuInfo cpu_ = some_cpu();
};

// Files are replaced as a whole: written beside and renamed.
TEST_F(MachineCache, GivesBackWhatWasWritten) {
  ASSERT_TRUE(write_speed(file(), some_speed(), cpu_).ok());
  auto speed = read_speed(file(), cpu_);
  ASSERT_TRUE(speed.ok()) << speed.error().to_string();
  EXPECT_TRUE(same(*speed, some_speed()));
  ASSERT_TRUE(write_speed(file(), other_speed(), cpu_).ok());
  EXPECT_TRUE(same(*read_speed(file(), cpu_), other_speed()));
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(file()).parent_path()), {}), 1)
      << "a temporary file is left";
}

TEST_F(MachineCache, SaysWhenThereIsNone) {
  auto speed = read_speed(file(), cpu_);
  ASSERT_FALSE(speed.ok());
  EXPECT_EQ(speed.error().kind, ErrorKind::kIo);
}

// Homes are shared between machines (NFS, containers). Relative paths in the variable are to be
// ignored, as the XDG base directory specification says.
TEST_F(MachineCache, HasAFileForEachMachine) {
  CpuInfo model = cpu_, features = cpu_, cpus = cpu_;
  model.model = "Another CPU";
  features.features.emplace_back("avx512f");
  cpus.available_cpus = 2;
  for (const CpuInfo& c : {model, features, cpus}) EXPECT_NE(cache_file(c), file());
  EXPECT_EQ(fs::path(file()).parent_path(), (folder_ / "cache/tilewright"));
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(fs::path(file()).parent_path(), "/somewhere/.cache/tilewright");
}

// Names of files can collide or be copied: the machine stands inside as well.
TEST_F(MachineCache, RefusesAnotherMachineOrVersion) {
  CpuInfo other = cpu_;
  other.model = "Another CPU";
  ASSERT_TRUE(write_speed(file(), some_speed(), other).ok());
  EXPECT_EQ(refusal(), "of another machine");
  write_changed([](auto& json) { json["version"] = 999; });
  EXPECT_EQ(refusal(), "not of version 4");
  write_changed([](auto& json) { json["version"] = "1"; });
  EXPECT_EQ(refusal(), "not of version 4");
}

TEST_F(MachineCache, RefusesDamagedFiles) {
  ASSERT_TRUE(write_speed(file(), some_speed(), cpu_).ok());
  const std::string good = read_file(file());
  for (const std::string& text : {std::string(), std::string("\0\0\0", 3), std::string("[]"),
                                  std::string("{}"), good.substr(0, good.size() / 2), good + "}",
                                  std::string(60000, '['), std::string(100000, ' ') + good}) {
    write(text);
    EXPECT_NE(refusal(), "") << text.substr(0, 40);
  }
  fs::remove(file());
  fs::create_directory(file());
  EXPECT_NE(refusal(), "");
  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_NE(refusal(), "");  // and does not wait for a writer
}

// Estimates divide by these numbers.
TEST_F(MachineCache, RefusesDamagedTerms) {
  const std::vector<nlohmann::json> wrong{
      0, -1, 1e30, nullptr, "8", true, nlohmann::json::array({1})};
  for (const auto& value : wrong) {
    write_changed([&](auto& json) { json["measured"]["memory_read_all"] = value; });
    EXPECT_NE(refusal().find("memory_read_all"), std::string::npos) << value;
  }
  write_changed([](auto& json) { json["measured"].erase("fma_ports"); });
  EXPECT_EQ(refusal(), "no number 'fma_ports'");
  write_changed([](auto& json) { json["measured"] = 1; });
  EXPECT_EQ(refusal(), "no object 'measured'");
}

// Compiling must not cost the time of a measurement nor leave files behind; without a file there
// are usual values.
TEST_F(MachineCache, FillsADescriptionWithoutMeasuring) {
  ir::MachineDescription machine;
  expect_positive(machine.speed);
  EXPECT_FALSE(fill_speed(machine));
  EXPECT_FALSE(machine.speed.measured);
  EXPECT_TRUE(same(machine.speed, ir::MachineSpeed{}));
  EXPECT_FALSE(fs::exists((folder_ / "cache")));
  ASSERT_TRUE(write_speed(cache_file(), some_speed()).ok());
  EXPECT_TRUE(fill_speed(machine));
  EXPECT_TRUE(same(machine.speed, some_speed()));
}

TEST_F(MachineCache, MeasuresWhatIsMissingOrDamaged) {
  cpu_ = cpu_info();
  std::string note;
  EXPECT_TRUE(same(cached_speed(false, &note, some_speed), some_speed()));
  EXPECT_TRUE(same(cached_speed(false, &note, other_speed), some_speed())) << "measured twice";
  EXPECT_TRUE(same(cached_speed(true, &note, other_speed), other_speed()));
  EXPECT_EQ(note, "");
  write("damaged");
  EXPECT_TRUE(same(cached_speed(false, &note, some_speed), some_speed()));
  EXPECT_NE(note.find("measured again"), std::string::npos) << note;
  EXPECT_TRUE(same(*read_speed(file()), some_speed()));
}

// A home that cannot be written to costs time, not the run.
TEST_F(MachineCache, MeasuresWhereNothingCanBeKept) {
  write_file(folder_ / "cache", "not a folder");
  std::string note;
  EXPECT_TRUE(same(cached_speed(false, &note, some_speed), some_speed()));
  EXPECT_NE(note.find("not kept"), std::string::npos) << note;
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(cache_file(), "");
  EXPECT_TRUE(same(cached_speed(false, nullptr, some_speed), some_speed()));
}

TEST(MeasureMachine, GivesPositiveTerms) {
  const ir::MachineSpeed speed = measure_machine();
  EXPECT_TRUE(speed.measured);
  expect_positive(speed);
}

TEST(Peak, GrowsWithThreadsUpToThatOfAll) {
  ir::MachineSpeed speed;
  speed.f32_gflops = 100, speed.f32_gflops_all = 350;
  speed.memory_read = 20, speed.memory_read_all = 30;
  EXPECT_EQ(peak_of(speed, 1).gflops, 100);
  EXPECT_EQ(peak_of(speed, 2).memory_read, 30);
  EXPECT_EQ(peak_of(speed, 3).gflops, 300);
  EXPECT_EQ(peak_of(speed, 64).gflops, 350);
  const Peak peak = measure_peak(2);
  EXPECT_GT(peak.gflops, 0);
  EXPECT_GT(peak.memory_read, 0);
}

}  // namespace
}  // namespace tilewright::measure
