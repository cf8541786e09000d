// A page on a run: how loss, accuracy, learning rate and speed went.
#pragma once

#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/step_log.h"
#include "frontends/train/step_times.h"

namespace tilewright::train {

// One HTML page that needs nothing else (autotune/report/page.h). However many lines there are, a chart has
// some hundred points: each the mean of steps one after the other, in a band from their least to their
// greatest. What is no finite number is left out of means and bands.
// ranks: of a run by several; may be empty.
std::string curves_page(const Job& job, const std::vector<LogLine>& lines,
                        const std::vector<RankTimes>& ranks);

}  // namespace tilewright::train
