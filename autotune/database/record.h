// What tuning found of one kernel or graph.
#pragma once

#include <string>
#include <string_view>

#include "passes/decisions/decision.h"
#include "passes/schedule/trace.h"
#include "runtime/core/result.h"

namespace tilewright::autotune {

// A schedule that was faster than the usual one, measured in a model.
struct Record {
  // kProvisional: in rounds of a tuning that may go on; the next one begins there, and nobody else
  // follows it. kWithdrawn: a schedule that is not faster after all, so that the usual one is used.
  enum class State { kConfirmed, kProvisional, kWithdrawn };
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
  State state = State::kConfirmed;
};
std::string_view name(Record::State state);  // "provisional"

// As a line of the database has it, the line's end included: a JSON object with its version and checksum.
std::string to_line(const Record& record);
// Untrusted; of this version or one before. Errors: kInvalid, with the rule that is broken.
Result<Record> parse_line(const std::string& line);

}  // namespace tilewright::autotune
