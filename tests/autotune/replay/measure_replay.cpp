// Measures forms of the replay tasks' kernels, alone and warm, each twice in turn with the usual form,
// and keeps what they took. usage: measure_replay FOLDER COUNT [TASK ...]
// With COUNT 0: the features of the forms that are kept, anew; their times stay. Forms whose schedule
// is another by now are left out.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "autotune/measure/paired_runs.h"
#include "autotune/search/priced_form.h"
#include "codegen/assemble_executable.h"
#include "frontends/compiler/compiler.h"
#include "runtime/core/fnv.h"
#include "runtime/session.h"
#include "tests/autotune/replay/replay_table.h"
#include "tests/autotune/replay/sample.h"

namespace tilewright::autotune {

namespace {

constexpr size_t kTogether = 24;  // forms compiled, then measured twice in turn with the usual one

class Measurement {
 public:
  Measurement(const ReplayTask& task, size_t count) : task_(task), count_(count) {}

  Result<ReplayTable> run() {
    TW_ASSIGN(kernel_, kernel_of(task_));
    for (const HostTensor& t : kernel_.source.inputs()) {
      TW_ASSIGN(Tensor input, Tensor::allocate(t.dtype, t.shape));
      std::copy(t.bytes.begin(), t.bytes.end(), input.data_as<uint8_t>());
      inputs_.push_back(std::move(input));
    }
    const std::vector<Form> forms = sample_forms(kernel_, count_, random_);
    table_ = {.name = task_.name, .rule = task_.rule, .forms = {}, .features = feature_names()};
    keep(forms[0], {1, 1});
    TW_ASSIGN(usual_, compile(forms[0]));
    for (size_t at = 1; at < forms.size(); at += kTogether) {
      TW_RETURN_IF_ERROR(
          measure(std::span(forms).subspan(at, std::min(kTogether, forms.size() - at))));
      std::fprintf(stderr, "\r%s: %zu of %zu  ", task_.name.c_str(), table_.forms.size(),
                   forms.size());
    }
    std::fprintf(stderr, "\n");
    return std::move(table_);
  }

 private:
  Result<std::unique_ptr<Session>> compile(const Form& form) {
    passes::LowerOptions lower = kernel_.lower;
    lower.find_schedule = [&](const ir::Kernel& k, const std::set<std::string>&) {
      return k.name == kernel_.kernel.name ? std::optional(form.schedule) : std::nullopt;
    };
    std::vector<ir::Program> programs(1);
    TW_ASSIGN(programs[0], passes::lower_fused(kernel_.graph, lower));
    TW_ASSIGN(std::shared_ptr<Executable> executable,
              codegen::assemble_in_memory(std::move(programs), {.machine = lower.machine}));
    return Session::create(executable, {.threads = task_.threads, .pool = pool_, .seed = 1});
  }
  // Forms that fail, or compute something else, are left out.
  Status measure(std::span<const Form> forms) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::array<float, 2>> ratios(forms.size());
    for (const Form& f : forms) {
      auto s = compile(f);
      if (!s.ok()) std::fprintf(stderr, "\nleft out: %s\n", s.error().to_string().c_str());
      sessions.push_back(s.ok() ? std::move(*s) : nullptr);
    }
    for (size_t again = 0; again < 2; ++again)
      for (size_t i = 0; i < forms.size(); ++i) {
        if (!sessions[i]) continue;
        const PairedOptions pairs{.seconds = 0.04, .least = 9, .most = 41};
        auto times = run_in_turn(*usual_, *sessions[i], {&inputs_, 1}, pairs, random_);
        if (times.ok())
          ratios[i][again] = static_cast<float>(times->kernel(kernel_.kernel.name).ratio);
        else
          std::fprintf(stderr, "\nleft out: %s\n", times.error().to_string().c_str()),
              sessions[i].reset();
      }
    for (size_t i = 0; i < forms.size(); ++i)
      if (sessions[i]) keep(forms[i], ratios[i]);
    return {};
  }
  void keep(const Form& form, std::array<float, 2> ratios) {
    const auto priced = price(kernel_.kernel, form.schedule, kernel_.lower);
    if (!priced.ok()) return;
    table_.forms.push_back({.answers = form.answers,
                            .schedule = fnv1a(passes::to_string(form.schedule)),
                            .ratios = ratios,
                            .features = priced->features,
                            .expected_us = static_cast<float>(priced->cost.total())});
  }

  const ReplayTask& task_;
  const size_t count_;
  std::mt19937 random_{1};
  const std::shared_ptr<ThreadPool> pool_ = std::make_shared<ThreadPool>(task_.threads);
  ReplayKernel kernel_;
  std::vector<Tensor> inputs_;
  std::unique_ptr<Session> usual_;
  ReplayTable table_;
};

Result<ReplayTable> with_new_features(const ReplayTask& task, const std::string& folder) {
  TW_ASSIGN(const ReplayKernel k, kernel_of(task));
  TW_ASSIGN(const ReplayTable old, read_table(folder, task.name));
  ReplayTable table{.name = task.name, .rule = task.rule, .forms = {}, .features = feature_names()};
  for (ReplayForm f : old.forms) {
    auto schedule = schedule_of(k.kernel, k.constants, k.lower, f.answers);
    if (!schedule.ok() || fnv1a(passes::to_string(*schedule)) != f.schedule) continue;
    TW_ASSIGN(PricedForm priced, price(k.kernel, std::move(*schedule), k.lower));
    f.features = std::move(priced.features);
    f.expected_us = static_cast<float>(priced.cost.total());
    table.forms.push_back(std::move(f));
  }
  std::fprintf(stderr, "%s: %zu of %zu forms kept\n", task.name.c_str(), table.forms.size(),
               old.forms.size());
  return table;
}

int run(const std::string& folder, size_t count, const std::vector<std::string>& only) {
  int failed = 0;
  for (const ReplayTask& task : replay_tasks()) {
    if (!only.empty() && std::find(only.begin(), only.end(), task.name) == only.end()) continue;
    auto table = count == 0 ? with_new_features(task, folder) : Measurement(task, count).run();
    const Status s = table.ok() ? write_table(folder, *table) : Status(table.error());
    if (!s.ok()) std::fprintf(stderr, "%s: %s\n", task.name.c_str(), s.error().to_string().c_str());
    failed += !s.ok();
  }
  return failed > 0;
}

}  // namespace

}  // namespace tilewright::autotune

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: measure_replay FOLDER COUNT [TASK ...]\n");
    return 2;
  }
  return tilewright::autotune::run(argv[1], std::strtoul(argv[2], nullptr, 10),
                                   {argv + 3, argv + argc});
}
