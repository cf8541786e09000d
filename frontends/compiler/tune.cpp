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
    if (last && last->state == state && last->answers == f.answers) return {};
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

}  // namespace

Result<autotune::TuneResult> tune(const OnnxModel& model, const Binding& binding,
                                  autotune::InputSets inputs, const CompileOptions& options,
                                  const autotune::TuneOptions& tuning) {
  return catch_failures([&]() -> Result<autotune::TuneResult> {
    TW_ASSIGN(autotune::Database db, autotune::Database::open(options.database));
    TW_RETURN_IF_ERROR(db.check_writable());
    TW_ASSIGN(const ir::Graph graph, build_graph(model, binding));
    TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
    TW_RETURN_IF_ERROR(check_cpu_features(lower.machine.features));
    Findings findings(std::move(db), autotune::device_key(lower.machine, options.numerics));
    autotune::TuneOptions how = tuning;
    how.known = [&](const std::string& task, const std::string& family) {
      return findings.known(task, family);
    };
    how.found = [&](const Finding& f) { return findings.write(f, State::kProvisional); };
    TW_ASSIGN(autotune::TuneResult result,
              autotune::tune_model(
                  graph, lower, assemble_options(options, lower.machine, graph.name), inputs, how));
    TW_RETURN_IF_ERROR(findings.write(result));
    return result;
  });
}

}  // namespace tilewright
