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

Status run_once(Session& s, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                RunTimes* times) {
  if (!times) return s.run(inputs, outputs);
  s.set_profiling(true);
  const int64_t start = now_nanoseconds();
  TW_RETURN_IF_ERROR(s.run(inputs, outputs));
  times->runs.push_back(static_cast<double>(now_nanoseconds() - start) * 1e-3);
  std::map<std::string, double> kernels;
  for (const Profiler::Row& r : s.profile().rows())
    kernels[r.kernel] += static_cast<double>(r.nanoseconds) * 1e-3;
  s.set_profiling(false);
  for (const auto& [name, us] : kernels) times->kernels[name].push_back(us);
  return {};
}

}  // namespace

Comparison PairedTimes::kernel(const std::string& name) const {
  const auto x = a.kernels.find(name), y = b.kernels.find(name);
  if (x == a.kernels.end() || y == b.kernels.end() || x->second.size() != y->second.size())
    return compare({}, {});
  return compare(x->second, y->second);
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
