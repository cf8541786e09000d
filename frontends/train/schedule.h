// How the learning rate changes from step to step.
#pragma once

#include "frontends/train/job.h"

namespace tilewright::train {

// Of a step (0 is the first): in f64, and of job and step alone, so that a run that goes on from a
// checkpoint has the rates of one that was never interrupted. Through `warmup` steps it rises to the
// optimiser's lr by equal parts, the first of which is lr / warmup. Then, t steps later:
//   constant: lr
//   step:     lr * gamma^floor(t / every)
//   cosine:   least + (lr - least) * (1 + cos(pi * t / (steps - warmup))) / 2
double learning_rate(const Job& job, int64_t step);

}  // namespace tilewright::train
