// Databases after random sequences of what happens to them, against a list of records and the rules of who is found.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "autotune/database/database.h"
#include "tests/autotune/random_seeds.h"

namespace tilewright::autotune {
namespace {

using State = Record::State;

// The model: records in the order of the file.
struct Line {
  std::string task, device, family;
  State state;
  int64_t number;
  bool operator==(const Line&) const = default;
};
using Lines = std::vector<Line>;

// Returns the index of the last line that satisfies the predicate, or -1 if there is none.
template <typename F>
int last(const Lines& lines, F&& is_one) {
  for (int i = static_cast<int>(lines.size()) - 1; i >= 0; --i)
    if (is_one(lines[static_cast<size_t>(i)])) return i;
  return -1;
}
// The rules of Database, on the list: each returns the place of a line, or -1.
int newest(const Lines& lines, const std::string& task, const std::string& device) {
  return last(lines, [&](const Line& l) { return l.task == task && l.device == device; });
}
int decided(const Lines& lines, const std::string& task, const std::string& device) {
  return last(lines, [&](const Line& l) {
    return l.task == task && l.device == device && l.state != State::kProvisional;
  });
}
// Returns the place of the record that compiling takes: the last decided one, if that is confirmed.
int found(const Lines& lines, const std::string& task, const std::string& device) {
  const int i = decided(lines, task, device);
  return i >= 0 && lines[static_cast<size_t>(i)].state == State::kConfirmed ? i : -1;
}
// Whether pruning keeps a line.
bool is_current(const Lines& lines, int i) {
  const Line& l = lines[static_cast<size_t>(i)];
  return i == newest(lines, l.task, l.device) || i == decided(lines, l.task, l.device);
}
// Returns the lines that pruning leaves.
Lines current(const Lines& lines) {
  Lines left;
  for (size_t i = 0; i < lines.size(); ++i)
    if (is_current(lines, static_cast<int>(i))) left.push_back(lines[i]);
  return left;
}
// The task itself comes before its family on the device, and that before its family on others.
int found_like(const Lines& lines, const std::string& task, const std::string& family,
               const std::string& device) {
  const auto is_found = [&](const Line& l) {
    return &l == &lines.front() + found(lines, l.task, l.device);
  };
  const auto is_alike = [&](const Line& l) { return !family.empty() && l.family == family; };
  int i = last(lines, [&](const Line& l) { return is_found(l) && l.task == task; });
  if (i < 0)
    i = last(lines,
             [&](const Line& l) { return is_found(l) && is_alike(l) && l.device == device; });
  return i < 0 ? last(lines, [&](const Line& l) { return is_found(l) && is_alike(l); }) : i;
}

const std::vector<std::string> kTasks{"a-1", "a-2", "b-1", "graph-1"}, kDevices{"here", "there"},
    kFamilies{"a", "b", ""};

// Two database files, each with the lines that it must hold, on which random steps are taken.
class Sequence {
 public:
  explicit Sequence(uint32_t seed) : random_(seed) {
    for (size_t i = 0; i < files_.size(); ++i) open(i);
  }
  ~Sequence() {
    for (const File& f : files_) std::filesystem::remove(f.path);
  }
  // Appends a new or an old record or half a line, opens anew, merges one file into the other, or prunes.
  void step() {
    const size_t i = below(files_.size()), other = (i + 1) % files_.size();
    File& f = files_[i];
    switch (below(8)) {
      case 0:
        ASSERT_TRUE(
            f.db->append(record(f.lines.empty() ? line() : f.lines[below(f.lines.size())])).ok());
        f.lines.push_back(line_of(f.db->records().back()));
        break;
      case 1: open(i); break;
      case 2: merge(f, files_[other]); break;
      case 3: prune(f); break;
      case 4:
        std::ofstream(f.path, std::ios::app) << "{\"half\": ";
        ++f.damaged;
        break;
      default: f.lines.push_back(line()); ASSERT_TRUE(f.db->append(record(f.lines.back())).ok());
    }
    check(f);
  }

 private:
  struct File {
    std::string path;
    std::optional<Database> db;
    Lines lines;
    size_t damaged = 0;  // unfinished lines that follow one another are one
  };
  size_t below(size_t n) { return random_() % n; }
  const std::string& one_of(const std::vector<std::string>& all) { return all[below(all.size())]; }
  Line line() {
    const std::string& task = one_of(kTasks);
    return {task, one_of(kDevices), task[0] == 'g' ? "" : task.substr(0, 1),
            static_cast<State>(below(3)), static_cast<int64_t>(below(3))};
  }
  static Record record(const Line& l) {
    return {.task = l.task,
            .device = l.device,
            .family = l.family,
            .answers = {{"rows", l.number}},
            .schedule = {},
            .usual_us = 2,
            .tuned_us = 1,
            .low = 0.5,
            .high = 0.5,
            .state = l.state};
  }
  static Line line_of(const Record& r) {
    return {r.task, r.device, r.family, r.state, r.answers.at("rows")};
  }
  void open(size_t i) {
    File& f = files_[i];
    if (f.path.empty())
      f.path =
          testing::TempDir() + "sequence_" + std::to_string(getpid()) + "_" + std::to_string(i);
    auto db = Database::open(f.path);
    ASSERT_TRUE(db.ok()) << db.error().to_string();
    f.db.emplace(std::move(*db));
    EXPECT_EQ(f.db->damaged().empty(), f.damaged == 0);
  }
  static void merge(File& into, const File& from) {
    const auto added = into.db->merge(*from.db);
    ASSERT_TRUE(added.ok()) << added.error().to_string();
    const size_t before = into.lines.size();
    for (const Line& l : current(from.lines))
      if (std::find(into.lines.begin(), into.lines.end(), l) == into.lines.end())
        into.lines.push_back(l);
    EXPECT_EQ(*added, into.lines.size() - before);
  }
  static void prune(File& f) {
    const Lines left = current(f.lines);
    const auto removed = f.db->prune();
    ASSERT_TRUE(removed.ok()) << removed.error().to_string();
    EXPECT_GE(*removed, f.lines.size() - left.size() + (f.damaged > 0 ? 1 : 0));
    EXPECT_LE(*removed, f.lines.size() - left.size() + f.damaged);
    f.lines = left;
    f.damaged = 0;
  }
  void check(const File& f) const {
    const auto at = [&](int i) {
      return i < 0 ? nullptr : &f.db->records()[static_cast<size_t>(i)];
    };
    ASSERT_EQ(f.db->records().size(), f.lines.size());
    const auto exported = nlohmann::json::parse(f.db->to_json());
    ASSERT_EQ(exported.size(), f.lines.size());
    for (size_t i = 0; i < f.lines.size(); ++i) {
      const Record& r = f.db->records()[i];
      ASSERT_EQ(line_of(r), f.lines[i]) << i;
      EXPECT_EQ(f.db->is_current(r), is_current(f.lines, static_cast<int>(i))) << i;
      EXPECT_EQ(exported[i].dump(), nlohmann::json::parse(to_line(r)).dump());
    }
    for (const std::string& task : kTasks)
      for (const std::string& device : kDevices) {
        EXPECT_EQ(f.db->find(task, device), at(found(f.lines, task, device)));
        EXPECT_EQ(f.db->newest(task, device), at(newest(f.lines, task, device)));
        for (const std::string& family : kFamilies)
          EXPECT_EQ(f.db->find_like(task, family, device),
                    at(found_like(f.lines, task, family, device)));
      }
  }

  std::mt19937 random_;
  std::array<File, 2> files_;
};

TEST(DatabaseSequences, AnswerAsAListOfRecordsDoes) {
  for (const uint32_t seed : random_seeds(6)) {
    SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
    Sequence sequence(seed);
    for (int i = 0; i < 40; ++i) ASSERT_NO_FATAL_FAILURE(sequence.step());
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright::autotune
