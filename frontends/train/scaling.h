// How long a step takes on other numbers of ranks, predicted from what one rank computes and what the link between two
// of them costs.
#pragma once

#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/trainer.h"
#include "runtime/distributed/link.h"

namespace tilewright::train {

// Each rank computes as many samples as the one that was measured, so that the batch grows with the ranks.
struct Scaled {
  int ranks = 1;
  int64_t samples = 0;  // of a step, all ranks together
  // Seconds: a rank's computing, the update included; its calls, one after the other; what it waits for them.
  double computing = 0, communicating = 0, waiting = 0;
  double step() const { return computing + waiting; }
};

// Simulates one step: ring all-reduces run in sequence, each not before its range is ready. If `shares_cpus`, the
// computation is longer by the CPU time of the communication that overlaps with it.
Scaled scale(const StepTimeline& timeline, const distributed::RingCost& cost, int ranks,
             int64_t samples_a_rank, bool shares_cpus);

// "50us,1gbit": of a link between two hosts. Errors: it is no such text.
Result<distributed::RingCost> read_link(const std::string& text);

std::string to_table(const std::vector<Scaled>& rows);
// The same as one HTML page, with a plot of samples a second (autotune/report/page.h).
std::string scaling_page(const Job& job, const distributed::RingCost& cost,
                         const std::vector<Scaled>& rows);

}  // namespace tilewright::train
