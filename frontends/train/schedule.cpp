#include "frontends/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright::train {

double learning_rate(const Job& job, int64_t step) {
  const ScheduleJob& s = job.schedule;
  const double lr = job.optimizer.lr;
  if (step < s.warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
  const int64_t since = step - s.warmup;
  switch (s.kind) {
    case ScheduleKind::kConstant: break;
    case ScheduleKind::kStep: return lr * std::pow(s.gamma, static_cast<double>(since / s.every));
    case ScheduleKind::kCosine: {
      // A job all of whose steps are warm-up never comes here; the last step is one before the end.
      const auto part = static_cast<double>(since) /
                        static_cast<double>(std::max<int64_t>(job.steps - s.warmup, 1));
      return s.least + (lr - s.least) * (1 + std::cos(std::numbers::pi * part)) / 2;
    }
  }
  return lr;
}

}  // namespace tilewright::train
