#include "autotune/paired_runs.h"

#include <algorithm>

#include "autotune/check/compare_elements.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

Status check_equal(const Tensor& a, const Tensor& b, size_t output) {
  const std::string where = "output " + std::to_string(output);
  if (a.shape() != b.shape()) return invalid("another shape than with the usual schedules", where);
  const auto difference = first_difference(a.dtype(), b.data_as<const uint8_t>(),
                                           a.data_as<const uint8_t>(), a.element_count(), false);
  if (!difference) return {};
  return invalid(std::to_string(difference->found) + " instead of " +
                     std::to_string(difference->expected) + " at element " +
                     std::to_string(difference->element),
                 where);
}

// A call that only some runs make takes no time in the others.
void add_rows(RunTimes& times, const std::vector<Profiler::Row>& rows) {
  for (const Profiler::Row& r : rows) {
    auto it = std::find_if(times.rows.begin(), times.rows.end(), [&](const RunTimes::Row& known) {
      return known.nodes == r.nodes && known.kernel == r.kernel;
    });
    if (it == times.rows.end()) it = times.rows.insert(it, {r.nodes, r.kernel, {}});
    it->us.resize(times.runs.size() - 1, 0.0);
    it->us.push_back(static_cast<double>(r.nanoseconds) * 1e-3);
  }
  for (RunTimes::Row& r : times.rows) r.us.resize(times.runs.size(), 0.0);
}

Status run_once(Session& s, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                RunTimes* times) {
  if (!times) return s.run(inputs, outputs);
  s.set_profiling(true);
  const int64_t start = now_nanoseconds();
  TW_RETURN_IF_ERROR(s.run(inputs, outputs));
  times->runs.push_back(static_cast<double>(now_nanoseconds() - start) * 1e-3);
  add_rows(*times, s.profile().rows());
  s.set_profiling(false);
  return {};
}

// What the rows that `is_wanted` take together, run by run; nothing where there is no such row.
template <typename F>
std::vector<double> sum_of(const RunTimes& times, F&& is_wanted) {
  constexpr double kTick = 1e-3;  // no time is 0
  std::vector<double> sums;
  for (const RunTimes::Row& r : times.rows) {
    if (!is_wanted(r)) continue;
    sums.resize(r.us.size(), kTick);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += r.us[i];
  }
  return sums;
}

}  // namespace

Comparison PairedTimes::kernel(const std::string& name) const {
  const auto is_it = [&](const RunTimes::Row& r) { return r.kernel == name; };
  const std::vector<double> x = sum_of(a, is_it), y = sum_of(b, is_it);
  return x.size() == y.size() ? compare(x, y) : compare({}, {});
}

Comparison PairedTimes::nodes(const std::set<std::string>& of_a,
                              const std::set<std::string>& of_b) const {
  const std::vector<double> x =
      sum_of(a, [&](const RunTimes::Row& r) { return of_a.count(r.nodes) != 0; });
  const std::vector<double> y =
      sum_of(b, [&](const RunTimes::Row& r) { return of_b.count(r.nodes) != 0; });
  return x.size() == y.size() ? compare(x, y) : compare({}, {});
}

Result<PairedTimes> run_in_turn(Session& a, Session& b, std::span<const Tensor> inputs,
                                const PairedOptions& options, std::mt19937& random) {
  PairedTimes times;
  std::vector<Tensor> of_a, of_b;
  TW_RETURN_IF_ERROR(run_once(a, inputs, of_a, nullptr));
  TW_RETURN_IF_ERROR(run_once(b, inputs, of_b, nullptr));
  for (size_t i = 0; i < of_a.size(); ++i) TW_RETURN_IF_ERROR(check_equal(of_a[i], of_b[i], i));
  const int64_t end = now_nanoseconds() + static_cast<int64_t>(options.seconds * 1e9);
  for (size_t n = 0; n < options.most && (n < options.least || now_nanoseconds() < end); ++n) {
    if (options.stop && options.stop()) break;
    const bool a_first = random() % 2 == 0;
    for (const bool is_a : {a_first, !a_first}) {
      Session& s = is_a ? a : b;
      std::vector<Tensor>& outputs = is_a ? of_a : of_b;
      TW_RETURN_IF_ERROR(run_once(s, inputs, outputs, nullptr));
      TW_RETURN_IF_ERROR(run_once(s, inputs, outputs, is_a ? &times.a : &times.b));
    }
  }
  return times;
}

}  // namespace tilewright::autotune
