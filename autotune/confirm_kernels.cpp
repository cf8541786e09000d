// What was found round by round is a choice of the luckiest of many measurements (the winner's curse), of
// each kernel by itself. So all of it is measured once more, together; what does not hold up goes, and
// the rest is measured again, for forms lean on each other: one that leaves its results in memory makes
// its readers slower, unless these have a form that does not mind. Short kernels have to hold up twice.
#include "autotune/confirm_kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tilewright::autotune {

namespace {

constexpr int kMeasurements = 5;

class Confirmation {
 public:
  Confirmation(KernelEntries& entries, const ModelCompiler& compiler, const Plan& plan,
               InputSets inputs, const KernelReaders& readers, const RunInTurn& measure,
               std::mt19937& random)
      : entries_(entries),
        compiler_(compiler),
        plan_(plan),
        inputs_(inputs),
        readers_(readers),
        measure_(measure),
        random_(random) {}

  Result<Comparison> run() {
    for (KernelEntry& e : entries_) e.kernel.improved = e.search.improved();
    for (int n = 1;; ++n) {
      TW_RETURN_IF_ERROR(measure());
      const bool in_vain = times_.runs().ratio >= 1, last = n == kMeasurements;
      if (!(in_vain ? drop_all() : !last && (drop_some() || is_open()))) break;
    }
    for (KernelEntry& e : entries_) {
      TunedKernel& k = e.kernel;
      k.best = e.search.best();
      k.gap = e.search.gap();
      const bool known = !e.search.improved() || k.gain.low > 0;
      k.withdrawn = k.recorded && !k.improved && known;
      if (k.improved) k.changes = e.search.changes();
    }
    return times_.runs();
  }

 private:
  Status measure() {
    Schedules best;
    for (const KernelEntry& e : entries_)
      if (e.kernel.improved) best[e.kernel.task] = e.search.best().schedule;
    const PairedOptions pairs{.seconds = 0.25, .least = 4, .most = 40, .measure = measure_};
    TW_ASSIGN(times_, run_at_placements([&] { return compiler_.compile(plan_, {}); },
                                        [&] { return compiler_.compile(plan_, best); }, inputs_,
                                        pairs, random_));
    for (KernelEntry& e : entries_) e.kernel.gain = times_.kernel(e.kernel.name);
    return {};
  }
  bool drop_all() {
    bool dropped = false;
    for (KernelEntry& e : entries_) dropped |= drop(e);
    return dropped;
  }
  static bool drop(KernelEntry& e) { return std::exchange(e.kernel.improved, false); }

  bool drop_some() {
    std::set<std::string> slower;  // as usual, and slower than that
    for (const KernelEntry& e : entries_)
      if (!e.kernel.improved && e.kernel.gain.low > 1 && e.kernel.gain.ratio > 1 / kWorthwhile)
        slower.insert(e.kernel.name);
    bool dropped = false;
    for (KernelEntry& e : entries_) {
      if (!e.kernel.improved) continue;
      if (holds_up(e.kernel, slower))
        ++held_up_[e.kernel.name];
      else
        dropped |= drop(e);
    }
    return dropped;
  }
  bool is_open() const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const KernelEntry& e) {
      const auto it = held_up_.find(e.kernel.name);
      return e.kernel.improved &&
             (it == held_up_.end() ? 0 : it->second) < confirmations(us(e.kernel));
    });
  }
  static double us(const TunedKernel& k) {  // of a call
    return k.us / static_cast<double>(std::max<int64_t>(k.calls, 1));
  }
  // What was confirmed here before has held up once, and is given up where it is not faster at all.
  bool holds_up(const TunedKernel& k, const std::set<std::string>& slower) const {
    const bool faster = k.gain.b_is_faster() && k.gain.ratio < worth_keeping(us(k));
    if (!faster && !(k.recorded && k.gain.ratio < 1)) return false;
    std::set<std::string> paying{k.name};
    if (const auto it = readers_.find(k.name); it != readers_.end())
      for (const std::string& r : it->second)
        if (slower.count(r)) paying.insert(r);
    return paying.size() == 1 || times_.kernels(paying).b_is_faster();
  }

  KernelEntries& entries_;
  const ModelCompiler& compiler_;
  const Plan& plan_;
  const InputSets inputs_;
  const KernelReaders& readers_;
  const RunInTurn& measure_;
  std::mt19937& random_;
  Placements times_;
  std::map<std::string, int> held_up_;  // how often, by kernel
};

}  // namespace

Result<Comparison> confirm_kernels(KernelEntries& entries, const ModelCompiler& compiler,
                                   const Plan& plan, InputSets inputs, const KernelReaders& readers,
                                   const RunInTurn& measure, std::mt19937& random) {
  return Confirmation(entries, compiler, plan, inputs, readers, measure, random).run();
}

}  // namespace tilewright::autotune
