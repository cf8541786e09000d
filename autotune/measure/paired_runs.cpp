#include "autotune/measure/paired_runs.h"

#include <algorithm>

#include "autotune/check/compare_elements.h"
#include "autotune/measure/lost_time.h"
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
    if (it == times.rows.end()) it = times.rows.insert(it, {.nodes = r.nodes, .kernel = r.kernel});
    it->calls = r.calls, it->flops = r.flops, it->bytes = r.bytes;
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

// Both times of the pairs that are marked are left out.
void leave_out(const std::vector<bool>& marked, RunTimes& times) {
  const auto thin = [&](std::vector<double>& us) {
    size_t kept = 0;
    for (size_t i = 0; i < us.size(); ++i)
      if (!marked[i]) us[kept++] = us[i];
    us.resize(kept);
  };
  thin(times.runs);
  for (RunTimes::Row& r : times.rows) thin(r.us);
}

template <typename A, typename B>
std::vector<PairedSums::OfSize> sums(const PairedTimes& times, A&& is_of_a, B&& is_of_b) {
  std::vector<PairedSums::OfSize> sizes;
  for (const PairedTimes::OfSize& t : times.sizes)
    sizes.push_back({sum_of(t.a, is_of_a), sum_of(t.b, is_of_b)});
  return sizes;
}
Comparison compare_all(std::vector<PairedSums::OfSize> sizes) {
  PairedSums all;
  all.add(std::move(sizes));
  return all.compare();
}

// At one size.
Result<PairedTimes::OfSize> run_pairs(Session& a, Session& b, std::span<const Tensor> inputs,
                                      const PairedOptions& options, std::mt19937& random) {
  constexpr double kLost = 0.01;  // of a pair's time: a pair that lost more is disturbed
  PairedTimes::OfSize times;
  std::vector<Tensor> of_a, of_b;
  TW_RETURN_IF_ERROR(run_once(a, inputs, of_a, nullptr));
  TW_RETURN_IF_ERROR(run_once(b, inputs, of_b, nullptr));
  for (size_t i = 0; i < of_a.size(); ++i) TW_RETURN_IF_ERROR(check_equal(of_a[i], of_b[i], i));
  std::vector<bool> disturbed;
  size_t quiet = 0;
  const int64_t start = now_nanoseconds(),
                end = start + static_cast<int64_t>(options.seconds * 1e9);
  const auto has_enough = [&](int64_t now) {
    const bool in_vain = disturbed.size() >= options.least && now >= end + (end - start);
    return quiet >= options.most || (now >= end && quiet >= options.least) || in_vain;
  };
  for (int64_t now = start; !has_enough(now) && !(options.stop && options.stop());) {
    const int64_t lost = lost_nanoseconds(), since = now;
    const bool a_first = random() % 2 == 0;
    for (const bool is_a : {a_first, !a_first}) {
      Session& s = is_a ? a : b;
      std::vector<Tensor>& outputs = is_a ? of_a : of_b;
      TW_RETURN_IF_ERROR(run_once(s, inputs, outputs, nullptr));
      TW_RETURN_IF_ERROR(run_once(s, inputs, outputs, is_a ? &times.a : &times.b));
    }
    now = now_nanoseconds();
    disturbed.push_back(static_cast<double>(lost_nanoseconds() - lost) >
                        kLost * static_cast<double>(now - since));
    quiet += !disturbed.back();
  }
  if (quiet < std::min(options.least, disturbed.size())) return times;
  leave_out(disturbed, times.a);
  leave_out(disturbed, times.b);
  return times;
}

}  // namespace

Comparison PairedTimes::runs() const {
  std::vector<PairedSums::OfSize> all;
  for (const OfSize& t : sizes) all.push_back({t.a.runs, t.b.runs});
  return compare_all(std::move(all));
}

std::vector<PairedSums::OfSize> PairedTimes::pairs(const std::string& kernel) const {
  const auto is_it = [&](const RunTimes::Row& r) { return r.kernel == kernel; };
  return sums(*this, is_it, is_it);
}

Comparison PairedTimes::kernel(const std::string& name) const { return compare_all(pairs(name)); }

Comparison PairedTimes::nodes(const std::set<std::string>& of_a,
                              const std::set<std::string>& of_b) const {
  return compare_all(sums(
      *this, [&](const RunTimes::Row& r) { return of_a.count(r.nodes) != 0; },
      [&](const RunTimes::Row& r) { return of_b.count(r.nodes) != 0; }));
}

Result<PairedTimes> run_in_turn(Session& a, Session& b, InputSets inputs,
                                const PairedOptions& options, std::mt19937& random) {
  PairedTimes times;
  for (const std::vector<Tensor>& set : inputs) {
    TW_ASSIGN(PairedTimes::OfSize of_size, run_pairs(a, b, set, options, random));
    times.sizes.push_back(std::move(of_size));
  }
  return times;
}

}  // namespace tilewright::autotune
