#include "frontends/train/parameters.h"

#include <algorithm>
#include <cstring>

#include "frontends/train/job.h"

namespace tilewright::train {

namespace {

constexpr int64_t kAlignment = 16;  // elements of f32: a cache line

}  // namespace

// In the order of names, as the model's map has them: the same for every process.
Result<Parameters> find_parameters(const OnnxModel& model,
                                   const std::vector<std::string>& patterns) {
  Parameters found;
  std::vector<bool> used(patterns.size(), false);
  for (const auto& [name, tensor] : model.graph.initializers) {
    const auto dtype = tensor.dtype();
    if (!dtype || !is_float(*dtype)) continue;
    bool wanted = false;
    for (size_t k = 0; k < patterns.size(); ++k)
      if (matches(patterns[k], name)) wanted = used[k] = true;
    if (!wanted) continue;
    if (*dtype != DType::kFloat32)
      return unsupported("parameter '" + name + "' is " + std::string(tilewright::name(*dtype)) +
                         ", expected f32");
    const int64_t n = *element_count(tensor.shape);
    found.members.push_back({name, tensor.shape, found.elements, n});
    found.elements += (n + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (size_t k = 0; k < patterns.size(); ++k)
    if (!used[k]) return invalid("no float initialiser of the model matches '" + patterns[k] + "'");
  return found;
}

HostTensor initial_values(const OnnxModel& model, const Parameters& parameters) {
  HostTensor flat(DType::kFloat32, {parameters.elements});
  std::fill(flat.bytes.begin(), flat.bytes.end(), uint8_t{0});
  for (const Parameter& p : parameters.members) {
    const TensorView& t = model.graph.initializers.at(p.name);
    if (p.elements > 0) std::memcpy(flat.data<float>() + p.offset, t.data, t.bytes);
  }
  return flat;
}

NamedTensors take_apart(const Parameters& parameters, const float* flat) {
  NamedTensors tensors;
  for (const Parameter& p : parameters.members) {
    HostTensor t(DType::kFloat32, p.shape);
    std::copy_n(flat + p.offset, p.elements, t.data<float>());
    tensors.emplace_back(p.name, std::move(t));
  }
  return tensors;
}

}  // namespace tilewright::train
