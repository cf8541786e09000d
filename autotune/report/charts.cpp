#include "autotune/report/charts.h"

#include <algorithm>
#include <cmath>

#include "autotune/report/html.h"
#include "autotune/report/page.h"
#include "autotune/report/plot.h"

namespace tilewright::autotune::report {

Saved saved_by(const TunedKernel& k) {
  return {k.gain.a * (1 - k.gain.ratio), k.gain.a * (1 - k.gain.high), k.gain.a * (1 - k.gain.low)};
}

std::vector<const TunedKernel*> improved_kernels(const TuneResult& result) {
  std::vector<const TunedKernel*> found;
  for (const TunedKernel& k : result.kernels)
    if (k.improved) found.push_back(&k);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto* a, const auto* b) { return saved_by(*a).us > saved_by(*b).us; });
  return found;
}

std::string gain_by_kernel(const TuneResult& result) {
  const auto kernels = improved_kernels(result);
  const std::string kept =
      printed("%zu of %zu kernels got a better schedule; the others keep the usual one.",
              kernels.size(), result.kernels.size());
  if (kernels.empty()) return section("Gain by kernel", kept, "");
  struct Row {
    std::string name, tip;
    Saved saved;
    double ratio;
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < std::min(kernels.size(), kMostShown); ++i) {
    const TunedKernel& k = *kernels[i];
    rows.push_back({k.name,
                    escape(k.name) + printed(": %s us usual, %s us tuned", number(k.gain.a).c_str(),
                                             number(k.gain.b).c_str()),
                    saved_by(k), k.gain.ratio});
  }
  Row others{"others", "", {}, 1};
  double usual = 0;
  for (size_t i = kMostShown; i < kernels.size(); ++i) {
    const Saved s = saved_by(*kernels[i]);
    others.saved.us += s.us, others.saved.low += s.low, others.saved.high += s.high;
    usual += kernels[i]->gain.a;
  }
  if (kernels.size() > kMostShown) {
    others.name = printed("others (%zu)", kernels.size() - kMostShown);
    others.ratio = 1 - others.saved.us / usual;
    rows.push_back(others);
  }
  std::vector<double> values;
  for (const Row& r : rows)
    for (const double v : {r.saved.us, r.saved.low, r.saved.high}) values.push_back(v);
  const auto count = static_cast<double>(rows.size());
  Frame frame{.height = 92 + 22 * count, .left = 290, .right = 150};
  Plot plot("Gain by kernel", frame, axis_over("saved, us a run", values, false),
            {.label = "", .low = 0, .high = count}, false);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    const double y = count - static_cast<double>(i) - 0.5,
                 most = std::max(r.saved.high, r.saved.us);
    plot.row_name(y, r.name);
    plot.bar(0, r.saved.us, y, 6.5, "tuned", r.tip);
    plot.interval_x(r.saved.low, r.saved.high, y);
    plot.text(most, y, 9, 4, "start",
              number(r.saved.us) + " us, " + printed("%.1f %%", 100 * (1 - r.ratio)));
  }
  plot.legend({{"tuned", "saved: median of pairs of runs"}, {"interval", "95 % confidence"}});
  return section("Gain by kernel", kept, plot.svg());
}

std::string gain_over_time(const TuneResult& result) {
  const auto percent = [](double ratio) { return 100 * (1 - ratio); };
  std::vector<std::pair<double, double>> at{{0, 0}};
  for (const TuneProgress& p : result.rounds) at.emplace_back(p.seconds, 100 * p.saved);
  const double end = result.progress.seconds;
  const Comparison& c = result.runs;
  const double high = percent(c.low), low = std::isfinite(c.high) ? percent(c.high) : 0;
  std::vector<double> values{percent(c.ratio), low, high}, times{0, end};
  for (const auto& [s, saved] : at) values.push_back(saved);
  Plot plot("Gain over time", {.height = 340}, axis_over("time of tuning, s", times, false),
            axis_over("saved of a run, %", values, false));
  plot.line(0, 0, end, 0, "axis");
  at.emplace_back(std::max(end, at.back().first), at.back().second);
  plot.steps(at, "curve");
  plot.interval_y(end, low, high);
  plot.point(end, percent(c.ratio), "measured",
             printed("whole runs: %.2f %% saved, between %.2f %% and %.2f %%", percent(c.ratio),
                     low, high));
  plot.legend({{"curve", "by the rounds: kernels of confirmed forms"},
               {"measured", "whole runs in the end, with 95 % confidence"}});
  return section("Gain over time",
                 "A form counts once it was faster in two rounds, each beside other candidates.",
                 plot.svg());
}

std::string expected_and_measured(const TuneResult& result) {
  constexpr size_t kMostPoints = 4000;
  struct Point {
    double expected, measured;
    const char* kind;
    const TunedKernel* kernel;
  };
  std::vector<Point> points;
  std::vector<double> values;
  size_t trials = 0;
  for (const TunedKernel& k : result.kernels) trials += k.trials.size();
  const size_t step = trials / kMostPoints + 1;
  size_t n = 0;
  for (const TunedKernel& k : result.kernels) {
    const auto calls = static_cast<double>(std::max<int64_t>(k.calls, 1));
    for (const Trial& t : k.trials)
      if (n++ % step == 0 && t.measured.pairs > 0)
        points.push_back(
            {t.expected_us, t.measured.b / calls, t.confirmed ? "confirmed" : "trial", &k});
    points.push_back({k.expected_us, k.us / calls, "usual", &k});
  }
  std::erase_if(points, [](const Point& p) { return !(p.expected > 0 && p.measured > 0); });
  for (const Point& p : points) values.insert(values.end(), {p.expected, p.measured});
  Plot plot("Expected and measured times", {.height = 480},
            axis_over("expected by the analytic cost, us a call", values, true),
            axis_over("measured in the model, us a call", values, true));
  const Axis both = axis_over("", values, true);
  plot.line(both.low, both.low, both.high, both.high, "diagonal");
  const auto draw = [&](const std::string& kind) {
    for (const Point& p : points)
      if (p.kind == kind)
        plot.point(p.expected, p.measured, p.kind,
                   escape(p.kernel->name) + printed(": %s us expected, %s us measured",
                                                    number(p.expected).c_str(),
                                                    number(p.measured).c_str()));
  };
  for (const char* kind : {"trial", "usual", "confirmed"}) draw(kind);
  plot.legend({{"usual", "the usual schedules"},
               {"trial", "candidates"},
               {"confirmed", "candidates that became the best form"},
               {"diagonal", "as expected"}});
  const std::string about =
      printed("%zu measurements of candidates", trials) +
      (step > 1 ? printed(", of which one in %zu is drawn", step) : std::string()) + ".";
  return section("Expected and measured times", about, plot.svg());
}

}  // namespace tilewright::autotune::report
