// Where each kernel stands between arithmetic and memory: Williams, Waterman and Patterson, "Roofline",
// CACM 52 (2009).
#include <algorithm>
#include <cmath>

#include "autotune/report/charts.h"
#include "autotune/report/html.h"
#include "autotune/report/page.h"
#include "autotune/report/plot.h"

namespace tilewright::autotune::report {

namespace {

struct Point {
  std::string name;
  double flops = 0, bytes = 0, usual_us = 0, best_us = 0;
  bool improved = false;
  double intensity() const { return flops / bytes; }
  double rate(double us) const { return flops / us * 1e-3; }  // 1e9 a second
};

// The slowest kernels that compute, and the others together.
std::vector<Point> points_of(const TuneResult& result) {
  std::vector<Point> points;
  Point others;
  size_t summed = 0;
  for (const TunedKernel& k : result.kernels) {
    if (k.flops <= 0 || k.bytes <= 0 || !(k.us > 0)) continue;
    Point p{k.name,    static_cast<double>(k.flops), static_cast<double>(k.bytes), k.us, k.us,
            k.improved};
    if (k.improved) p.usual_us = k.gain.a, p.best_us = k.gain.b;
    if (points.size() < kMostShown) {
      points.push_back(std::move(p));
      continue;
    }
    ++summed;
    others.flops += p.flops, others.bytes += p.bytes;
    others.usual_us += p.usual_us, others.best_us += p.best_us;
    others.improved |= p.improved;
  }
  others.name = printed("others (%zu)", summed);
  if (summed > 0) points.push_back(std::move(others));
  return points;
}

void draw_roofs(Plot& plot, const Facts& facts, const Axis& x, const Axis& y) {
  double peak = 0;
  for (const Roof& r : facts.arithmetic) {
    peak = std::max(peak, r.rate);
    plot.line(x.low, r.rate, x.high, r.rate, "roof");
    plot.text(x.high, r.rate, -6, -5, "end", r.name + ", " + number(r.rate));
  }
  // A line of the memory's rate rises by one decade a decade.
  const double run = plot.px(x.low * 10) - plot.px(x.low),
               rise = plot.py(y.low) - plot.py(y.low * 10);
  const double degrees = -std::atan2(rise, run) * 180 / 3.14159265358979;
  for (const Roof& r : facts.memory) {
    const double from = std::max(x.low, y.low / r.rate),
                 to = std::min({x.high, peak / r.rate, y.high / r.rate});
    if (from >= to) continue;
    plot.line(from, from * r.rate, to, to * r.rate, "roof");
    const double near = from * std::pow(to / from, 0.04);
    plot.text(near, near * r.rate, -4, -5, "start", r.name + ", " + number(r.rate) + " GB/s",
              degrees);
  }
}

}  // namespace

std::string roofline(const TuneResult& result, const Facts& facts) {
  const std::vector<Point> points = points_of(result);
  const std::string title = "Roofline";
  if (points.empty()) return section(title, "No kernel computes.", "");
  std::vector<double> across, up;
  for (const Point& p : points) {
    across.push_back(p.intensity());
    up.insert(up.end(), {p.rate(p.usual_us), p.rate(p.best_us)});
  }
  for (const Roof& r : facts.arithmetic) {
    up.push_back(r.rate * 1.3);  // room for its name
    for (const Roof& m : facts.memory) across.push_back(r.rate / m.rate);
  }
  const Axis x = axis_over("operations a byte of the operands", across, true),
             y = axis_over("achieved, 1e9 operations a second", up, true);
  Plot plot(title, {.height = 520}, x, y);
  draw_roofs(plot, facts, x, y);
  for (const Point& p : points) {
    const std::string name = escape(p.name);
    const auto tip = [&](const char* form, double us) {
      return name + printed(", %s: %s us, %sG operations a second, %s a byte", form,
                            number(us).c_str(), number(p.rate(us)).c_str(),
                            number(p.intensity()).c_str());
    };
    if (p.improved)
      plot.line(p.intensity(), p.rate(p.usual_us), p.intensity(), p.rate(p.best_us), "joint");
    plot.point(p.intensity(), p.rate(p.usual_us), "usual", tip("usual", p.usual_us));
    if (p.improved) plot.point(p.intensity(), p.rate(p.best_us), "tuned", tip("tuned", p.best_us));
  }
  constexpr size_t kLabels = 10, kLabelBytes = 30;
  for (size_t i = 0; i < std::min(points.size(), kLabels); ++i)
    plot.label_beside(points[i].intensity(), points[i].rate(points[i].best_us),
                      shorten(points[i].name, kLabelBytes));
  plot.legend({{"usual", "usual schedule"}, {"tuned", "tuned"}, {"roof", "measured peaks"}});
  return section(title,
                 "Operands count once, as if caches held them: a kernel above the line of memory "
                 "finds them in a cache. Kernels that only move data are left out.",
                 plot.svg());
}

}  // namespace tilewright::autotune::report
