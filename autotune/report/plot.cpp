#include "autotune/report/plot.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "autotune/report/html.h"

namespace tilewright::autotune::report {

namespace {

constexpr double kCharacter = 6.4;  // pixels of the labels' font, on average

// 1, 2 and 5 times powers of ten: the nearest one below, and the one after.
double round_down(double n) {
  const double power = std::pow(10, std::floor(std::log10(n) + 1e-9));
  for (const double factor : {5, 2})
    if (n >= factor * power * (1 - 1e-9)) return factor * power;
  return power;
}
double next_round(double n) {
  const double below = round_down(n), power = std::pow(10, std::floor(std::log10(below) + 1e-9));
  return below > 4 * power ? 10 * power : below > 1.5 * power ? 5 * power : 2 * power;
}

std::vector<double> ticks_of(const Axis& a) {
  std::vector<double> ticks;
  if (a.log) {
    const bool all = a.high / a.low < 2000;  // else powers of ten alone, and of many some
    const double every = std::max(1.0, std::ceil(std::log10(a.high / a.low) / 12));
    for (double t = a.low; t <= a.high * (1 + 1e-9); t = next_round(t)) {
      const double power = std::round(std::log10(t));
      if (all || (std::abs(std::log10(t) - power) < 1e-6 && std::fmod(power, every) == 0))
        ticks.push_back(t);
    }
    return ticks;
  }
  const double step = next_round((a.high - a.low) / 8);
  for (double i = std::ceil(a.low / step - 1e-9); i * step <= a.high + 1e-9 * step; ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

// There is room for seven letters beside an axis.
std::string tick_text(double t) {
  return std::abs(t) < 1e7 && (t == 0 || std::abs(t) > 1e-5) ? number(t) : printed("%.0e", t);
}

}  // namespace

Axis axis_over(std::string label, const std::vector<double>& values, bool log) {
  Axis a{std::move(label), log ? 1.0 : 0.0, log ? 10.0 : 1.0, log};
  double low = INFINITY, high = -INFINITY;
  for (const double v : values) {
    if (!std::isfinite(v) || (log && v <= 0)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low > high) return a;
  if (log) {
    a.low = round_down(0.95 * low);  // marks stand clear of the axes
    high *= 1.05;
    a.high = round_down(high) < high ? next_round(high) : high;
    if (a.high <= a.low) a.high = next_round(a.low);
    return a;
  }
  a.low = std::min(low, 0.0);
  a.high = std::max(high, 0.0);
  if (a.high <= a.low) a.high = a.low + 1;
  const double room = 0.04 * (a.high - a.low);
  if (a.low < 0) a.low -= room;
  a.high += room;
  return a;
}

Plot::Plot(const std::string& what, Frame frame, Axis x, Axis y, bool y_ticks)
    : frame_(frame), x_(std::move(x)), y_(std::move(y)) {
  svg_ = printed("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", frame.width,
                 frame.height) +
         escape(what) + "\">\n";
  const double bottom = frame.height - frame.bottom, right = frame.width - frame.right;
  for (const double t : ticks_of(x_)) {
    svg_ += printed("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", px(t),
                    px(t), frame.top, bottom);
    put_text(px(t), bottom + 17, "middle", tick_text(t), " class=\"tick\"");
  }
  if (y_ticks)
    for (const double t : ticks_of(y_)) {
      svg_ += printed("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                      frame.left, right, py(t), py(t));
      put_text(frame.left - 7, py(t) + 4, "end", tick_text(t), " class=\"tick\"");
    }
  svg_ += printed("<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                  frame.left, right, bottom, bottom);
  put_text((frame.left + right) / 2, frame.height - 12, "middle", x_.label, "");
  const double middle = (frame.top + bottom) / 2;
  put_text(16, middle, "middle", y_.label, printed(" transform=\"rotate(-90 16 %.1f)\"", middle));
}

double Plot::place(const Axis& a, double value, double from, double to) {
  const double v = std::clamp(value, a.low, a.high);
  const double part =
      a.log ? std::log(v / a.low) / std::log(a.high / a.low) : (v - a.low) / (a.high - a.low);
  return from + part * (to - from);
}

void Plot::put_text(double x, double y, const char* anchor, const std::string& text,
                    const std::string& more) {
  svg_ += printed("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", x, y, anchor) + more + ">" +
          escape(text) + "</text>\n";
}

void Plot::point(double x, double y, const char* kind, const std::string& tip) {
  svg_ +=
      printed("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>", kind, px(x), py(y)) +
      tip + "</title></circle>\n";
  taken_.push_back({px(x) - 5, py(y) - 5, px(x) + 5, py(y) + 5});
}
void Plot::line(double x0, double y0, double x1, double y1, const char* kind) {
  svg_ += printed("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind,
                  px(x0), py(y0), px(x1), py(y1));
}
void Plot::steps(const std::vector<std::pair<double, double>>& at, const char* kind) {
  if (at.empty()) return;
  svg_ += printed("<path class=\"%s\" d=\"M%.1f %.1f", kind, px(at[0].first), py(at[0].second));
  for (const auto& [x, y] : at) svg_ += printed("H%.1fV%.1f", px(x), py(y));
  svg_ += "\"/>\n";
}
void Plot::curve(const std::vector<std::pair<double, double>>& at, const char* kind) {
  if (at.empty()) return;
  std::string path;
  for (const auto& [x, y] : at)
    path += printed("%s%.1f %.1f", path.empty() ? "M" : "L", px(x), py(y));
  svg_ += printed("<path class=\"%s\" d=\"", kind) + path + "\"/>\n";
}
void Plot::band(const std::vector<std::array<double, 3>>& at, const char* kind) {
  if (at.empty()) return;
  std::string path;
  for (const auto& [x, low, high] : at)
    path += printed("%s%.1f %.1f", path.empty() ? "M" : "L", px(x), py(high));
  for (size_t i = at.size(); i-- > 0;) path += printed("L%.1f %.1f", px(at[i][0]), py(at[i][1]));
  svg_ += printed("<path class=\"%s\" d=\"", kind) + path + "Z\"/>\n";
}
void Plot::bar(double x0, double x1, double y, double half, const char* kind,
               const std::string& tip) {
  const double left = std::min(px(x0), px(x1));
  svg_ +=
      printed("<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"1.5\">",
              kind, left, py(y) - half, std::abs(px(x1) - px(x0)), 2 * half) +
      "<title>" + tip + "</title></rect>\n";
}
void Plot::interval_x(double low, double high, double y) {
  const double a = px(low), b = px(high), at = py(y);
  svg_ +=
      printed("<path class=\"interval\" d=\"M%.1f %.1fH%.1fM%.1f %.1fV%.1fM%.1f %.1fV%.1f\"/>\n", a,
              at, b, a, at - 4, at + 4, b, at - 4, at + 4);
}
void Plot::interval_y(double x, double low, double high) {
  const double a = py(low), b = py(high), at = px(x);
  svg_ +=
      printed("<path class=\"interval\" d=\"M%.1f %.1fV%.1fM%.1f %.1fH%.1fM%.1f %.1fH%.1f\"/>\n",
              at, a, b, at - 4, a, at + 4, at - 4, b, at + 4);
}

bool Plot::is_free(const Box& b) const {
  return b.x0 > frame_.left && b.x1 < frame_.width - frame_.right && b.y0 > frame_.top &&
         b.y1 < frame_.height - frame_.bottom &&
         std::none_of(
             taken_.begin(), taken_.end(),
             [&](const Box& t) {
               return b.x0 < t.x1 && t.x0 < b.x1 && b.y0 < t.y1 && t.y0 < b.y1;
             });
}
void Plot::label_beside(double x, double y, const std::string& text) {
  const double wide = kCharacter * static_cast<double>(text.size());
  const double at = px(x), high = py(y);
  for (const auto& [left, base] : {std::pair{at + 8, high + 4},
                                   {at - 8 - wide, high + 4},
                                   {at - wide / 2, high - 9},
                                   {at - wide / 2, high + 18}}) {
    const Box box{left, base - 11, left + wide, base + 3};
    if (!is_free(box)) continue;
    taken_.push_back(box);
    return put_text(left, base, "start", text, " class=\"tick\"");
  }
}
void Plot::text(double x, double y, double dx, double dy, const char* anchor,
                const std::string& text, double degrees) {
  const double left = px(x) + dx, base = py(y) + dy;
  put_text(left, base, anchor, text,
           printed(" class=\"tick\" transform=\"rotate(%.1f %.1f %.1f)\"", degrees, left, base));
}
void Plot::row_name(double y, const std::string& name) {
  const auto most = static_cast<size_t>((frame_.left - 40) / kCharacter);
  put_text(frame_.left - 8, py(y) + 4, "end", shorten(name, most), "");
}
void Plot::legend(const std::vector<std::pair<const char*, const char*>>& kinds) {
  double x = frame_.left;
  for (const auto& [kind, name] : kinds) {
    const std::string_view k = kind;
    const bool is_line =
        k == "interval" || k == "curve" || k == "second" || k == "roof" || k == "diagonal";
    svg_ += is_line ? printed("<path class=\"%s\" d=\"M%.1f 16h14\"/>", kind, x)
                    : printed("<circle class=\"%s\" cx=\"%.1f\" cy=\"16\" r=\"5\"/>", kind, x + 7);
    put_text(x + 20, 20, "start", name, "");
    x += 46 + kCharacter * static_cast<double>(std::string(name).size());
  }
}

}  // namespace tilewright::autotune::report
