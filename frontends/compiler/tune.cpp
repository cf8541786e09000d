#include "frontends/compiler/tune.h"

#include "autotune/database/database.h"
#include "autotune/database/task.h"
#include "runtime/device_cpu.h"

namespace tilewright {

namespace {

using autotune::Finding;
using autotune::Record;
using State = autotune::Record::State;

// What tuning knows from a database, and what goes there.
class Findings {
 public:
  Findings(autotune::Database db, std::string device)
      : db_(std::move(db)), device_(std::move(device)) {}

  autotune::Known known(const std::string& task, const std::string& family) const {
    const Record* r = db_.newest(task, device_);
    if (r && r->state != State::kWithdrawn)
      return {.answers = r->answers, .recorded = db_.find(task, device_) != nullptr};
    r = r ? nullptr : db_.find_like(task, family, device_);
    return r ? autotune::Known{.answers = r->answers} : autotune::Known{};
  }

  Status write(const Finding& f, State state) {
    const Record* last = db_.newest(f.task, device_);
    if (last && last->state == state && last->answers == f.answers && last->schedule == f.schedule)
      return {};
    return db_.append({.task = f.task,
                       .device = device_,
                       .family = f.family,
                       .answers = f.answers,
                       .schedule = f.schedule,
                       .usual_us = f.gain.a,
                       .tuned_us = f.gain.b,
                       .low = f.gain.low,
                       .high = f.gain.high,
                       .state = state});
  }
  // That the usual form is used.
  Status withdraw(const std::string& task, const std::string& family, double us) {
    return write({task, family, {}, {}, {.low = 1, .high = 1, .a = us, .b = us}},
                 State::kWithdrawn);
  }

  Status write(const autotune::TuneResult& result) {
    if (const autotune::TunedGraph& g = result.graph; g.improved())
      TW_RETURN_IF_ERROR(
          write({result.graph_task, "", g.form.answers, {}, g.gain}, State::kConfirmed));
    else if (g.recorded)
      TW_RETURN_IF_ERROR(withdraw(result.graph_task, "", result.runs.a));
    for (const autotune::TunedKernel& k : result.kernels)
      if (k.improved)
        TW_RETURN_IF_ERROR(
            write({k.task, k.family, k.best.answers, k.best.schedule, k.gain}, State::kConfirmed));
      else if (k.withdrawn)
        TW_RETURN_IF_ERROR(withdraw(k.task, k.family, k.us));
    return {};
  }

 private:
  autotune::Database db_;
  const std::string device_;
};

// With what the database knows; `run` tunes.
using Tune = std::function<Result<autotune::TuneResult>(
    const passes::LowerOptions&, const codegen::AssembleOptions&, const autotune::TuneOptions&)>;
Result<autotune::TuneResult> tune_into(const CompileOptions& options, const std::string& name,
                                       const autotune::TuneOptions& tuning, const Tune& run) {
  return catch_failures([&]() -> Result<autotune::TuneResult> {
    TW_ASSIGN(autotune::Database db, autotune::Database::open(options.database));
    TW_RETURN_IF_ERROR(db.check_writable());
    TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
    TW_RETURN_IF_ERROR(check_cpu_features(lower.machine.features));
    Findings findings(std::move(db), autotune::device_key(lower.machine, options.numerics));
    autotune::TuneOptions how = tuning;
    how.known = [&](const std::string& task, const std::string& family) {
      return findings.known(task, family);
    };
    how.found = [&](const Finding& f) { return findings.write(f, State::kProvisional); };
    TW_ASSIGN(autotune::TuneResult result,
              run(lower, assemble_options(options, lower.machine, name), how));
    TW_RETURN_IF_ERROR(findings.write(result));
    return result;
  });
}

}  // namespace

Result<autotune::TuneResult> tune(const ir::Graph& graph, autotune::InputSets inputs,
                                  const CompileOptions& options,
                                  const autotune::TuneOptions& tuning) {
  const auto run = [&](const auto& lower, const auto& assemble, const auto& how) {
    return autotune::tune_model(graph, lower, assemble, inputs, how);
  };
  return tune_into(options, graph.name, tuning, run);
}

Result<autotune::TuneResult> tune(const OnnxModel& model, const Binding& binding,
                                  autotune::InputSets inputs, const CompileOptions& options,
                                  const autotune::TuneOptions& tuning) {
  const auto run = [&](const auto& lower, const auto& assemble,
                       const auto& how) -> Result<autotune::TuneResult> {
    TW_ASSIGN(const ir::Graph graph, build_graph(model, binding));
    return autotune::tune_model(graph, lower, assemble, inputs, how);
  };
  return tune_into(options, model.graph.name, tuning, run);
}

Result<autotune::TuneResult> tune(const TextModel& model, autotune::InputSets inputs,
                                  const CompileOptions& options,
                                  const autotune::TuneOptions& tuning) {
  if (model.graph) return tune(*model.graph, inputs, options, tuning);
  const auto run = [&](const auto& lower, const auto& assemble,
                       const auto& how) -> Result<autotune::TuneResult> {
    for (const std::vector<Tensor>& set : inputs)
      TW_RETURN_IF_ERROR(check_usual(model, set, lower, assemble));
    return autotune::tune_kernel(*model.kernel, model.constants, lower, assemble, inputs, how);
  };
  return tune_into(options, model.name, tuning, run);
}

}  // namespace tilewright
