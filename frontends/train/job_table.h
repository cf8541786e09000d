// Tables of a job file (TOML). They are read key by key and note what was asked for, so that a key that
// nobody reads is a mistake with a list of those that there are.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/toml.h"
#include "runtime/core/result.h"

namespace tilewright::train {

// The whole file. Errors: kIo; kInvalid with the line of what is no TOML.
Result<toml::table> parse_job_file(const std::filesystem::path& path);

// Reads keys of one table. What is wrong first is kept in `status`, with the place of the value; what
// was read is of no use then. Keys that are missing keep what `to` is, unless they are required.
class Table {
 public:
  // name: of the table, for messages; empty for the keys of the file itself. keys: receives every key that is read;
  // null records none.
  Table(const toml::table& table, std::string name, const std::filesystem::path& file,
        Status& status, std::vector<JobKey>* keys = nullptr)
      : table_(table), name_(std::move(name)), file_(file), status_(status), keys_(keys) {}

  // Of a table inside.
  bool has(const char* key);
  void read(const char* key, std::string& to, bool required = false);
  void read(const char* key, bool& to);
  // Relative to the file's folder.
  void read(const char* key, std::filesystem::path& to, bool required = false);
  // From `least` to 2^40.
  void read(const char* key, int64_t& to, int64_t least, bool required = false);
  // In [least, below).
  void read(const char* key, double& to, double least, double below, bool required = false);
  void read(const char* key, double (&to)[2], double least, double below);
  void read(const char* key, std::vector<std::string>& to);
  void read(const char* key, std::vector<double>& to);
  void read(const char* key, std::map<std::string, std::string>& to);
  // One of the words.
  void read_word(const char* key, std::string& to, const std::vector<std::string>& words,
                 bool required = true);
  // A table inside, which is required: see has().
  Table table(const char* key);
  // After all reads: keys that nothing read are mistakes.
  void finish();
  // A mistake that only several keys together make, at the place of one of them.
  void refuse(const char* key, const std::string& message);

 private:
  std::string quoted(const std::string& key) const;
  // The first note of a key stands.
  void note(const char* key, JobKey as);
  const toml::node* find(const char* key, bool required);
  void missing(const std::string& what);
  void fail(const toml::node& n, const std::string& message);
  template <typename T>
  void take(const char* key, const std::optional<T>& value, const char* kind, const toml::node& n,
            T& to);
  void number(const char* key, const toml::node& n, double least, double below, double& to);

  const toml::table& table_;
  const std::string name_;
  const std::filesystem::path& file_;
  Status& status_;
  std::vector<JobKey>* const keys_;
  std::vector<std::string> seen_;  // keys that were asked for
};

}  // namespace tilewright::train
