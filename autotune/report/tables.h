// The tables of the report.
#pragma once

#include <string>

#include "autotune/report/report.h"

namespace tilewright::autotune::report {

// What is answered otherwise, at what expected cost, and what came of it.
std::string changed_decisions(const TuneResult& result);
// What graph passes could have decided otherwise, and what came of it; nothing where nothing was tried.
std::string graph_decisions(const TuneResult& result);
// Candidates whose results or runs failed; nothing where there are none.
std::string refused_candidates(const TuneResult& result);
std::string all_kernels(const TuneResult& result);

}  // namespace tilewright::autotune::report
