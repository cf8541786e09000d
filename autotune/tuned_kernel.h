// What tuning finds of one kernel, and what is known before it begins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/measure/comparison.h"
#include "autotune/search/search.h"

namespace tilewright::autotune {

// Answers to start from, for a task of a family, or for a graph_key of none.
struct Known {
  passes::Answers answers;
  bool recorded = false;  // as confirmed here before; else they may be of another kernel or machine
};
using FindKnown = std::function<Known(const std::string& task, const std::string& family)>;

// A form that is the best one from now on, before the last runs; `gain`: against the usual one.
struct Finding {
  std::string task, family;
  passes::Answers answers;
  passes::Trace schedule;
  Comparison gain;
};
using OnFinding = std::function<Status(const Finding&)>;

// One measurement of a candidate, in microseconds of all calls of a run.
struct Trial {
  passes::Answers answers;
  double expected_us = 0;  // of one call
  Comparison measured;     // the candidate (b) against the best form of that time (a)
  double seconds = 0;      // since the start
  bool confirmed = false;  // it became the best form
  std::string refused;     // why it was not compared; empty: it was
};

// A kernel of the model, all of its calls together.
struct TunedKernel {
  std::string name, task, family;  // "k4_conv_add", task_key and family_key
  // In a run with the usual schedules: time, calls, and what these do (ProfileRow); means over sizes.
  double us = 0;
  int64_t calls = 0, flops = 0, bytes = 0;
  double expected_us = 0;  // of one call with the usual schedule
  std::vector<Trial> trials;
  // Its best form, and how that compares with the usual one (a) in the last, confirming runs.
  Candidate best;
  bool improved = false;
  // It began with a form that was confirmed before; and that one is not faster after all.
  bool recorded = false, withdrawn = false;
  Comparison gain;
  double gap = 1;                         // Search::gap at the end
  std::vector<passes::Decision> changes;  // Search::changes, where it improved
};

}  // namespace tilewright::autotune
