#include "frontends/train/step_update.h"

#include "frontends/train/optimizers.h"

namespace tilewright::train {

using ir::V;

ir::ValueId watched(StepNodes& n, ir::ValueId v) { return n.op("watched", {v}); }

// As torch.nn.utils.clip_grad_value_ and clip_grad_norm_ do, but that an infinite element becomes NaN by inf - inf:
// the update then is not finite either, and ends the run. Of others, the factor is 1.
static V clipped(const OptimizerJob& o, V g) {
  if (o.clip_value > 0) g = ir::limit(g, -o.clip_value, o.clip_value) * (1.0 + (g - g));
  if (o.clip_norm == 0) return g;
  const V norm = ir::apply("sqrt", ir::reduce("reduce_sum", g * g, {0}));
  return g * ir::apply("min", norm.number(1), o.clip_norm / (norm + 1e-6));
}

Result<std::vector<Updated>> add_update(StepNodes& n, const Job& job, const Parameters& members,
                                        V lr, V step, ir::ValueId parameters, V gradients) {
  const OptimizerJob& o = job.optimizer;
  const Optimizer& optimizer = find_optimizer(o.name);
  const auto decay = decay_of(n, o, members);
  if (!decay.ok()) return decay.error();
  std::vector<Updated> updated{{{kParameters, &members}, parameters, ir::kNone}};
  std::vector<V> buffers;
  for (const std::string_view s : optimizer.state(o)) {
    buffers.emplace_back(n, n.input(std::string(s), flat_type(members)));
    updated.push_back({{std::string(s), &members}, buffers.back().id, ir::kNone});
  }
  const Update update = optimizer.update(o, {lr, step, *decay, members}, {n, parameters},
                                         clipped(o, gradients), buffers);
  updated[0].value = watched(n, update.parameters.id);
  for (size_t k = 0; k < update.state.size(); ++k) {
    const ir::ValueId v = update.state[k].id;
    updated[k + 1].value = updated[k + 1].state.name == optimizer.overflows ? watched(n, v) : v;
  }
  return updated;
}

void set_updates(ir::Graph& graph, std::vector<ir::ValueId> inputs,
                 const std::vector<Updated>& updated) {
  graph.inputs = std::move(inputs);
  for (const Updated& u : updated) {
    graph.updates.push_back(
        {static_cast<int32_t>(graph.inputs.size()), static_cast<int32_t>(graph.outputs.size())});
    graph.inputs.push_back(u.input);
    graph.outputs.push_back(u.value);
    graph.output_names.push_back(u.state.name);
  }
}

}  // namespace tilewright::train
