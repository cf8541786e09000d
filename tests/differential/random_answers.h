// Random answers to the decisions of schedule rules.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>

#include "ir/machine.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright {

// Schedules kernels by random answers, and keeps count.
class RandomAnswers {
 public:
  RandomAnswers(ir::MachineDescription machine, uint64_t seed)
      : machine_(std::move(machine)), random_(seed) {}
  // A trace that went through its text; the usual one where every answer tried was refused.
  passes::Trace schedule(const ir::Kernel& kernel, const std::set<std::string>& constants);

  bool keep_bits = true;  // may no answer change any?
  std::string answers;    // given and followed: "kernel: matmul.rows = 3 (usually 6)" a line
  size_t followed = 0, refused = 0;
  std::set<std::string> kinds;  // of decisions, without their blocks: "rows"

 private:
  ir::MachineDescription machine_;
  std::mt19937_64 random_;
};

}  // namespace tilewright
