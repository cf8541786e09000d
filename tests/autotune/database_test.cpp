// The tuning database: what is written is read, damage costs the lines that have it, and several
// processes may write at once.
#include "autotune/database/database.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace tilewright::autotune {
namespace {

class Databases : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  Database opened() {
    auto db = Database::open(path_);
    EXPECT_TRUE(db.ok()) << db.error().to_string();
    return db.ok() ? std::move(*db) : Database::open("/nowhere").value();
  }
  std::string text() {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_ = testing::TempDir() + "tuning_" + std::to_string(getpid()) + ".jsonl";
};

Record record(const std::string& task, int64_t rows = 4) {
  return {.task = task,
          .device = "here, 1 thread, standard",
          .answers = {{"conv.rows", rows}},
          .schedule = {{"split", {"conv.i0", "a", "b"}, {rows}}, {"vectorize", {"b"}, {}}},
          .usual_us = 20.25,
          .tuned_us = 16,
          .low = 0.78,
          .high = 0.81};
}
constexpr const char* kHere = "here, 1 thread, standard";

TEST_F(Databases, NoFileIsAnEmptyOne) {
  EXPECT_TRUE(opened().records().empty());
  EXPECT_EQ(opened().find("conv-1", kHere), nullptr);
}
TEST_F(Databases, WhatIsWrittenIsRead) {
  Database db = opened();
  ASSERT_TRUE(db.append(record("conv-1")).ok());
  ASSERT_TRUE(db.append(record("conv-2")).ok());
  ASSERT_NE(db.find("conv-1", kHere), nullptr);
  const Database again = opened();
  EXPECT_TRUE(again.damaged().empty()) << again.damaged()[0];
  ASSERT_EQ(again.records().size(), 2u);
  const Record &r = *again.find("conv-1", kHere), expected = record("conv-1");
  EXPECT_EQ(r.answers, expected.answers);
  EXPECT_EQ(r.schedule, expected.schedule);
  EXPECT_EQ(r.usual_us, 20.25);
  EXPECT_EQ(r.high, 0.81);
  EXPECT_EQ(again.find("conv-1", "elsewhere"), nullptr);
  EXPECT_EQ(again.find("conv-3", kHere), nullptr);
}
TEST_F(Databases, TheNewestRecordCounts) {
  Database db = opened();
  for (const int64_t rows : {4, 6, 5}) ASSERT_TRUE(db.append(record("conv-1", rows)).ok());
  EXPECT_EQ(db.find("conv-1", kHere)->answers.at("conv.rows"), 5);
  EXPECT_EQ(opened().find("conv-1", kHere)->answers.at("conv.rows"), 5);
}
TEST_F(Databases, DamageCostsALine) {
  Database db = opened();
  for (const char* task : {"a-1", "b-2", "c-3"}) ASSERT_TRUE(db.append(record(task)).ok());
  const std::string whole = text();
  // Each byte of the second line, one at a time.
  const size_t first = whole.find('\n') + 1, second = whole.find('\n', first);
  for (size_t at = first; at < second; ++at) {
    std::string hurt = whole;
    hurt[at] = static_cast<char>(hurt[at] ^ 1);
    if (hurt[at] == '\n') continue;  // two lines, neither of them whole
    write(hurt);
    const Database read = opened();
    EXPECT_EQ(read.records().size(), 2u) << at;
    ASSERT_EQ(read.damaged().size(), 1u) << at;
    EXPECT_TRUE(read.damaged()[0].starts_with("line 2: ")) << read.damaged()[0];
  }
}
TEST_F(Databases, ALineThatWasCutOffKeepsToItself) {
  Database db = opened();
  for (const char* task : {"a-1", "b-2"}) ASSERT_TRUE(db.append(record(task)).ok());
  const std::string whole = text();
  for (const size_t left : {whole.size() - 1, whole.size() - 2, whole.size() - 100}) {
    write(whole.substr(0, left));
    Database cut = opened();
    ASSERT_TRUE(cut.append(record("c-3")).ok());
    const Database read = opened();
    EXPECT_NE(read.find("a-1", kHere), nullptr);
    EXPECT_NE(read.find("c-3", kHere), nullptr);
    EXPECT_EQ(read.records().size() + read.damaged().size(), 3u);
  }
}
TEST_F(Databases, WhatIsNoRecordIsNamed) {
  write("{}\n\nnot json\n[1, 2]\n{\"checksum\": 3}\n{\"checksum\": \"0\"}\n\xff\xfe\n" +
        std::string(100000, '[') + "\n");
  const Database db = opened();
  EXPECT_TRUE(db.records().empty());
  EXPECT_EQ(db.damaged().size(), 7u);
}
TEST_F(Databases, SeveralProcessesWriteAtOnce) {
  constexpr int kProcesses = 4, kRecords = 25;
  for (int p = 0; p < kProcesses; ++p) {
    if (fork() != 0) continue;
    auto db = Database::open(path_);
    bool ok = db.ok();
    for (int i = 0; i < kRecords && ok; ++i)
      ok = db->append(record("task-" + std::to_string(p) + "-" + std::to_string(i))).ok();
    _exit(ok ? 0 : 1);
  }
  for (int p = 0; p < kProcesses; ++p) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  const Database db = opened();
  EXPECT_TRUE(db.damaged().empty()) << db.damaged()[0];
  EXPECT_EQ(db.records().size(), static_cast<size_t>(kProcesses * kRecords));
}
// A full disk, by way of a limit on the file: no part of a line stays.
TEST_F(Databases, WhatDoesNotFitIsNotWritten) {
  Database db = opened();
  ASSERT_TRUE(db.append(record("a-1")).ok());
  const std::string whole = text();
  if (fork() == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{whole.size() + 20, whole.size() + 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    const Status full = db.append(record("b-2"));
    _exit(!full.ok() && full.error().kind == ErrorKind::kIo ? 0 : 1);
  }
  int status = 0;
  wait(&status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text(), whole);
  ASSERT_TRUE(opened().append(record("c-3")).ok());
  EXPECT_TRUE(opened().damaged().empty());
}
TEST_F(Databases, PruningKeepsTheNewest) {
  Database db = opened();
  for (const int64_t rows : {4, 6}) ASSERT_TRUE(db.append(record("conv-1", rows)).ok());
  ASSERT_TRUE(db.append(record("conv-2")).ok());
  write(text() + "damaged\n");
  Database other = opened();  // opened before, and written to after
  const auto removed = opened().prune();
  ASSERT_TRUE(removed.ok()) << removed.error().to_string();
  EXPECT_EQ(*removed, 2u);
  ASSERT_TRUE(other.append(record("conv-3")).ok());
  const Database left = opened();
  EXPECT_TRUE(left.damaged().empty());
  ASSERT_EQ(left.records().size(), 3u);
  EXPECT_EQ(left.find("conv-1", kHere)->answers.at("conv.rows"), 6);
  EXPECT_NE(left.find("conv-3", kHere), nullptr);
}
TEST(DatabaseErrors, NameTheFile) {
  const auto folder = Database::open("/tmp");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().location, "/tmp");
  auto nowhere = Database::open("/nowhere/at/all.jsonl");
  ASSERT_TRUE(nowhere.ok());
  EXPECT_FALSE(nowhere->check_writable().ok());
  EXPECT_FALSE(nowhere->append(record("a-1")).ok());
}

TEST_F(Databases, LikeTasksAreFoundNearestFirst) {
  Database db = opened();
  const auto add = [&](const std::string& task, const std::string& family, const char* device,
                       int64_t rows) {
    Record r = record(task, rows);
    r.family = family;
    r.device = device;
    ASSERT_TRUE(db.append(r).ok());
  };
  const auto rows = [&](const std::string& task, const std::string& family) {
    const Database db = opened();  // which the record is a part of
    const Record* r = db.find_like(task, family, kHere);
    return r ? r->answers.at("conv.rows") : 0;
  };
  add("conv-1", "conv-f", "there", 1);
  EXPECT_EQ(rows("conv-9", "conv-f"), 1);
  EXPECT_EQ(rows("conv-9", "conv-g"), 0);
  EXPECT_EQ(rows("conv-9", ""), 0);
  add("conv-2", "conv-f", kHere, 2);
  EXPECT_EQ(rows("conv-9", "conv-f"), 2);
  EXPECT_EQ(rows("conv-1", "conv-f"), 1);
  add("conv-3", "conv-f", kHere, 3);
  add("conv-4", "conv-f", "there", 4);
  EXPECT_EQ(rows("conv-9", "conv-f"), 3);
}
// Provisional ones are for tuning to go on from; whoever compiles waits for what is confirmed.
TEST_F(Databases, OnlyWhatIsConfirmedIsFound) {
  using State = Record::State;
  Database db = opened();
  const auto add = [&](int64_t rows, State state) {
    Record r = record("conv-1", rows);
    r.family = "conv-f";
    r.state = state;
    ASSERT_TRUE(db.append(r).ok());
    db = opened();
  };
  const auto rows = [](const Record* r) { return r ? r->answers.at("conv.rows") : 0; };
  add(1, State::kProvisional);
  EXPECT_EQ(rows(db.find("conv-1", kHere)), 0);
  EXPECT_EQ(rows(db.newest("conv-1", kHere)), 1);
  EXPECT_EQ(rows(db.find_like("conv-2", "conv-f", kHere)), 0);
  add(2, State::kConfirmed);
  add(3, State::kProvisional);
  EXPECT_EQ(rows(db.find("conv-1", kHere)), 2);
  EXPECT_EQ(rows(db.find_like("conv-2", "conv-f", kHere)), 2);
  std::vector<bool> current;
  for (const Record& r : db.records()) current.push_back(db.is_current(r));
  EXPECT_EQ(current, (std::vector<bool>{false, true, true}));
  add(4, State::kWithdrawn);
  EXPECT_EQ(db.find("conv-1", kHere), nullptr);
  EXPECT_EQ(rows(db.find_like("conv-2", "conv-f", kHere)), 0);
  add(5, State::kConfirmed);
  EXPECT_EQ(rows(db.find("conv-1", kHere)), 5);
  ASSERT_TRUE(db.prune().ok());
  EXPECT_EQ(opened().records().size(), 1u);
}
// As version 1 wrote it: without a family.
TEST_F(Databases, RecordsOfVersion1AreRead) {
  write(R"x({"version":1,"task":"conv-1","device":"here, 1 thread, standard",)x"
        R"x("answers":{"conv.rows":4},"schedule":"vectorize(b)","usual_us":20.25,)x"
        R"x("tuned_us":16.0,"ratio":[0.78,0.81],"checksum":"e81c1170c5e2b4c3"})x"
        "\n");
  const Database db = opened();
  EXPECT_TRUE(db.damaged().empty()) << db.damaged()[0];
  ASSERT_NE(db.find("conv-1", kHere), nullptr);
  EXPECT_EQ(db.find("conv-1", kHere)->family, "");
}

}  // namespace
}  // namespace tilewright::autotune
