// The charts of the report, each a section with a title and what it shows.
#pragma once

#include <string>

#include "autotune/report/report.h"

namespace tilewright::autotune::report {

// Kernels in charts and rows in tables; the rest is summed up.
inline constexpr size_t kMostShown = 40;

// Whether and by how much the best form is faster: microseconds of a run, with its bounds.
struct Saved {
  double us = 0, low = 0, high = 0;
};
Saved saved_by(const TunedKernel& kernel);
// Those that improved, with the most microseconds saved first.
std::vector<const TunedKernel*> improved_kernels(const TuneResult& result);

std::string gain_by_kernel(const TuneResult& result);
std::string gain_over_time(const TuneResult& result);
std::string expected_and_measured(const TuneResult& result);
std::string roofline(const TuneResult& result, const Facts& facts);

}  // namespace tilewright::autotune::report
