#include "frontends/train/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "autotune/report/html.h"
#include "autotune/report/page.h"
#include "autotune/report/plot.h"

namespace tilewright::train {

namespace {

namespace report = autotune::report;
constexpr size_t kMostPoints = 400;

// Steps one after the other as one point.
struct Bucket {
  double step = 0, mean = 0, least = INFINITY, most = -INFINITY;
};
std::vector<Bucket> buckets(const std::vector<LogLine>& lines,
                            const std::function<double(const LogLine&)>& value) {
  const size_t each = (lines.size() + kMostPoints - 1) / kMostPoints;
  std::vector<Bucket> all;
  for (size_t first = 0; first < lines.size(); first += each) {
    Bucket b;
    double count = 0;
    for (size_t i = first; i < std::min(first + each, lines.size()); ++i) {
      const double v = value(lines[i]);
      if (!std::isfinite(v)) continue;
      b.step += static_cast<double>(lines[i].step + 1), b.mean += v, ++count;
      b.least = std::min(b.least, v), b.most = std::max(b.most, v);
    }
    if (count == 0) continue;
    b.step /= count, b.mean /= count;
    all.push_back(b);
  }
  return all;
}

using Points = std::vector<std::pair<double, double>>;  // step, value

// A chart of means with their bands, and of points that only some steps have.
std::string chart(const char* what, const std::vector<Bucket>& means, const Points& points,
                  const std::vector<std::pair<const char*, const char*>>& legend) {
  std::vector<double> steps, values;
  for (const Bucket& b : means) {
    steps.push_back(b.step);
    for (const double v : {b.least, b.most}) values.push_back(v);
  }
  for (const auto& [step, value] : points) steps.push_back(step), values.push_back(value);
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  // Where values are of several orders, all are to be seen.
  const bool log = *low > 0 && *high > 30 * *low;
  report::Plot plot(what, {.height = 340}, report::axis_over("step", steps, false),
                    report::axis_over(what, values, log));
  std::vector<std::array<double, 3>> band;
  Points curve;
  for (const Bucket& b : means) {
    band.push_back({b.step, b.least, b.most});
    curve.emplace_back(b.step, b.mean);
  }
  plot.band(band, "band");
  plot.curve(curve, "curve");
  plot.curve(points, "second");
  for (const auto& [step, value] : points)
    if (points.size() <= kMostPoints)
      plot.point(step, value, "confirmed",
                 report::printed("after step %.0f: ", step) + report::number(value));
  plot.legend(legend);
  return plot.svg();
}

Points held_back(const std::vector<LogLine>& lines, std::optional<double> LogLine::* value) {
  Points points;
  for (const LogLine& l : lines)
    if (l.*value && std::isfinite(*(l.*value)))
      points.emplace_back(static_cast<double>(l.step + 1), *(l.*value));
  return points;
}

std::string header(const Job& job, const std::vector<LogLine>& lines) {
  const LogLine& last = lines.back();
  std::string end = report::printed("%.6g", last.loss);
  if (last.held_back_loss) end += report::printed("; held back %.6g", *last.held_back_loss);
  if (last.held_back_accuracy)
    end += report::printed(", accuracy %.2f %%", 100 * *last.held_back_accuracy);
  return "<header><h1>" + report::escape(job.model.filename()) +
         "</h1>\n<p>Training, as <code>tilewright train</code> did it</p>\n<dl>\n" +
         report::fact("Job", job.file.filename()) + report::fact("Loss", job.loss) +
         report::fact("Optimiser",
                      job.optimizer.name + report::printed(", lr %g", job.optimizer.lr)) +
         report::fact("Steps", std::to_string(last.step + 1) + " of " + std::to_string(job.steps) +
                                   ", each of " + std::to_string(job.batch) + " samples") +
         report::fact("Loss at the end", end) + "</dl></header>\n";
}

// How much of the communication was hidden behind computing, by step and by rank.
std::string ranks_section(const std::vector<LogLine>& lines, const std::vector<RankTimes>& ranks) {
  const auto hidden = [](const LogLine& l) {
    if (!l.communicating || !l.waiting || *l.communicating <= 0) return NAN * 1.0;
    return 100 * std::clamp(1 - *l.waiting / *l.communicating, 0.0, 1.0);
  };
  return report::section("Ranks",
                         "The part of rank 0's communication that is hidden behind computing; "
                         "means of all ranks below.",
                         chart("hidden, %", buckets(lines, hidden), {}, {}) + "<pre>" +
                             report::escape(to_table(ranks)) + "</pre>\n");
}

}  // namespace

std::string curves_page(const Job& job, const std::vector<LogLine>& lines,
                        const std::vector<RankTimes>& ranks) {
  const std::string title = job.model.filename().string() + ": trained";
  if (lines.empty())
    return report::whole_page(title, report::section("No steps", "Nothing was trained.", ""));
  const size_t each = (lines.size() + kMostPoints - 1) / kMostPoints;
  const std::string about =
      each == 1 ? "Each step's, before its update."
                : report::printed(
                      "Means of %zu steps each, and from their least to their greatest.", each);
  const Points loss = held_back(lines, &LogLine::held_back_loss),
               accuracy = held_back(lines, &LogLine::held_back_accuracy);
  std::vector<std::pair<const char*, const char*>> kinds{{"curve", "batches"}};
  if (!loss.empty()) kinds.emplace_back("second", "held-back samples");
  const auto of = [&](double LogLine::* value) {
    return buckets(lines, [value](const LogLine& l) { return l.*value; });
  };
  std::string body = header(job, lines) +
                     report::section("Loss", about, chart("loss", of(&LogLine::loss), loss, kinds));
  if (!accuracy.empty())
    body += report::section("Accuracy", "Of held-back samples: the part that is right.",
                            chart("accuracy", {}, accuracy, {}));
  body += report::section("Learning rate", "As its schedule has it.",
                          chart("learning rate", of(&LogLine::lr), {}, {})) +
          report::section("Speed", "Of steps alone, without evaluation and checkpoints.",
                          chart("samples a second", of(&LogLine::samples_per_second), {}, {}));
  if (!ranks.empty()) body += ranks_section(lines, ranks);
  return report::whole_page(title, body);
}

}  // namespace tilewright::train
