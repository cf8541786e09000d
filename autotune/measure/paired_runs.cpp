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

// Of `runs` in a row, which count as one. A call that only some make takes no time in the others.
void add_rows(RunTimes& times, const std::vector<Profiler::Row>& rows, int runs) {
  for (const Profiler::Row& r : rows) {
    auto it = std::find_if(times.rows.begin(), times.rows.end(), [&](const RunTimes::Row& known) {
      return known.nodes == r.nodes && known.kernel == r.kernel;
    });
    if (it == times.rows.end()) it = times.rows.insert(it, {.nodes = r.nodes, .kernel = r.kernel});
    it->calls = r.calls / runs, it->flops = r.flops / runs, it->bytes = r.bytes / runs;
    it->us.resize(times.runs.size() - 1, 0.0);
    it->us.push_back(static_cast<double>(r.nanoseconds) * 1e-3 / runs);
  }
  for (RunTimes::Row& r : times.rows) r.us.resize(times.runs.size(), 0.0);
}

Status run_untimed(Session& s, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                   int runs) {
  for (int i = 0; i < runs; ++i) TW_RETURN_IF_ERROR(s.run(inputs, outputs));
  return {};
}
// `runs` in a row as one.
Status run_timed(Session& s, std::span<const Tensor> inputs, std::vector<Tensor>& outputs, int runs,
                 RunTimes& times) {
  s.set_profiling(true);
  const int64_t start = now_nanoseconds();
  TW_RETURN_IF_ERROR(run_untimed(s, inputs, outputs, runs));
  times.runs.push_back(static_cast<double>(now_nanoseconds() - start) * 1e-3 / runs);
  add_rows(times, s.profile().rows(), runs);
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

// Runs of one form in a row, of which the last are timed.
struct Turn {
  int untimed, timed;
};
// Until caches hold what they hold where a model runs alone, and nothing of the other form's: the last
// one takes several runs to be so. Constants that it cannot hold are read from memory in any run.
Turn turn_of(const Session& s) {
  constexpr int64_t kMostKept = int64_t{64} << 20;
  return s.executable().constants_bytes <= kMostKept ? Turn{3, 3} : Turn{1, 2};
}

// At one size.
class PairedRuns {
 public:
  PairedRuns(Session& a, Session& b, std::span<const Tensor> inputs, const PairedOptions& options)
      : a_(a), b_(b), turn_(turn_of(a)), inputs_(inputs), options_(options) {}

  Result<PairedTimes::OfSize> run(std::mt19937& random) {
    // A session's first run takes its memory. Were it always a's that comes first, one of both would
    // have the better place at every placement: short kernels differed by 4 % from themselves.
    const bool a_first = random() % 2 == 0;
    for (const bool is_a : {a_first, !a_first})
      TW_RETURN_IF_ERROR(run_untimed(is_a ? a_ : b_, inputs_, is_a ? of_a_ : of_b_, 1));
    TW_RETURN_IF_ERROR(choose_runs());
    for (size_t i = 0; i < of_a_.size(); ++i)
      TW_RETURN_IF_ERROR(check_equal(of_a_[i], of_b_[i], i));
    start_ = now_nanoseconds();
    while (!has_enough() && !(options_.stop && options_.stop()))
      TW_RETURN_IF_ERROR(both(random() % 2 == 0));
    if (quiet_ < std::min(options_.least, disturbed_.size())) return std::move(times_);
    leave_out(disturbed_, times_.a);
    leave_out(disturbed_, times_.b);
    return std::move(times_);
  }

 private:
  bool has_enough() const {
    const double spent = static_cast<double>(now_nanoseconds() - start_) * 1e-9;
    const bool in_vain = disturbed_.size() >= options_.least && spent >= 2 * options_.seconds;
    return quiet_ >= options_.most || (spent >= options_.seconds && quiet_ >= options_.least) ||
           in_vain;
  }
  Status both(bool a_first) {
    constexpr double kLost = 0.01;  // of the time: runs that lost more are disturbed
    const int64_t lost = lost_nanoseconds(), since = now_nanoseconds();
    TW_RETURN_IF_ERROR(turn(a_first));
    TW_RETURN_IF_ERROR(turn(!a_first));
    const auto took = static_cast<double>(now_nanoseconds() - since);
    const bool disturbed = static_cast<double>(lost_nanoseconds() - lost) > kLost * took;
    const size_t pairs = times_.a.runs.size();
    if (!disturbed) quiet_ += pairs - disturbed_.size();
    disturbed_.resize(pairs, disturbed);
    return {};
  }
  // Reading the clock and the profile between two runs takes the time of a short one, and leaves caches and
  // branch predictors another state than a run before does: a concat of 1.4 us looked 13 % faster with vectors
  // that made it 4 % slower, run after run. So short runs are timed many in a row.
  Status choose_runs() {
    constexpr double kLong = 1e5;  // nanoseconds
    const int64_t start = now_nanoseconds();
    TW_RETURN_IF_ERROR(run_untimed(a_, inputs_, of_a_, 1));
    const auto took = static_cast<double>(std::max<int64_t>(now_nanoseconds() - start, 1));
    runs_ = static_cast<int>(std::clamp(kLong / took, 1.0, 100.0));
    return {};
  }
  Status turn(bool is_a) {
    Session& s = is_a ? a_ : b_;
    std::vector<Tensor>& outputs = is_a ? of_a_ : of_b_;
    TW_RETURN_IF_ERROR(run_untimed(s, inputs_, outputs, turn_.untimed * runs_));
    for (int i = 0; i < turn_.timed; ++i)
      TW_RETURN_IF_ERROR(run_timed(s, inputs_, outputs, runs_, is_a ? times_.a : times_.b));
    return {};
  }

  Session &a_, &b_;
  const Turn turn_;
  int runs_ = 1;  // in a row, timed as one
  const std::span<const Tensor> inputs_;
  const PairedOptions& options_;
  PairedTimes::OfSize times_;
  std::vector<Tensor> of_a_, of_b_;
  std::vector<bool> disturbed_;  // by pair
  size_t quiet_ = 0;
  int64_t start_ = 0;
};

}  // namespace

Comparison PairedTimes::runs() const {
  std::vector<PairedSums::OfSize> all;
  for (const OfSize& t : sizes) all.push_back({t.a.runs, t.b.runs});
  return compare_all(std::move(all));
}

std::vector<PairedSums::OfSize> PairedTimes::pairs(const std::set<std::string>& kernels) const {
  const auto is_one = [&](const RunTimes::Row& r) { return kernels.count(r.kernel) != 0; };
  return sums(*this, is_one, is_one);
}

Comparison PairedTimes::kernels(const std::set<std::string>& names) const {
  return compare_all(pairs(names));
}

Comparison PairedTimes::nodes(const std::set<std::string>& of_a,
                              const std::set<std::string>& of_b) const {
  return compare_all(sums(
      *this, [&](const RunTimes::Row& r) { return of_a.count(r.nodes) != 0; },
      [&](const RunTimes::Row& r) { return of_b.count(r.nodes) != 0; }));
}

Result<PairedTimes> run_in_turn(Session& a, Session& b, InputSets inputs,
                                const PairedOptions& options, std::mt19937& random) {
  if (options.measure) return options.measure(a, b, inputs, options, random);
  PairedTimes times;
  for (const std::vector<Tensor>& set : inputs) {
    TW_ASSIGN(PairedTimes::OfSize of_size, PairedRuns(a, b, set, options).run(random));
    times.sizes.push_back(std::move(of_size));
  }
  return times;
}

}  // namespace tilewright::autotune
