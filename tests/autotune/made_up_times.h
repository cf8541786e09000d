// Times that nobody measured: each schedule of a kernel takes what a seed says, so that what a tuner decides follows
// from the rules alone. Forms are run once, for what they call.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "autotune/measure/paired_runs.h"
#include "ir/program/kernel_name.h"
#include "runtime/core/fnv.h"

namespace tilewright::autotune {

struct MadeUpTimes {
  uint32_t seed = 0;
  double us = 100;  // of a call, about
  // What a pair of runs differs by from these times: a factor of both, and one of the second form alone.
  std::function<double(size_t pair)> drift, error;
  size_t measured = 0;  // how often two forms were compared

  // Of one call. Schedules differ by much, by what just counts, by less, or not at all.
  double of(const std::string& kernel, const std::string& schedule) const {
    constexpr double kFactors[] = {0.6, 0.75, 0.9, 0.98, 0.995, 1, 1, 1, 1.004, 1.05, 1.2, 1.6};
    const std::string name = ir::unnumbered_name(kernel), text = std::to_string(seed) + name;
    const double about = us * (1 + static_cast<double>(fnv1a(text) % 5) / 4);
    return about * kFactors[fnv1a(text + "\n" + schedule) % std::size(kFactors)];
  }

  RunInTurn as_measure() {
    return [this](Session& a, Session& b, InputSets inputs, const PairedOptions& options,
                  std::mt19937&) -> Result<PairedTimes> {
      ++measured;
      PairedTimes times;
      const size_t pairs = std::min<size_t>(options.most, std::max<size_t>(options.least, 12));
      for (const std::vector<Tensor>& set : inputs) {
        PairedTimes::OfSize of_size;
        for (const bool is_b : {false, true}) {
          TW_ASSIGN((is_b ? of_size.b : of_size.a), times_of(is_b ? b : a, set, is_b, pairs));
        }
        times.sizes.push_back(std::move(of_size));
      }
      return times;
    };
  }

 private:
  Result<RunTimes> times_of(Session& s, const std::vector<Tensor>& inputs, bool is_b,
                            size_t pairs) const {
    std::map<std::string, std::string> schedules;
    for (const KernelDesc& k : s.executable().variants[0].kernels) schedules[k.name] = k.schedule;
    s.set_profiling(true);
    std::vector<Tensor> outputs;
    TW_RETURN_IF_ERROR(s.run(inputs, outputs));
    RunTimes times{.runs = std::vector<double>(pairs, 5.0)};  // what is no kernel's
    for (const Profiler::Row& r : s.profile().rows()) {
      RunTimes::Row row{r.nodes, r.kernel, r.calls, r.flops, r.bytes};
      for (size_t i = 0; i < pairs; ++i) {
        row.us.push_back(of(r.kernel, schedules.at(r.kernel)) * static_cast<double>(r.calls) *
                         (drift ? drift(i) : 1) * (is_b && error ? error(i) : 1));
        times.runs[i] += row.us.back();
      }
      times.rows.push_back(std::move(row));
    }
    s.set_profiling(false);
    return times;
  }
};

}  // namespace tilewright::autotune
