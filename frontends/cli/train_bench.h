// tilewright train --bench, and what a run by several ranks prints of them.
#pragma once

#include "frontends/cli/cli.h"
#include "frontends/train/trainer.h"

namespace tilewright::cli {

// A line for each rank: where it runs, and how ranks are connected. All ranks call it.
Status print_ranks(const train::Ranks& ranks);

// The time of steps; of several ranks also of computing and communicating alone, in rounds of all three.
Status bench_training(train::Trainer& trainer, const TrainArguments& arguments);
// A table of steps on other numbers of ranks.
Status predict_scaling(train::Trainer& trainer, const train::Job& job,
                       const TrainArguments& arguments);

}  // namespace tilewright::cli
