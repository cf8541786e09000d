#include "frontends/train/tunable_step.h"

#include <algorithm>
#include <cstring>

#include "frontends/compiler/compiler.h"
#include "frontends/train/batches.h"
#include "frontends/train/order.h"
#include "frontends/train/schedule.h"
#include "frontends/train/step_tensors.h"

namespace tilewright::train {

Result<std::vector<TunableStep>> tunable_steps(const Job& job) {
  TW_ASSIGN(const std::unique_ptr<OnnxModel> model,
            open_model(job.model.string(), ModelUse::kTraining));
  TW_ASSIGN(Trained trained, find_trained(*model, job));
  TW_ASSIGN(StepGraph step, build_step(*model, trained, job));
  TW_ASSIGN(const std::unique_ptr<Dataset> data, open_dataset(job.data, step.wanted));
  TW_ASSIGN(Order order, Order::create(job, data->size()));
  TW_ASSIGN(const std::unique_ptr<Batches> batches,
            Batches::create(*data, std::move(order), job.part()));
  TW_ASSIGN(StepTensors tensors, step_tensors(*model, job, trained, step.states));
  const Batch& batch = batches->at(0, 1);
  std::copy(batch.ids.begin(), batch.ids.end(), tensors.at("sample_ids").data_as<int64_t>());
  *tensors.at("lr").data_as<float>() = static_cast<float>(learning_rate(job, 0));
  std::vector<TunableStep> steps;
  const auto add = [&](ir::Graph graph, const std::vector<Tensor>& columns) -> Status {
    graph.updates.clear();
    TunableStep s{.graph = std::move(graph), .inputs = {}};
    s.inputs = tensors_of(s.graph, columns.size(), tensors);
    for (size_t k = 0; k < columns.size(); ++k) {  // batches are read anew in time
      TW_ASSIGN(s.inputs[k], Tensor::allocate(columns[k].dtype(), columns[k].shape()));
      std::memcpy(s.inputs[k].data(), columns[k].data(), static_cast<size_t>(columns[k].bytes()));
    }
    steps.push_back(std::move(s));
    return {};
  };
  TW_RETURN_IF_ERROR(add(std::move(step.graph), batch.columns));
  if (step.update) TW_RETURN_IF_ERROR(add(std::move(*step.update), {}));
  return steps;
}

}  // namespace tilewright::train
