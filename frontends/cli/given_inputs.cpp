// Inputs of a run: from .npz files and folders of .pb files, or random ones.
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include "frontends/cli/cli.h"
#include "frontends/tensor_files/npz.h"
#include "frontends/tensor_files/tensor_pb.h"

namespace tilewright::cli {

namespace {

// Without a copy: the tensor keeps the elements alive.
Tensor to_tensor(HostTensor tensor) {
  auto keep = std::make_shared<HostTensor>(std::move(tensor));
  return Tensor::share(keep->dtype, keep->shape, keep->bytes.data(), keep);
}

// Standard normal floats, halves that are all 0.5, and whole numbers that are 0 or 1: valid as
// indices of almost any table.
HostTensor random_tensor(DType dtype, const Shape& shape, uint64_t seed) {
  HostTensor t(dtype, shape);
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < t.size(); ++i) {
    uint8_t* at = t.bytes.data() + i * byte_size(dtype);
    if (dtype == DType::kFloat32) {
      auto v = static_cast<float>(normal(engine));
      std::memcpy(at, &v, 4);
    } else if (dtype == DType::kFloat64) {
      double v = normal(engine);
      std::memcpy(at, &v, 8);
    } else if (is_float(dtype)) {
      uint16_t v = dtype == DType::kFloat16 ? 0x3800 : 0x3f00;
      std::memcpy(at, &v, 2);
    }  // 0.5
    else {
      uint64_t v = engine() % 2;
      std::memcpy(at, &v, static_cast<size_t>(byte_size(dtype)));
    }
  }
  return t;
}

// For messages, which name what there is: what must be given, and some of what may be.
std::string listed(const std::vector<InputInfo>& infos) {
  constexpr int kMostDefaults = 8;
  std::string names;
  int defaults = 0;
  for (const InputInfo& i : infos) {
    if (i.has_default && ++defaults > kMostDefaults) continue;
    names += (names.empty() ? "'" : ", '") + i.name + (i.has_default ? "' (has a default)" : "'");
  }
  if (defaults > kMostDefaults)
    names += " and " + std::to_string(defaults - kMostDefaults) + " more with defaults";
  return names.empty() ? "none" : names;
}
// Why a name that is given stands for no input.
std::string no_input(const std::string& name, const std::vector<InputInfo>& infos,
                     const OnnxModel* model) {
  std::string text = "the model has no input '" + name + "'; its inputs: " + listed(infos) + "\n  ";
  if (!model)
    return text +
           "an initializer of the model is an input where the model is compiled with "
           "--override " +
           name;
  if (!model->graph.initializers.count(name)) return text.substr(0, text.size() - 3);
  return text +
         "it is an initializer, and a constant: only one that is an input, too, may be "
         "given, from IR version 4 on; the model has " +
         std::to_string(model->ir_version);
}

// An archive names its arrays; files of a folder stand for inputs by their number.
Result<NamedTensors> read_inputs(const std::string& path, const OnnxModel* model,
                                 const std::vector<InputInfo>& infos) {
  if (!std::filesystem::is_directory(path)) return read_npz(path);
  std::vector<PbSlot> slots;
  for (const InputInfo& i : infos) slots.push_back({i.name, PbKind::kTensor});
  const std::string surplus = "input_" + std::to_string(slots.size()) + ".pb";
  if (std::filesystem::exists(std::filesystem::path(path) / surplus))
    return invalid("the model has no input for " + surplus + "; its inputs: " + listed(infos));
  if (model) {
    for (const OnnxValueInfo& v : model->graph.inputs) {
      if (model->graph.initializers.count(v.name)) continue;
      if (v.type.kind != OnnxTypeKind::kTensor)
        return unsupported("input '" + v.name + "' is " + describe_kind(v.type.kind) +
                           ", expected a tensor");
    }
  }
  // A folder may hold fewer files than the model has inputs when the last ones have defaults.
  while (!slots.empty() &&
         !std::filesystem::exists(std::filesystem::path(path) /
                                  ("input_" + std::to_string(slots.size() - 1) + ".pb")))
    slots.pop_back();
  TW_ASSIGN(NamedValues values, read_pb_folder(path, "input", slots));
  NamedTensors tensors;
  for (auto& [name, value] : values) {
    if (!value.tensor()) return unsupported("input '" + name + "' is no tensor");
    tensors.emplace_back(name, std::move(std::get<HostTensor>(value.data)));
  }
  return tensors;
}

// In the model's order; a missing one is an error, and one too many.
Result<std::vector<Tensor>> order_inputs(NamedTensors tensors, const std::vector<InputInfo>& infos,
                                         const OnnxModel* model) {
  std::vector<Tensor> ordered;
  for (const InputInfo& info : infos) {
    auto it = std::find_if(tensors.begin(), tensors.end(),
                           [&](const auto& t) { return t.first == info.name; });
    if (it == tensors.end() && info.has_default) {
      ordered.emplace_back();
      continue;
    }
    if (it == tensors.end()) {
      std::string given;
      for (const auto& [name, t] : tensors) given += (given.empty() ? "" : ", ") + name;
      return invalid("input '" + info.name +
                     "' is not among the given ones: " + (given.empty() ? "none" : given));
    }
    ordered.push_back(to_tensor(std::move(it->second)));
  }
  for (const auto& [name, tensor] : tensors)
    if (std::none_of(infos.begin(), infos.end(), [&](const auto& i) { return i.name == name; }))
      return invalid(no_input(name, infos, model));
  return ordered;
}

// A model may declare extents that no machine holds.
Status check_input_bytes(const InputInfo& info, const Shape& shape) {
  constexpr int64_t kMostElements = int64_t{1} << 32;
  auto n = element_count(shape);
  if (!n || *n > kMostElements)
    return limit_error("input '" + info.name + "': " + to_string(shape) +
                       " is too large for a random tensor (limit: 2^32 elements)");
  return {};
}

// Extents that nothing binds are 1.
Result<NamedTensors> random_inputs(const std::vector<InputInfo>& infos, const Binding& binding) {
  NamedTensors tensors;
  std::cerr << "tilewright: no inputs given, using random ones (seed 0)\n";
  uint64_t seed = 0;
  for (const InputInfo& info : infos) {
    if (info.has_default) continue;
    Shape shape = info.extents;
    if (auto given = binding.shapes.find(info.name); given != binding.shapes.end())
      shape = given->second;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      auto bound = binding.symbols.find(info.symbols[d]);
      shape[d] = bound == binding.symbols.end() ? 1 : bound->second;
    }
    TW_RETURN_IF_ERROR(check_input_bytes(info, shape));
    tensors.emplace_back(info.name, random_tensor(info.dtype, shape, seed++));
  }
  return tensors;
}

// No conversions: an input of another type is more likely a mistake.
Status check_types(const std::vector<InputInfo>& infos, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < infos.size(); ++i)
    if (inputs[i].defined() && inputs[i].dtype() != infos[i].dtype)
      return invalid("input '" + infos[i].name + "' is " + std::string(name(inputs[i].dtype())) +
                     ", expected " + std::string(name(infos[i].dtype)));
  return {};
}

}  // namespace

Result<std::vector<Tensor>> inputs_for(const std::string& path, const std::vector<InputInfo>& infos,
                                       const Binding& binding, const OnnxModel* model) {
  NamedTensors tensors;
  if (path.empty()) {
    TW_ASSIGN(tensors, random_inputs(infos, binding));
  } else {
    TW_ASSIGN(tensors, read_inputs(path, model, infos));
  }
  TW_ASSIGN(std::vector<Tensor> ordered, order_inputs(std::move(tensors), infos, model));
  TW_RETURN_IF_ERROR(check_types(infos, ordered));
  return ordered;
}

}  // namespace tilewright::cli
