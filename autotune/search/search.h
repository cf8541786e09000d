// The search for a better schedule of one kernel. From the best form known, one decision at a time is
// answered otherwise; the best few that were measured have descendants, with answers of both and some
// changed (an evolutionary search); when nothing is left, several answers change at once, and then one
// at a time of the forms that are about as fast as the best. The analytic cost of the loops that follow,
// and what was learned from measurements, say which of these forms is measured next (prospects.h).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "autotune/search/prospects.h"
#include "passes/decisions/decision.h"
#include "passes/lower.h"

namespace tilewright::autotune {

struct Candidate {
  // Answers other than the usual ones, the schedule that follows, and what it is expected to cost.
  passes::Answers answers;
  passes::Trace schedule;
  double expected_us = 0;
  Features features = {};  // relative_features; none of the usual form
  double ratio = 1;        // of its time to that of the usual form, once it was measured
};

struct SearchOptions {
  // Only answers that keep every bit of the results.
  bool same_bits = false;
  uint32_t seed = 1;
  passes::Answers from;  // of the first best form, where a legal schedule follows
  // Learns from all kernels that share it; null: the analytic cost alone.
  std::shared_ptr<CostModel> model;
};

class Search {
 public:
  // The usual schedule is the first best form where no other is given. Errors: of the rules, without any answers.
  static Result<Search> start(ir::Kernel kernel, std::set<std::string> constants,
                              const passes::LowerOptions& options, SearchOptions search = {});

  // Finds out what up to so many more forms near the best one are expected to cost, which takes
  // milliseconds each. Touches nothing that searches share.
  void weigh(size_t forms);
  // Of the forms that were weighed, the one that is worth most to measure; where none is left, others
  // are weighed. Nothing when there is none near the best one.
  std::optional<Candidate> next();
  // What was measured: the candidate's time over that of the usual form, above 0.
  void report(Candidate& candidate, double ratio);
  // The same of the best form, where the search began with a known one.
  void report_best(double ratio) { report(best_, ratio); }
  // The candidate is the best form from here on.
  void accept(Candidate candidate);
  // By how much of its time the best form may still be beaten (Prospects::gap) by forms near the best
  // ones. 1 where nothing is known, as long as not all of these are weighed.
  double gap();

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
  double log_expected(const Candidate& c) const;
  // Those that may be answered otherwise where these answers are given.
  std::vector<passes::Decision> open_decisions(const passes::Answers& answers) const;
  // Others when all that were added are weighed; false: there are none.
  bool add_more();
  void add_neighbours(const passes::Answers& answers);
  bool add_neighbours_of_near();
  void add_mixtures();
  void add_descendant();
  void weigh_one();
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  ir::Kernel kernel_;
  std::set<std::string> constants_;
  passes::LowerOptions options_;
  SearchOptions search_;
  std::mt19937 random_;
  Candidate usual_, best_;
  Features usual_features_;
  std::deque<passes::Answers> unweighed_;
  // Forms that were not given out yet, by number, and the order in which they are worth it.
  std::map<size_t, Candidate> waiting_;
  Prospects prospects_;
  size_t forms_ = 0;
  std::vector<Candidate> measured_;       // the best few, the fastest first
  std::unordered_set<std::string> seen_;  // schedules as text
  std::set<passes::Answers> expanded_;    // whose neighbours were added
  size_t near_ = 0;     // of those: that were not the best, since the last that was
  bool mixed_ = false;  // several answers at once, from this best form
};

}  // namespace tilewright::autotune
