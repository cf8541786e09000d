// Kept measurements of one task: which forms of its kernel there are, and what they took.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "passes/decisions/decision.h"
#include "runtime/core/result.h"

namespace tilewright::autotune {

struct ReplayForm {
  // Answers other than the usual ones, and a hash of the schedule that followed as text.
  passes::Answers answers;
  uint64_t schedule = 0;
  // Twice, minutes apart: its time over that of the usual form, run in turn. Medians.
  std::array<float, 2> ratios{};
  // autotune/learn/features.h, and the expected microseconds.
  std::vector<float> features;
  float expected_us = 0;
  double ratio() const { return (ratios[0] + ratios[1]) / 2.0; }
};
struct ReplayTable {
  std::string name, rule;
  // The usual form first; by their ratios 1.
  std::vector<ReplayForm> forms;
  std::vector<std::string> features;  // names
};

// A .npz file, named after the task; the rule is the one that replay_tasks() says. Errors: those of
// the file.
Status write_table(const std::filesystem::path& folder, const ReplayTable& table);
Result<ReplayTable> read_table(const std::filesystem::path& folder, const std::string& name);
// Of all tasks that have one. Errors: kIo where none has, and those of the files.
Result<std::vector<ReplayTable>> read_tables(const std::filesystem::path& folder);

}  // namespace tilewright::autotune
