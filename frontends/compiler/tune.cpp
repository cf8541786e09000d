#include "frontends/compiler/tune.h"

#include "autotune/database.h"
#include "autotune/task.h"
#include "runtime/device_cpu.h"

namespace tilewright {

Result<autotune::TuneResult> tune(const OnnxModel& model, const Binding& binding,
                                  std::span<const Tensor> inputs, const CompileOptions& options,
                                  const autotune::TuneOptions& tuning) {
  return catch_failures([&]() -> Result<autotune::TuneResult> {
    TW_ASSIGN(autotune::Database db, autotune::Database::open(options.database));
    TW_RETURN_IF_ERROR(db.check_writable());
    TW_ASSIGN(const ir::Graph graph, build_graph(model, binding));
    TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
    TW_RETURN_IF_ERROR(check_cpu_features(lower.machine.features));
    const std::string device = autotune::device_key(lower.machine, options.numerics);
    autotune::TuneOptions how = tuning;
    const auto known = [&](const std::string& task) {
      const autotune::Record* r = db.find(task, device);
      return r ? r->answers : passes::Answers{};
    };
    how.known = [&](const std::string& task, const std::string& family) {
      if (db.find(task, device)) return known(task);
      const autotune::Record* r = db.find_like(task, family, device);
      return r ? r->answers : passes::Answers{};
    };
    TW_ASSIGN(const autotune::TuneResult result,
              autotune::tune_model(
                  graph, lower, assemble_options(options, lower.machine, graph.name), inputs, how));
    if (const autotune::TunedGraph& g = result.graph;
        g.improved() && known(result.graph_task) != g.form.answers)
      TW_RETURN_IF_ERROR(db.append({.task = result.graph_task,
                                    .device = device,
                                    .answers = g.form.answers,
                                    .schedule = {},
                                    .usual_us = g.gain.a,
                                    .tuned_us = g.gain.b,
                                    .low = g.gain.low,
                                    .high = g.gain.high}));
    for (const autotune::TunedKernel& k : result.kernels) {
      if (!k.improved || known(k.task) == k.best.answers) continue;
      TW_RETURN_IF_ERROR(db.append({.task = k.task,
                                    .device = device,
                                    .family = k.family,
                                    .answers = k.best.answers,
                                    .schedule = k.best.schedule,
                                    .usual_us = k.gain.a,
                                    .tuned_us = k.gain.b,
                                    .low = k.gain.low,
                                    .high = k.gain.high}));
    }
    return result;
  });
}

}  // namespace tilewright
