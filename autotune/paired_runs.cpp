#include "autotune/paired_runs.h"

#include <algorithm>
#include <cmath>

#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

// The element as a number; 0 for types that are compared by their bytes.
double number(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kFloat32: return t.data_as<const float>()[i];
    case DType::kFloat64: return t.data_as<const double>()[i];
    default: return 0;
  }
}

// Other orders of sums move results by some roundings each; a wrong schedule moves them by all they
// are. Between these the bound is generous: four thousand roundings of the largest result.
Status check_equal(const Tensor& a, const Tensor& b, size_t output) {
  constexpr double kRoundings = 4096;
  const std::string where = "output " + std::to_string(output);
  if (a.shape() != b.shape()) return invalid("another shape than with the usual schedules", where);
  if (a.dtype() != DType::kFloat32 && a.dtype() != DType::kFloat64) {
    const auto *x = a.data_as<const uint8_t>(), *y = b.data_as<const uint8_t>();
    return std::equal(x, x + a.bytes(), y)
               ? Status{}
               : invalid("other elements than with the usual schedules", where);
  }
  const double unit = a.dtype() == DType::kFloat32 ? 6e-8 : 1.2e-16;
  double largest = 0;
  for (int64_t i = 0; i < a.element_count(); ++i)
    if (std::isfinite(number(a, i))) largest = std::max(largest, std::abs(number(a, i)));
  for (int64_t i = 0; i < a.element_count(); ++i) {
    const double x = number(a, i), y = number(b, i);
    const bool same = std::isfinite(x) ? std::abs(x - y) <= kRoundings * unit * largest
                      : std::isnan(x)  ? std::isnan(y)
                                       : x == y;
    if (!same)
      return invalid(std::to_string(y) + " instead of " + std::to_string(x) + " at element " +
                         std::to_string(i),
                     where);
  }
  return {};
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
