#include "frontends/train/parameters.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "frontends/onnx/lift_constants.h"
#include "frontends/train/initializer_uses.h"
#include "frontends/train/job.h"
#include "ir/loops/layout.h"

namespace tilewright::train {

namespace {

constexpr int64_t kAlignment = 16;  // elements of f32: a cache line

Status append(Parameters& to, const std::string& name, const TensorView& tensor) {
  if (tensor.dtype() != DType::kFloat32)
    return unsupported("initialiser '" + name + "' is " +
                       std::string(tilewright::name(*tensor.dtype())) + ", expected f32 to train");
  const int64_t n = *element_count(tensor.shape);
  to.members.push_back({name, tensor.shape, to.elements, n, {}});
  to.elements += (n + kAlignment - 1) / kAlignment * kAlignment;
  return {};
}

constexpr const char* kMerged =
    "; exporters merge tensors that are equal, as those of a fresh network are (PyTorch's with "
    "optimize=True)";

// Means and variances that are scales or biases as well would get two new values in each step.
Status check_statistics(const std::set<std::string>& statistics, const InitializerUses& uses) {
  for (const std::string& name : statistics)
    for (const OnnxNode* node : uses.normalizations(name))
      return invalid("initialiser " + quote(name) +
                     " is a running statistic of BatchNormalization, and scale or bias of " +
                     node->op_type + " " + quote(node->outputs[0]) + kMerged);
  return {};
}

// "" where there is nothing to say.
std::string note_of_merged(const OnnxModel& model, const Parameters& parameters,
                           const InitializerUses& uses) {
  std::string first;
  int more = 0;
  for (const Parameter& p : parameters.members)
    if (uses.normalizations(p.name).size() > 1 && is_uniform(model.graph.initializers.at(p.name)))
      first.empty() ? void(first = quote(p.name)) : void(++more);
  if (first.empty()) return "";
  return first + (more > 0 ? " and " + std::to_string(more) + " more" : "") +
         ": used by several normalisations, and trained as one" + kMerged;
}

}  // namespace

// In the order of names, as the model's map has them: the same for every process.
Result<Trained> find_trained(const OnnxModel& model, const std::vector<std::string>& patterns) {
  const InitializerUses uses(model.graph);
  const std::set<std::string> statistics = uses.statistics(), settings = uses.settings();
  TW_RETURN_IF_ERROR(check_statistics(statistics, uses));
  Trained found;
  std::vector<bool> used(patterns.size(), false);
  for (const auto& [name, tensor] : model.graph.initializers) {
    const auto dtype = tensor.dtype();
    if (!dtype || !is_float(*dtype)) continue;
    const bool named = std::find(patterns.begin(), patterns.end(), name) != patterns.end();
    if (statistics.count(name)) {
      if (named)
        return invalid("'" + name + "' is a running statistic of BatchNormalization, no parameter");
      TW_RETURN_IF_ERROR(append(found.statistics, name, tensor));
      continue;
    }
    if (!named && (tensor.shape.empty() || settings.count(name))) continue;
    bool wanted = false;
    for (size_t k = 0; k < patterns.size(); ++k)
      if (matches(patterns[k], name)) wanted = used[k] = true;
    if (wanted) TW_RETURN_IF_ERROR(append(found.parameters, name, tensor));
  }
  for (size_t k = 0; k < patterns.size(); ++k)
    if (!used[k]) return invalid("no float initialiser of the model matches '" + patterns[k] + "'");
  found.note = note_of_merged(model, found.parameters, uses);
  return found;
}

Shape Parameter::stored_shape() const {
  Shape stored;
  for (const int d : order) stored.push_back(shape[static_cast<size_t>(d)]);
  return order.empty() ? shape : stored;
}

static const uint8_t* bytes_of(const float* values) {
  return reinterpret_cast<const uint8_t*>(values);
}
void put(const Parameter& p, const float* values, float* flat) {
  if (p.order.empty() || p.elements == 0) {
    std::copy_n(values, p.elements, flat + p.offset);
    return;
  }
  const std::vector<uint8_t> stored =
      ir::pack(bytes_of(values), DType::kFloat32, p.shape, ir::permuted_layout(p.order));
  std::memcpy(flat + p.offset, stored.data(), stored.size());
}
void get(const Parameter& p, const float* flat, float* values) {
  if (p.order.empty() || p.elements == 0) {
    std::copy_n(flat + p.offset, p.elements, values);
    return;
  }
  const std::vector<uint8_t> rows =
      ir::unpack(bytes_of(flat + p.offset), DType::kFloat32, p.shape, ir::permuted_layout(p.order));
  std::memcpy(values, rows.data(), rows.size());
}

HostTensor initial_values(const OnnxModel& model, const Parameters& parameters) {
  HostTensor flat(DType::kFloat32, {parameters.elements});
  std::fill(flat.bytes.begin(), flat.bytes.end(), uint8_t{0});
  for (const Parameter& p : parameters.members) {
    const TensorView& t = model.graph.initializers.at(p.name);
    HostTensor values(DType::kFloat32, p.shape);  // aligned
    if (p.elements > 0) std::memcpy(values.bytes.data(), t.data, t.bytes);
    put(p, values.data<float>(), flat.data<float>());
  }
  return flat;
}

NamedTensors take_apart(const Parameters& parameters, const float* flat) {
  NamedTensors tensors;
  for (const Parameter& p : parameters.members) {
    HostTensor t(DType::kFloat32, p.shape);
    get(p, flat, t.data<float>());
    tensors.emplace_back(p.name, std::move(t));
  }
  return tensors;
}

}  // namespace tilewright::train
