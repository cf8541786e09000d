#include "frontends/train/step_times.h"

#include <algorithm>
#include <cstdio>

namespace tilewright::train {

namespace {

// kDone: when the rank's own parts were computed, on rank 0's clock; 0: the rank did not make the step.
enum Column : size_t { kComputing, kCommunicating, kWaiting, kDone, kColumns };

// A rank's rows begin where range_of_rank() has them: at multiples of 16 elements.
size_t padded(size_t elements) { return (elements + 15) / 16 * 16; }

}  // namespace

double RankTimes::hidden() const {
  return communicating > 0 ? std::clamp(1 - waiting / communicating, 0.0, 1.0) : 0;
}

void StepTimesLog::add(int64_t step, const StepTimes& t) {
  if (first_ < 0) first_ = step;
  if (step < first_ || step - first_ >= kMost) return;
  const auto at = static_cast<size_t>(step - first_) * kColumns;
  if (rows_.size() < at + kColumns) rows_.resize(at + kColumns);
  rows_[at + kComputing] = t.computing_seconds();
  rows_[at + kCommunicating] = t.communicating_seconds();
  rows_[at + kWaiting] = t.waiting_seconds();
  rows_[at + kDone] = static_cast<double>(t.computed + offset_) * 1e-9;
}

// Of the steps that rank 0 has.
Result<std::vector<RankTimes>> StepTimesLog::gather(const Ranks& ranks) const {
  std::vector<double> extent(2);
  if (ranks.is_first())
    extent = {static_cast<double>(first_), static_cast<double>(rows_.size() / kColumns)};
  TW_RETURN_IF_ERROR(ranks.merge(extent, "the times of steps"));
  const auto first = static_cast<int64_t>(extent[0]);
  const auto steps = static_cast<size_t>(extent[1]), size = static_cast<size_t>(ranks.size()),
             piece = padded(steps * kColumns);
  std::vector<double> all(piece * size);
  double* const own = all.data() + static_cast<size_t>(ranks.rank()) * piece;
  for (size_t s = 0; s < steps && first_ >= 0; ++s) {
    const int64_t at = (first + static_cast<int64_t>(s) - first_) * static_cast<int64_t>(kColumns);
    if (at >= 0 && at < static_cast<int64_t>(rows_.size()))
      std::copy_n(rows_.data() + at, kColumns, own + s * kColumns);
  }
  if (ranks.comm())
    TW_RETURN_IF_ERROR(ranks.comm()->all_gather(
        {DType::kFloat64, all.data(), static_cast<int64_t>(all.size())}, "the times of steps"));
  std::vector<RankTimes> found(size);
  for (size_t s = 0; s < steps; ++s) {
    double latest = 0, before = 0;
    size_t last = 0;
    for (size_t r = 0; r < size; ++r) {
      const double* row = &all[r * piece + s * kColumns];
      if (row[kDone] == 0) continue;
      RankTimes& t = found[r];
      ++t.steps;
      t.computing += row[kComputing], t.communicating += row[kCommunicating];
      t.waiting += row[kWaiting];
      if (row[kDone] > latest)
        before = latest, latest = row[kDone], last = r;
      else
        before = std::max(before, row[kDone]);
    }
    if (before == 0) continue;
    ++found[last].last;
    found[last].behind += latest - before;
  }
  for (RankTimes& t : found) {
    const auto n = static_cast<double>(std::max<int64_t>(t.steps, 1));
    t.computing /= n, t.communicating /= n, t.waiting /= n;
    t.behind /= static_cast<double>(std::max<int64_t>(t.last, 1));
  }
  return found;
}

std::string to_table(const std::vector<RankTimes>& ranks) {
  std::string text =
      "rank   steps  computing  communicating  hidden  waiting   last to compute, behind by\n";
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankTimes& t = ranks[r];
    const double part =
        100 * static_cast<double>(t.last) / static_cast<double>(std::max<int64_t>(t.steps, 1));
    char line[160];
    std::snprintf(line, sizeof line,
                  "%4zu %7lld %7.2f ms %11.2f ms %5.0f %% %5.2f ms %7.0f %% of steps, %.2f ms\n", r,
                  static_cast<long long>(t.steps), t.computing * 1e3, t.communicating * 1e3,
                  100 * t.hidden(), t.waiting * 1e3, part, t.behind * 1e3);
    text += line;
  }
  return text;
}

}  // namespace tilewright::train
