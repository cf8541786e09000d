#include "autotune/kernel_entries.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "autotune/database/task.h"
#include "passes/lower.h"

namespace tilewright::autotune {

namespace {

Result<KernelEntry> started(const ir::Kernel& k, const std::set<std::string>& constants,
                            const ModelCompiler& compiler, const FindKnown& known,
                            SearchOptions search) {
  TunedKernel kernel{
      .name = k.name, .task = task_key(k, constants), .family = family_key(k, constants)};
  if (known) {
    Known from = known(kernel.task, kernel.family);
    kernel.recorded = from.recorded;
    search.from = std::move(from.answers);
  }
  TW_ASSIGN(Search begun, Search::start(k, constants, compiler.lower(), std::move(search)));
  kernel.expected_us = begun.usual().expected_us;
  return KernelEntry{std::move(kernel), std::move(begun), std::nullopt};
}

KernelEntry rested(const KernelEntry& other, std::string name) {
  const TunedKernel& k = other.kernel;
  KernelEntry e{{.name = std::move(name),
                 .task = k.task,
                 .family = k.family,
                 .expected_us = k.expected_us,
                 .trials = k.trials,
                 .recorded = k.recorded},
                other.search,
                std::nullopt};
  e.codes = other.codes;
  e.ratio = other.ratio;
  e.rests = true;
  return e;
}

}  // namespace

Result<KernelEntries> find_kernels(const Plan& plan, const ModelCompiler& compiler,
                                   const FindKnown& known, const SearchOptions& search,
                                   const KernelEntries& others) {
  KernelEntries entries;
  const auto begin = [&](ir::Kernel k,
                         const std::set<std::string>& constants) -> Result<passes::LoweredKernel> {
    SearchOptions how = search;
    how.seed += static_cast<uint32_t>(entries.size());
    const std::string task = task_key(k, constants);
    const auto other = std::find_if(others.begin(), others.end(),
                                    [&](const KernelEntry& e) { return e.kernel.task == task; });
    if (other != others.end()) {
      entries.push_back(rested(*other, k.name));
    } else {
      TW_ASSIGN(KernelEntry e, started(k, constants, compiler, known, std::move(how)));
      entries.push_back(std::move(e));
    }
    return compiler.lower_kernel(std::move(k), constants, {});
  };
  TW_ASSIGN(const ir::Program program, plan(compiler.lower(), begin));
  (void)program;
  return entries;
}

void set_times(KernelEntries& entries, const PairedTimes& usual) {
  constexpr double kShort = 0.002;  // of a run's time: kernels below are left alone
  const auto sizes = static_cast<int64_t>(usual.sizes.size());
  for (KernelEntry& e : entries) {
    TunedKernel& k = e.kernel;
    k.us = usual.kernel(k.name).a;
    for (const PairedTimes::OfSize& size : usual.sizes)
      for (const RunTimes::Row& r : size.a.rows)
        if (r.kernel == k.name) k.calls += r.calls, k.flops += r.flops, k.bytes += r.bytes;
    k.calls = (k.calls + sizes - 1) / sizes, k.flops /= sizes, k.bytes /= sizes;
  }
  std::stable_sort(entries.begin(), entries.end(), [](const KernelEntry& a, const KernelEntry& b) {
    return a.kernel.us > b.kernel.us;
  });
  const double least = kShort * usual.runs().a;
  std::erase_if(entries, [&](const KernelEntry& e) { return e.kernel.us < least; });
}

void weigh(KernelEntries& entries) {
  constexpr size_t kForms = 6;
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < entries.size(); i = next++)
      if (!entries[i].trial && !entries[i].rests)
        (void)catch_failures([&] { return entries[i].search.weigh(kForms), Status(); });
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < available_cpus(); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
}

Schedules best_schedules(const KernelEntries& entries) {
  Schedules s;
  for (const KernelEntry& e : entries)
    if (e.search.improved()) s[e.kernel.task] = e.search.best().schedule;
  return s;
}

}  // namespace tilewright::autotune
