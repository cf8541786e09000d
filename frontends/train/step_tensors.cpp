#include "frontends/train/step_tensors.h"

#include <cstring>

namespace tilewright::train {

namespace {

Result<Tensor> zeros(DType dtype, const Shape& shape) {
  TW_ASSIGN(Tensor t, Tensor::allocate(dtype, shape));
  if (t.bytes() > 0) std::memset(t.data(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

}  // namespace

Result<StepTensors> step_tensors(const OnnxModel& model, const Job& job, const Trained& trained,
                                 const std::vector<State>& states) {
  StepTensors all;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape) -> Status {
    TW_ASSIGN(all[name], zeros(dtype, shape));
    return {};
  };
  TW_RETURN_IF_ERROR(add("sample_ids", DType::kInt64, {job.part()}));
  TW_RETURN_IF_ERROR(add("step", DType::kInt64, {}));
  TW_RETURN_IF_ERROR(add("part", DType::kInt64, {}));
  TW_RETURN_IF_ERROR(add("lr", DType::kFloat32, {}));
  TW_RETURN_IF_ERROR(add("loss", DType::kFloat32, {}));
  if (keeps_gradients(job))
    TW_RETURN_IF_ERROR(add(kGradients, DType::kFloat32, {trained.parameters.elements}));
  if (job.averages_statistics())
    TW_RETURN_IF_ERROR(add(kNewStatistics, DType::kFloat32, {trained.statistics.elements}));
  for (const State& s : states) {
    TW_RETURN_IF_ERROR(add(s.name, DType::kFloat32, {s.members->elements}));
    if (s.name == kParameters || s.name == kStatistics)
      put_initial_values(model, *s.members, all[s.name].data_as<float>());
  }
  return all;
}

std::vector<Tensor> tensors_of(const ir::Graph& graph, size_t columns, const StepTensors& tensors) {
  std::vector<Tensor> inputs(columns);
  for (size_t k = columns; k < graph.inputs.size(); ++k)
    inputs.push_back(tensors.at(graph.value(graph.inputs[k]).name));
  return inputs;
}

}  // namespace tilewright::train
