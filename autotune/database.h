// The tuning database: a file of records, one JSON object a line, that only grows. Each line has a
// version and a checksum, so that a line which is damaged, cut off or of another version costs that
// record alone. Several processes may append at once.
#pragma once

#include <string>
#include <vector>

#include "passes/decisions/decision.h"
#include "passes/schedule/trace.h"
#include "runtime/core/result.h"

namespace tilewright::autotune {

// A schedule that was faster than the usual one, measured in a model.
struct Record {
  // task_key and device_key; family_key of a kernel, which version 1 did not have: else empty.
  std::string task, device, family = {};
  // What led to the schedule: answers to decisions, which a later version may ask otherwise, and the
  // steps, which are what is replayed.
  passes::Answers answers;
  passes::Trace schedule;
  // Of all calls in one run, in microseconds: with the usual schedule and with this one.
  double usual_us = 0, tuned_us = 0;
  // Their ratio, tuned to usual: with 95 % confidence it lies between these.
  double low = 0, high = 0;
};

// As a line of the file has it, the line's end included.
std::string to_line(const Record& record);

class Database {
 public:
  // An empty one where there is no file. Errors: kIo, kLimit for a file of over 1 GiB.
  static Result<Database> open(const std::string& path);

  // The newest record of a task on a device; null: none. Holds until the next append.
  const Record* find(const std::string& task, const std::string& device) const;
  // One whose answers may be good for a task that has none: of the same task on another device, of
  // its family on this one, or of its family anywhere, the newest of each; null: none.
  const Record* find_like(const std::string& task, const std::string& family,
                          const std::string& device) const;
  // Makes the file where there is none. Errors: kIo.
  Status check_writable() const;
  // Writes a line and flushes it to disk; the record is found from then on. Errors: kIo.
  Status append(const Record& record);

  // The file anew, with the newest record of each task and device alone; how many lines went, damaged
  // ones included. Readers see the old file or the new one, never a part. Errors: kIo.
  Result<size_t> prune();

  const std::vector<Record>& records() const { return records_; }  // in the order of the file
  // Lines that are no records of this version or one before: "line 3: the checksum is wrong".
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  explicit Database(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::vector<Record> records_;
  std::vector<std::string> damaged_;
};

}  // namespace tilewright::autotune
