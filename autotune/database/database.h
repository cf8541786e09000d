// The tuning database: a file of records, one JSON object a line, that only grows. Each line has a
// version and a checksum, so that a line which is damaged, cut off or of another version costs that
// record alone. Several processes may append at once.
#pragma once

#include <string>
#include <vector>

#include "autotune/database/record.h"
#include "runtime/core/result.h"

namespace tilewright::autotune {

class Database {
 public:
  // An empty one where there is no file. Errors: kIo, kLimit for a file of over 1 GiB.
  static Result<Database> open(const std::string& path);

  // The newest confirmed record of a task on a device; null: none, or it was withdrawn. Holds until
  // the next append.
  const Record* find(const std::string& task, const std::string& device) const;
  // The newest of any state.
  const Record* newest(const std::string& task, const std::string& device) const;
  // Whether no later one stands in its place: a provisional one does not.
  bool is_current(const Record& record) const;
  // One whose answers may be good for a task that has none: of the same task on another device, of
  // its family on this one, or of its family anywhere, the newest of each that is confirmed; null: none.
  const Record* find_like(const std::string& task, const std::string& family,
                          const std::string& device) const;
  // Makes the file where there is none. Errors: kIo.
  Status check_writable() const;
  // Writes a line and flushes it to disk; the record is found from then on. Errors: kIo.
  Status append(const Record& record);

  // Appends the current records of `from`, but for those that this one has already or has a newer one in
  // place of; returns how many. Errors: kIo.
  Result<size_t> merge(const Database& from);

  // The file anew, with the current records alone; how many lines went, damaged ones included. Readers
  // see the old file or the new one, never a part. Errors: kIo.
  Result<size_t> prune();

  // All records as one JSON array.
  std::string to_json() const;
  const std::vector<Record>& records() const { return records_; }  // in the order of the file
  // Lines that are no records of this version or one before: "line 3: the checksum is wrong".
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  explicit Database(std::string path) : path_(std::move(path)) {}
  const Record* decided(const std::string& task, const std::string& device) const;
  std::string path_;
  std::vector<Record> records_;
  std::vector<std::string> damaged_;
};

}  // namespace tilewright::autotune
