#include "autotune/report/tables.h"

#include <algorithm>

#include "autotune/report/charts.h"
#include "autotune/report/html.h"
#include "autotune/report/page.h"

namespace tilewright::autotune::report {

namespace {

// Cells come escaped.
std::string cell(const std::string& text, const char* kind = "", size_t rows = 1) {
  return "<td" + (*kind ? " class=\"" + std::string(kind) + "\"" : "") +
         (rows > 1 ? printed(" rowspan=\"%zu\"", rows) : "") + ">" + text + "</td>";
}
std::string figure(const std::string& text, size_t rows = 1) { return cell(text, "n", rows); }

struct Column {
  const char* name;
  bool is_figure = false;
};
std::string table(const std::vector<Column>& columns, const std::string& rows) {
  std::string text = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const Column& c : columns)
    text +=
        std::string("<th scope=\"col\"") + (c.is_figure ? " class=\"n\">" : ">") + c.name + "</th>";
  return text + "</tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string answer(const passes::Decision& d, size_t which) {
  return which < d.labels.size() ? escape(d.labels[which]) : std::to_string(d.values[which]);
}
std::string both(double usual, double tuned) { return number(usual) + " \u2192 " + number(tuned); }

std::string list(const passes::Answers& answers) {
  std::string text;
  for (const auto& [name, value] : answers)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  return escape(text);
}

}  // namespace

std::string changed_decisions(const TuneResult& result) {
  const auto kernels = improved_kernels(result);
  if (kernels.empty()) return "";
  std::string rows;
  const size_t shown = std::min(kernels.size(), kMostShown);
  for (size_t i = 0; i < shown; ++i) {
    const TunedKernel& k = *kernels[i];
    const size_t lines = std::max<size_t>(k.changes.size(), 1);
    for (size_t l = 0; l < lines; ++l) {
      rows += l == 0 ? "<tr class=\"first\">" + cell(escape(k.name), "name", lines) : "<tr>";
      if (l < k.changes.size()) {
        const passes::Decision& d = k.changes[l];
        rows += cell(escape(d.name)) +
                cell(answer(d, 0) + " \u2192 <strong>" + answer(d, 1) + "</strong>") +
                figure(both(d.microseconds[0], d.microseconds[1]));
      } else {
        rows += cell("") + cell("") + cell("");
      }
      if (l == 0)
        rows += figure(both(k.expected_us, k.best.expected_us), lines) +
                figure(ratio(k.gain.ratio, k.gain.low, k.gain.high), lines);
      rows += "</tr>\n";
    }
  }
  if (kernels.size() > shown) {
    double saved = 0;
    for (size_t i = shown; i < kernels.size(); ++i) saved += saved_by(*kernels[i]).us;
    rows += "<tr class=\"first\">" + cell(printed("others (%zu)", kernels.size() - shown)) +
            "<td colspan=\"5\">" + number(saved) + " us saved a run</td></tr>\n";
  }
  return section(
      "Decisions that changed",
      "Expected costs are those of <code>lower --explain</code>, in us a call: of each "
      "decision by itself, all others as usual, and of the whole form. A dash: by itself "
      "no legal schedule follows. Measured: the time of the best form to that of the "
      "usual one, with 95 % bounds.",
      table({{"kernel"},
             {"decision"},
             {"usual \u2192 tuned"},
             {"expected, by itself", true},
             {"expected, whole form", true},
             {"measured ratio", true}},
            rows));
}

std::string graph_decisions(const TuneResult& result) {
  const TunedGraph& g = result.graph;
  if (g.trials.empty()) return "";
  std::string rows;
  for (size_t i = 0; i < std::min(g.trials.size(), kMostShown); ++i) {
    const GraphTrial& t = g.trials[i];
    const std::string kept = !t.refused.empty() ? "refused: " + escape(shorten(t.refused, 300))
                             : !t.confirmed     ? ""
                             : g.improved()     ? "<strong>kept</strong>"
                                                : "given up in the last runs";
    rows += "<tr>" + cell(escape(shorten(t.alike, 200)), "name") + cell(escape(t.answer)) +
            figure(std::to_string(t.answers.size())) +
            figure(t.refused.empty() ? ratio(t.measured.ratio, t.measured.low, t.measured.high)
                                     : "\u2013") +
            cell((t.tuned ? "with tuned kernels " : "") + kept) + "</tr>\n";
  }
  if (g.trials.size() > kMostShown)
    rows += "<tr><td colspan=\"5\">" + printed("others (%zu)", g.trials.size() - kMostShown) +
            "</td></tr>\n";
  const std::string gained =
      g.improved()
          ? printed(" All that is kept together: %s of the time of the kernels that it changes.",
                    ratio(g.gain.ratio, g.gain.low, g.gain.high).c_str())
          : "";
  return section(
      "Decisions on the graph",
      "Algorithms, layouts and blocks that graph passes decide; nodes that a model repeats "
      "are answered alike. Measured: the time of the kernels that an answer changes to "
      "theirs before, with 95 % bounds." +
          gained,
      table({{"asked"}, {"answer"}, {"times", true}, {"measured ratio", true}, {"what came of it"}},
            rows));
}

std::string refused_candidates(const TuneResult& result) {
  std::string rows;
  size_t refused = 0;
  for (const TunedKernel& k : result.kernels)
    for (const Trial& t : k.trials)
      if (!t.refused.empty() && refused++ < kMostShown)
        rows += "<tr>" + cell(escape(k.name), "name") + cell(list(t.answers)) +
                cell(escape(shorten(t.refused, 300))) + "</tr>\n";
  if (refused == 0) return "";
  if (refused > kMostShown)
    rows +=
        "<tr><td colspan=\"3\">" + printed("others (%zu)", refused - kMostShown) + "</td></tr>\n";
  return section(
      "Refused candidates",
      printed("%zu measurements were passed over, and these candidates not taken.", refused),
      table({{"kernel"}, {"answers"}, {"why"}}, rows));
}

std::string all_kernels(const TuneResult& result) {
  std::string rows;
  const size_t shown = std::min(result.kernels.size(), kMostShown);
  double others_us = 0;
  size_t others_trials = 0;
  for (size_t i = 0; i < result.kernels.size(); ++i) {
    const TunedKernel& k = result.kernels[i];
    if (i >= shown) {
      others_us += k.improved ? k.gain.b : k.us;
      others_trials += k.trials.size();
      continue;
    }
    const double usual = k.improved ? k.gain.a : k.us;
    const auto rate = [&](int64_t n) { return number(static_cast<double>(n) / usual * 1e-3); };
    rows += "<tr>" + cell(escape(k.name), "name") + figure(std::to_string(k.calls)) +
            figure(number(usual)) + figure(k.improved ? number(k.gain.b) : "\u2013") +
            figure(k.improved ? ratio(k.gain.ratio, k.gain.low, k.gain.high) : "\u2013") +
            figure(rate(k.flops)) + figure(rate(k.bytes)) +
            figure(std::to_string(k.trials.size())) + "</tr>\n";
  }
  if (result.kernels.size() > shown)
    rows += "<tr>" + cell(printed("others (%zu)", result.kernels.size() - shown)) + cell("") +
            figure("") + figure(number(others_us)) + cell("") + cell("") + cell("") +
            figure(std::to_string(others_trials)) + "</tr>\n";
  return section(
      "All kernels",
      "Of a run, all calls together, the slowest first. Kernels of a very small part "
      "of a run are not tuned and not listed. GB/s: of the operands as a whole, whatever "
      "part of them is read.",
      table({{"kernel"},
             {"calls", true},
             {"usual, us", true},
             {"tuned, us", true},
             {"ratio, with 95 % bounds", true},
             {"usual, GFLOP/s", true},
             {"usual, GB/s", true},
             {"trials", true}},
            rows));
}

}  // namespace tilewright::autotune::report
