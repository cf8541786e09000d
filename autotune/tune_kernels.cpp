#include "autotune/tune_kernels.h"

#include <algorithm>

#include "autotune/confirm_kernels.h"
#include "codegen/compile_cached.h"

namespace tilewright::autotune {

Status KernelTuner::start(const KernelTuner* other) {
  const SearchOptions search{
      .same_bits = options_.same_bits, .seed = options_.seed, .from = {}, .model = options_.model};
  TW_ASSIGN(entries_, find_kernels(plan_, compiler_, options_.known, search,
                                   other ? other->entries_ : KernelEntries{}));
  TW_RETURN_IF_ERROR(compile_usual());
  const PairedOptions pairs{
      .seconds = 0.2, .least = 3, .most = 32, .stop = options_.stop, .measure = options_.measure};
  TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *usual_, inputs_, pairs, random_));
  run_us_ = times.runs().a;
  set_times(entries_, times);
  TW_RETURN_IF_ERROR(drop_wrong_known());
  return time_known();
}

// Also keeps a call of each kernel at each size, for candidates to be checked on.
Status KernelTuner::compile_usual() {
  TW_ASSIGN(const ir::Program program, compiler_.program(plan_, {}));
  readers_ = kernel_readers(program);
  TW_ASSIGN(const std::shared_ptr<Executable> executable, compiler_.assemble(program));
  for (const ir::Kernel& k : program.kernels)
    for (KernelEntry& e : entries_) {
      if (e.kernel.name != k.name) continue;
      const std::string loops = codegen::content_symbol(k);
      e.codes[loops] = e.codes[compiler_.object_code(loops)] = 1;
    }
  for (const std::vector<Tensor>& inputs : inputs_) {
    TW_ASSIGN(CapturedCalls calls, capture_calls(program, executable, inputs, compiler_.pool()));
    calls_.push_back(std::move(calls));
  }
  TW_ASSIGN(usual_, compiler_.session(executable));
  return {};
}

// A database may be anybody's: what it knows is called alone, as any candidate.
Status KernelTuner::drop_wrong_known() {
  std::set<std::string> known;
  for (const KernelEntry& e : entries_)
    if (e.search.improved() && !e.rests) known.insert(e.kernel.name);
  if (known.empty()) return {};
  TW_ASSIGN(const ir::Program program, compiler_.program(plan_, best_schedules(entries_)));
  TW_ASSIGN(const auto refused, check(program, known));
  for (KernelEntry& e : entries_) {
    const auto it = refused.find(e.kernel.name);
    if (it == refused.end()) continue;
    refuse(e, e.search.best(), it->second);
    e.search.accept(Candidate(e.search.usual()));
  }
  return {};
}

// Best forms that were known before. Those that were confirmed here stay until more runs say otherwise;
// others are given up unless they are faster at once.
Status KernelTuner::time_known() {
  if (best_schedules(entries_).empty()) return {};
  const PairedOptions pairs{
      .seconds = 0.2, .least = 8, .most = 32, .stop = options_.stop, .measure = options_.measure};
  TW_ASSIGN(const std::unique_ptr<Session> best, compile());
  TW_ASSIGN(const PairedTimes times, run_in_turn(*usual_, *best, inputs_, pairs, random_));
  for (KernelEntry& e : entries_) {
    if (!e.search.improved() || e.rests) continue;
    const Comparison c = times.kernel(e.kernel.name);
    e.search.report_best(c.ratio);
    e.ratio = c.ratio;
    if (e.kernel.recorded ? c.low <= 1 : c.ratio < 1) continue;
    e.search.accept(Candidate(e.search.usual()));
    e.ratio = 1;
  }
  return {};
}

size_t KernelTuner::improved() const {
  return static_cast<size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const KernelEntry& e) { return e.search.improved(); }));
}
double KernelTuner::saved_us() const {
  double us = 0;
  for (const KernelEntry& e : entries_) us += (1 - e.ratio) * e.kernel.us;
  return us;
}
double KernelTuner::gap() {
  double all = 0, open = 0;
  for (KernelEntry& e : entries_) all += e.kernel.us, open += e.search.gap() * e.kernel.us;
  return all > 0 ? open / all : 1;
}

Result<Comparison> KernelTuner::finish() {
  return confirm_kernels(entries_, compiler_, plan_, inputs_, readers_, options_.measure, random_);
}

std::vector<TunedKernel> KernelTuner::take_kernels() {
  std::vector<TunedKernel> kernels;
  for (KernelEntry& e : entries_) kernels.push_back(std::move(e.kernel));
  entries_.clear();
  return kernels;
}

}  // namespace tilewright::autotune
