// A chart as inline SVG: two axes, and marks in their units. Colours are classes of the page's style
// sheet (report.cpp).
#pragma once

#include <array>
#include <string>
#include <vector>

namespace tilewright::autotune::report {

struct Axis {
  // With its unit: "measured, us a call".
  std::string label;
  double low = 0, high = 1;
  bool log = false;
};
// An axis on which all values are seen; of a logarithmic one, those above 0 count.
Axis axis_over(std::string label, const std::vector<double>& values, bool log);

// Pixels: the size of the drawing, and what lies around the area of the marks.
struct Frame {
  double width = 960, height = 420;
  double left = 72, right = 24, top = 40, bottom = 52;
};

class Plot {
 public:
  // `what` is the chart's name for those who do not see it.
  Plot(const std::string& what, Frame frame, Axis x, Axis y, bool y_ticks = true);

  // Marks of a class; `tip` (escaped already) shows under the pointer. Values outside the axes lie on
  // their ends.
  void point(double x, double y, const char* kind, const std::string& tip);
  void line(double x0, double y0, double x1, double y1, const char* kind);
  void steps(const std::vector<std::pair<double, double>>& at, const char* kind);
  // From point to point.
  void curve(const std::vector<std::pair<double, double>>& at, const char* kind);
  // Filled, between a low and a high value at each x: {x, low, high}.
  void band(const std::vector<std::array<double, 3>>& at, const char* kind);
  // From y - half to y + half, in pixels around y.
  void bar(double x0, double x1, double y, double half, const char* kind, const std::string& tip);
  // An interval with ends.
  void interval_x(double low, double high, double y);
  void interval_y(double x, double low, double high);

  // Beside a point, where no label is yet; else none is drawn.
  void label_beside(double x, double y, const std::string& text);
  // In pixels from a point; anchor: start, middle or end; turned by degrees.
  void text(double x, double y, double dx, double dy, const char* anchor, const std::string& text,
            double degrees = 0);
  // Left of the area.
  void row_name(double y, const std::string& name);
  void legend(const std::vector<std::pair<const char*, const char*>>& kinds_and_names);

  double px(double x) const { return place(x_, x, frame_.left, frame_.width - frame_.right); }
  double py(double y) const { return place(y_, y, frame_.height - frame_.bottom, frame_.top); }
  std::string svg() const { return svg_ + "</svg>\n"; }

 private:
  struct Box {
    double x0, y0, x1, y1;
  };
  static double place(const Axis& axis, double value, double from, double to);
  void put_text(double x, double y, const char* anchor, const std::string& text,
                const std::string& more);
  bool is_free(const Box& box) const;

  Frame frame_;
  Axis x_, y_;
  std::vector<Box> taken_;
  std::string svg_;
};

}  // namespace tilewright::autotune::report
