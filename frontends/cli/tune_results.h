// What came of tuning, as a table, as JSON, and what a page says of the machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "autotune/report/report.h"
#include "autotune/tune_model.h"
#include "frontends/cli/cli.h"

namespace tilewright::cli {

void print_tuned(const autotune::TuneResult& r);
nlohmann::ordered_json tuned_json(const autotune::TuneResult& r);

// model: a file; inputs: its inputs, as the page names them. Roofs are those of the machine that was measured
// on, whatever --machine says of it.
autotune::report::Facts facts_of(const ModelOptions& options, const std::string& model,
                                 const std::string& inputs, const CompileOptions& compile);

}  // namespace tilewright::cli
