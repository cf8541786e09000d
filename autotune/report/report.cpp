#include "autotune/report/report.h"

#include <cmath>

#include "autotune/report/charts.h"
#include "autotune/report/html.h"
#include "autotune/report/page.h"
#include "autotune/report/tables.h"
#include "runtime/core/write_file.h"

namespace tilewright::autotune::report {

namespace {

std::string gain(const TuneResult& result) {
  const Comparison& c = result.runs;
  const auto percent = [](double of) { return printed("%.2f %%", 100 * (1 - of)); };
  return "<div class=\"main\"><dt>Saved of the time of a whole run</dt><dd>" + percent(c.ratio) +
         " <small>with 95 % confidence between " +
         (std::isfinite(c.high) ? percent(c.high) : "-\u221e") + " and " + percent(c.low) +
         printed("; %s ms usual, %s ms tuned, both compiled anew %zu times",
                 number(c.a * 1e-3).c_str(), number(c.b * 1e-3).c_str(), c.pairs) +
         (c.ratio < 1 ? "" : "; no gain: all kernels keep their usual schedules") +
         "</small></dd></div>\n";
}

std::string header(const TuneResult& r, const Facts& f) {
  const size_t improved = improved_kernels(r).size();
  return "<header><h1>" + escape(f.model) + "</h1>\n<p>Better schedules by measuring, " +
         "as <code>tilewright tune</code> found them</p>\n<dl>\n" + gain(r) +
         fact("Device", f.device) + fact("Threads", std::to_string(f.threads)) +
         fact("Numerics", f.numerics) + fact("Inputs", f.inputs) +
         fact("Kernels", printed("%zu of %zu with a better schedule", improved, r.kernels.size())) +
         fact("Tuning", printed("%.0f s, %zu rounds, %zu trials", r.progress.seconds,
                                r.progress.rounds, r.progress.trials)) +
         "</dl></header>\n";
}

}  // namespace

std::string page(const TuneResult& r, const Facts& f) {
  return whole_page(f.model + ": tuned", header(r, f) + gain_by_kernel(r) + gain_over_time(r) +
                                             changed_decisions(r) + graph_decisions(r) +
                                             roofline(r, f) + expected_and_measured(r) +
                                             all_kernels(r) + refused_candidates(r));
}

Status write_page(const std::string& path, const TuneResult& result, const Facts& facts) {
  return write_file(path, page(result, facts));
}

}  // namespace tilewright::autotune::report
