#include "frontends/train/scaling.h"

#include <algorithm>
#include <charconv>

#include "autotune/report/html.h"
#include "autotune/report/page.h"
#include "autotune/report/plot.h"

namespace tilewright::train {

namespace report = autotune::report;

// The last call of a step is that of its losses, whose bytes do not count.
Scaled scale(const StepTimeline& timeline, const distributed::RingCost& cost, int ranks,
             int64_t samples_a_rank, bool shares_cpus) {
  Scaled s{.ranks = ranks, .samples = samples_a_rank * ranks, .computing = timeline.ended};
  if (ranks < 2) return s;
  const double ring_steps = 2.0 * (ranks - 1);
  double end = 0, cpu = 0;
  for (size_t k = 0; k < timeline.starts.size(); ++k) {
    const double takes = distributed::all_reduce_seconds(cost, timeline.bytes[k], ranks),
                 takes_cpu = shares_cpus ? cost.cpu_per_byte * ring_steps *
                                               static_cast<double>(timeline.bytes[k]) / ranks
                                         : 0;
    const double begin = std::max(timeline.starts[k] + cpu, end);
    // While computing goes on, it gives up the CPU's time.
    const double overlapped =
        std::clamp((timeline.computed + cpu - begin) / std::max(takes, 1e-12), 0.0, 1.0);
    cpu += takes_cpu * overlapped;
    end = begin + takes;
    s.communicating += takes;
  }
  const double computed = timeline.computed + cpu,
               losses = distributed::all_reduce_seconds(cost, 0, ranks);
  s.computing += cpu;
  s.communicating += losses;
  s.waiting = std::max(end - computed, 0.0) + losses;
  return s;
}

Result<distributed::RingCost> read_link(const std::string& text) {
  struct Unit {
    const char* name;
    double factor;
  };
  const auto number = [](const std::string& of, std::initializer_list<Unit> units) {
    double value = 0;
    const auto [end, error] = std::from_chars(of.data(), of.data() + of.size(), value);
    for (const Unit& u : units)
      if (error == std::errc() && value > 0 && std::string(end, of.data() + of.size()) == u.name)
        return value * u.factor;
    return 0.0;
  };
  const size_t comma = std::min(text.find(','), text.size());
  const double latency = number(text.substr(0, comma), {{"us", 1e-6}, {"ms", 1e-3}}),
               bits = comma < text.size()
                          ? number(text.substr(comma + 1), {{"mbit", 1e6}, {"gbit", 1e9}})
                          : 0;
  if (latency <= 0 || bits <= 0)
    return invalid("'" + text + "' is no link; one is a latency and a rate: 50us,1gbit");
  return distributed::RingCost{.latency = latency, .per_byte = 8 / bits};
}

std::string to_table(const std::vector<Scaled>& rows) {
  std::string text =
      " ranks  samples  computing  communicating  waiting  hidden       step  samples/s  "
      "efficiency\n";
  if (rows.empty()) return text;
  const double alone =
      rows.front().computing / static_cast<double>(rows.front().samples / rows.front().ranks);
  const auto ms = [](double seconds) { return report::number(seconds * 1e3); };
  for (const Scaled& s : rows) {
    const auto samples = static_cast<double>(s.samples);
    const double hidden =
        s.communicating > 0 ? std::clamp(1 - s.waiting / s.communicating, 0.0, 1.0) : 1;
    text += report::printed("%6d %8lld %7s ms %11s ms %5s ms %5.0f %% %7s ms %10.1f %9.0f %%\n",
                            s.ranks, static_cast<long long>(s.samples), ms(s.computing).c_str(),
                            ms(s.communicating).c_str(), ms(s.waiting).c_str(), 100 * hidden,
                            ms(s.step()).c_str(), samples / s.step(),
                            100 * alone * samples / s.ranks / s.step());
  }
  return text;
}

std::string scaling_page(const Job& job, const distributed::RingCost& cost,
                         const std::vector<Scaled>& rows) {
  const std::string title = job.model.filename().string() + ": scaling";
  std::vector<double> ranks, speeds;
  std::vector<std::pair<double, double>> predicted, ideal;
  for (const Scaled& s : rows) {
    const double n = s.ranks, speed = static_cast<double>(s.samples) / s.step(),
                 best = static_cast<double>(s.samples) / rows.front().computing;
    ranks.push_back(n);
    speeds.push_back(speed), speeds.push_back(best);
    predicted.emplace_back(n, speed), ideal.emplace_back(n, best);
  }
  report::Plot plot("samples a second", {.height = 340}, report::axis_over("ranks", ranks, true),
                    report::axis_over("samples a second", speeds, true));
  plot.curve(ideal, "second");
  plot.curve(predicted, "curve");
  for (const auto& [n, speed] : predicted)
    plot.point(n, speed, "confirmed",
               report::printed("%.0f ranks: ", n) + report::number(speed) + " samples/s");
  plot.legend({{"curve", "predicted"}, {"second", "as many times one rank"}});
  const std::string about = report::printed(
      "Each rank computes as many samples as the one that was measured. A step of the ring takes "
      "%.1f us and %.3f ns a byte.",
      cost.latency * 1e6, cost.per_byte * 1e9);
  return report::whole_page(
      title,
      "<header><h1>" + report::escape(job.model.filename()) +
          "</h1>\n<p>A step on more ranks, as <code>tilewright train --scaling</code> "
          "predicts it</p>\n<dl>\n" +
          report::fact("Job", job.file.filename()) + "</dl></header>\n" +
          report::section("Ranks", about,
                          plot.svg() + "<pre>" + report::escape(to_table(rows)) + "</pre>\n"));
}

}  // namespace tilewright::train
