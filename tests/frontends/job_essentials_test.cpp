// What another job is: the keys of job files are taken from their reader, given each other values, and told apart
// but for a list of those that do not change what is trained.
#include "frontends/train/job_essentials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tests/frontends/scratch_folder.h"

namespace tilewright::train {
namespace {

using Kind = JobKey::Kind;
using Values = std::map<std::string, std::string>;  // of keys, as TOML; of a table: nothing

// Keys that leave the trained model as it is: a whole table, or one key.
bool is_free(const std::string& key, const Job& job) {
  static const std::set<std::string> free{"distributed.engine", "distributed.deadline",
                                          "distributed.verify"};
  for (const char* table : {"checkpoint.", "output.", "evaluation."})
    if (key.starts_with(table)) return true;
  return free.count(key) || (key == "steps" && job.schedule.kind != ScheduleKind::kCosine);
}

// Values that the reader may take, no two of which are alike in meaning.
std::vector<std::string> values_of(const JobKey& key) {
  switch (key.kind) {
    case Kind::kTable: return {""};
    case Kind::kText: return {"\"a\"", "\"b\""};
    case Kind::kFile: return {"\"one\"", "\"other\""};
    case Kind::kBool: return {"false", "true"};
    case Kind::kTexts: return {"[\"a\"]", "[\"b\"]", "[\"a\", \"b\"]"};
    case Kind::kNumbers: return {"[1]", "[2]", "[1, 2]"};
    case Kind::kNames: return {"{ x = \"a\" }", "{ x = \"b\" }", "{ y = \"a\" }"};
    case Kind::kWord: {
      std::vector<std::string> words;
      for (const std::string& w : key.words) words.push_back("\"" + w + "\"");
      return words;
    }
    case Kind::kInteger: {
      const auto least = static_cast<int64_t>(key.least);
      return {std::to_string(least + 11), std::to_string(least + 3), std::to_string(least + 5)};
    }
    case Kind::kNumber: {
      const double reach = std::min(key.below - key.least, 8.0);
      return {std::to_string(key.least + reach / 2), std::to_string(key.least + reach / 8)};
    }
    case Kind::kPair: return {"[0.5, 0.25]", "[0.5, 0.75]", "[0.25, 0.25]"};
  }
  return {};
}

class Essentials : public testing::Test {
 protected:
  Essentials() {
    for (const char* name : {"one", "other"}) write_file(scratch_ / name, name);
  }
  // The job with these values; keys: what the reader asked for.
  Result<Job> read(const Values& values, std::vector<JobKey>& keys) const {
    std::string text;
    std::map<std::string, std::string> tables;
    for (const auto& [key, value] : values) {
      const size_t dot = key.find('.');
      if (value.empty())
        tables[key];
      else if (dot == std::string::npos)
        text += key + " = " + value + "\n";
      else
        tables[key.substr(0, dot)] += key.substr(dot + 1) + " = " + value + "\n";
    }
    for (const auto& [table, lines] : tables) text += "[" + table + "]\n" + lines;
    write_file(scratch_ / "job.toml", text);
    keys.clear();
    return read_job(scratch_ / "job.toml", &keys);
  }
  // With all tables, and all that a job of these values must have.
  Values completed(Values values) const {
    std::vector<JobKey> keys;
    for (size_t known = 0;;) {
      (void)read(values, keys);
      for (const JobKey& k : keys)
        if (k.kind == Kind::kTable || k.required) values.emplace(k.name, values_of(k)[0]);
      if (std::exchange(known, values.size()) == values.size()) return values;
    }
  }
  // With every key that may stand beside the others.
  Values filled(Values values) const {
    std::vector<JobKey> keys, ignored;
    (void)read(values, keys);
    for (const JobKey& k : keys)
      if (values.emplace(k.name, values_of(k)[0]).second && !read(values, ignored).ok())
        values.erase(k.name);
    return values;
  }
  // Of the whole job; the model is a file of these bytes.
  std::string essentials(const Job& job) const {
    const std::string text = read_file(job.model);
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    OnnxModel model;
    model.sources.push_back({bytes, nullptr});
    auto found = essentials_of(job, hash_of(model));
    EXPECT_TRUE(found.ok()) << found.error().to_string();
    return found.ok() ? *found : "";
  }

  const ScratchFolder scratch_;
};

TEST_F(Essentials, AJobWithAnyOtherKeyIsAnother) {
  // Jobs with each word of each key, as words decide which other keys there are.
  const Values root = completed({});
  std::vector<JobKey> keys;
  (void)read(root, keys);
  std::vector<Values> jobs{root};
  for (const JobKey& k : std::vector<JobKey>(keys))
    for (const std::string& word :
         k.kind == Kind::kWord ? values_of(k) : std::vector<std::string>{}) {
      Values other = root;
      const std::string table = k.name.substr(0, k.name.find('.') + 1);
      std::erase_if(other, [&](const auto& v) {  // what this word's own keys are instead
        return !table.empty() && v.first.starts_with(table);
      });
      other[k.name] = word;
      jobs.push_back(completed(std::move(other)));
    }
  for (size_t minimal = jobs.size(), i = 0; i < minimal; ++i) jobs.push_back(filled(jobs[i]));
  std::set<std::string> tried, left;
  for (const Values& job : jobs) {
    const auto found = read(job, keys);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    for (const JobKey& key : std::vector<JobKey>(keys)) {
      if (key.kind == Kind::kTable) continue;
      std::vector<std::pair<std::string, std::string>> others;  // value, essentials
      Values changed = job;
      for (const std::string& value : values_of(key)) {
        changed[key.name] = value;
        std::vector<JobKey> ignored;
        if (const auto other = read(changed, ignored); other.ok())
          others.emplace_back(value, essentials(*other));
      }
      (others.size() > 1 ? tried : left).insert(key.name);
      for (size_t a = 0; a < others.size(); ++a)
        for (size_t b = 0; b < a; ++b) {
          const std::string what = difference(others[a].second, others[b].second);
          EXPECT_EQ(what.empty(), is_free(key.name, *found))
              << key.name << " " << others[a].first << " or " << others[b].first << ": " << what;
          EXPECT_EQ(difference(others[b].second, others[a].second).empty(), what.empty());
        }
    }
  }
  for (const std::string& name : left)
    EXPECT_TRUE(tried.count(name)) << name << " was never changed";
  EXPECT_GT(tried.size(), 40u);
}

}  // namespace
}  // namespace tilewright::train
