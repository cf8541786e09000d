// Which other answers to a graph's decisions are worth a trial.
#pragma once

#include <deque>
#include <set>
#include <string>

#include "autotune/graph_form.h"

namespace tilewright::autotune {

// Decisions that are alike, answered with one value.
struct GraphCandidate {
  std::string alike, answer;        // Decision::alike, and the value's label
  passes::Answers answers, before;  // and the best form's own
  bool alone = false;     // together with others its results were not those of the usual form
  bool confirms = false;  // it was faster once
  // The best form's nodes that it changes, and what they are in its own form.
  std::set<std::string> here, there;
  size_t of_best = 0;  // for which best form these were found; 0: for none yet
};

// Each value of all decisions that are alike, the cheapest first where passes know costs.
std::deque<GraphCandidate> graph_candidates(const GraphForm& best, bool same_bits);

// Those of b where both have an answer.
passes::Answers merged(passes::Answers a, const passes::Answers& b);

}  // namespace tilewright::autotune
