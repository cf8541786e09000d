// Forms of one kernel that could be measured next: the one whose measurement is expected to gain
// most, and what all of them together may still hold.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autotune/learn/cost_model.h"

namespace tilewright::autotune {

struct Prospect {
  size_t id = 0;            // the caller's
  double log_expected = 0;  // of the analytic cost's ratio to that of the usual form
  Features features;        // relative_features
};

// The part of the best time by which measuring is expected to improve on it (Jones et al., 1998). All
// are logarithms.
double expected_improvement(const Outlook& outlook, double best);

class Prospects {
 public:
  // model: shared by all kernels; where it is null or learns nothing, the lowest cost comes first.
  explicit Prospects(std::shared_ptr<CostModel> model) : model_(std::move(model)) {}

  void add(Prospect p);
  // The id of the most promising one, which is one no more; nothing when there is none. best: the
  // logarithm of the best ratio so far.
  std::optional<size_t> take(double best);
  // The part of the best form's time that some form of these may be faster by, with a confidence of
  // 95 %: the sum of the chances of all to be faster than that is 5 %, whether they depend on one
  // another or not. It holds as far as the model's intervals do, and for forms that were added.
  double gap(double best);
  size_t size() const { return open_.size(); }

 private:
  // A prospect, how its time's ratio to the usual form's looks, as a logarithm, and how far it is from
  // what was taken.
  struct Open {
    Prospect prospect;
    Outlook outlook;
    double distance = 1;
    bool known = false;  // the outlook is of the model's version
  };
  bool look();

  std::shared_ptr<CostModel> model_;
  std::vector<Open> open_;
  std::vector<Features> taken_;
  size_t version_ = 0;
};

}  // namespace tilewright::autotune
