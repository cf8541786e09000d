// The base model: what kept measurements say of kernels that were never measured.
#pragma once

#include <memory>
#include <vector>

#include "autotune/learn/cost_model.h"
#include "tests/autotune/replay/replay_table.h"

namespace tilewright::autotune {

// How well forms of one table are told apart by a model that did not see it.
struct Transfer {
  // Spearman's rank correlation with the measured times: of the analytic cost, and with the model.
  double analytic = 0, learned = 0;
  double covered = 0;  // part of the forms whose times lie in the model's 90 % intervals
};

// Fitted to all tables but those whose schedules `without` makes (empty: to all). Intervals are as
// wide as it takes for rules that are left out in turn. Takes seconds for each rule.
Result<Ensemble> fit_base_model(const Boosting& boosting, const std::vector<ReplayTable>& tables,
                                const std::string& without = "");
Result<Transfer> transfer_to(const Ensemble& base, const ReplayTable& table);

// Of the times' ranks; 0 for fewer than two forms.
double spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tilewright::autotune
