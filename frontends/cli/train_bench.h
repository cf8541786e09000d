// tilewright train --bench, and what a run by several ranks prints of them.
#pragma once

#include "frontends/cli/cli.h"
#include "frontends/train/trainer.h"

namespace tilewright::cli {

// Prints host, process, CPUs and engine of each rank, on rank 0. Collective: all ranks call it.
Status print_ranks(const train::Trainer& trainer);

// Measures steps. With several ranks, each round also times computation and communication in isolation.
Status bench_training(train::Trainer& trainer, const TrainArguments& arguments);
// Prints the predicted step time for each rank count of --scaling.
Status predict_scaling(train::Trainer& trainer, const train::Job& job,
                       const TrainArguments& arguments);

}  // namespace tilewright::cli
