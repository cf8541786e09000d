// The search for a better schedule of one kernel: from the best form known, one decision at a time is
// answered otherwise; the analytic cost of the loops that follow says which forms are worth
// measuring, and in which order. When all neighbours were measured, several answers change at once.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "passes/decisions/decision.h"
#include "passes/lower.h"

namespace tilewright::autotune {

struct Candidate {
  // Answers other than the usual ones, the schedule that follows, and what it is expected to cost.
  passes::Answers answers;
  passes::Trace schedule;
  double expected_us = 0;
};

struct SearchOptions {
  // Only answers that keep every bit of the results.
  bool same_bits = false;
  uint32_t seed = 1;
  passes::Answers from;  // of the first best form, where a legal schedule follows
};

class Search {
 public:
  // The usual schedule is the first best form where no other is given. Errors: of the rules, without any answers.
  static Result<Search> start(ir::Kernel kernel, std::set<std::string> constants,
                              const passes::LowerOptions& options, SearchOptions search = {});

  // A form that was not given out yet; nothing when none is near the best one. Takes milliseconds
  // for each form that it weighs.
  std::optional<Candidate> next();
  // The candidate is the best form from here on.
  void accept(Candidate candidate);

  const Candidate& usual() const { return usual_; }
  const Candidate& best() const { return best_; }
  bool improved() const { return best_.answers != usual_.answers; }
  // The decisions that the best form answers otherwise, without what follows from that: `values` are
  // the usual answer and the best form's, `microseconds` what is expected where all others are as
  // usual; NaN where no legal schedule follows. Takes milliseconds each.
  std::vector<passes::Decision> changes() const;

 private:
  Search(ir::Kernel kernel, std::set<std::string> constants, const passes::LowerOptions& options,
         SearchOptions search);
  std::optional<Candidate> form(passes::Answers answers);
  // Of the best form: those that may be answered otherwise.
  std::vector<passes::Decision> open_decisions() const;
  void add_neighbours();
  void add_mixtures();
  void add(passes::Answers answers);
  void sort_waiting();

  ir::Kernel kernel_;
  std::set<std::string> constants_;
  passes::LowerOptions options_;
  SearchOptions search_;
  std::mt19937 random_;
  Candidate usual_, best_;
  std::vector<Candidate> waiting_;        // the most promising last
  std::unordered_set<std::string> seen_;  // schedules as text
  bool mixed_ = false;                    // several answers at once, from this best form
};

}  // namespace tilewright::autotune
