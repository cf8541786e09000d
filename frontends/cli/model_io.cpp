// Opening models for a run; inputs and outputs in .npz files and folders of .pb files.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include "frontends/cli/cli.h"
#include "frontends/cli/progress.h"
#include "frontends/tensor_files/npz.h"
#include "frontends/tensor_files/tensor_pb.h"
#include "ir/text/printer_loops.h"
#include "passes/plan_kernel.h"

namespace tilewright::cli {

int report(const Error& error) {
  std::cerr << "tilewright: " << error.to_string() << "\n";
  return error.kind == ErrorKind::kUnsupported ? kUnsupportedModel : kError;
}

int report_usage(const std::string& message) {
  std::cerr << "tilewright: " << message << "\n";
  return kUsage;
}

bool is_compiled(const std::string& path) {
  return std::filesystem::path(path).extension() == ".so";
}

CompileOptions compile_options(const ModelOptions& options) {
  CompileOptions compile;
  compile.cpu = options.cpu;
  compile.machine = options.machine;
  compile.database = options.database;
  compile.guess = options.guess;
  // Who wants to see the passes wants them to run.
  compile.cache =
      options.use_cache && !std::getenv("TILEWRIGHT_DUMP") ? cache::user_cache() : nullptr;
  compile.numerics = numerics_from_name(options.numerics).value_or(compile.numerics);
  compile.note = [](const std::string& note) { std::cerr << "tilewright: note: " << note << "\n"; };
  compile.schedule_threads = options.threads > 0 ? options.threads : available_cpus();
  return compile;
}

std::vector<InputInfo> inputs_of(const OnnxModel& model) {
  std::vector<InputInfo> infos;
  for (const OnnxValueInfo& v : model.graph.inputs) {
    if (model.graph.initializers.count(v.name)) continue;
    InputInfo info{v.name,
                   dtype_from_onnx(v.type.onnx_code).value_or(DType::kFloat32),
                   {},
                   {},
                   v.type.shape.has_value()};
    if (v.type.shape)
      for (const OnnxDimension& d : *v.type.shape) {
        const auto* extent = std::get_if<int64_t>(&d);
        info.extents.push_back(extent ? *extent : -1);
        info.symbols.push_back(extent_name(d));
      }
    infos.push_back(std::move(info));
  }
  return infos;
}
std::vector<InputInfo> inputs_of(const std::vector<ValueInfo>& values) {
  std::vector<InputInfo> infos;
  for (const ValueInfo& v : values)
    infos.push_back({v.name, v.dtype, v.extents, v.dim_names, true});
  return infos;
}

std::vector<InputInfo> inputs_of(const TextModel& model) {
  std::vector<InputInfo> infos;
  const auto add = [&](const std::string& name, DType dtype, const std::vector<ir::Expr>& dims) {
    InputInfo info{name, dtype, {}, {}, true};
    for (const ir::Expr& d : dims) {
      const auto extent = ir::as_int(d);
      info.extents.push_back(extent.value_or(-1));
      info.symbols.push_back(extent ? "" : ir::to_text(d));
    }
    infos.push_back(std::move(info));
  };
  if (model.graph) {
    for (const ir::ValueId v : model.graph->inputs) {
      const ir::Value& value = model.graph->value(v);
      add(value.name, value.type.dtype, value.type.dims);
    }
    return infos;
  }
  for (const ir::Buffer& p : passes::inputs_of(*model.kernel))
    if (!model.constants.count(p->name)) add(p->name, p->dtype, p->shape);
  return infos;
}

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

// For messages, which name what there is.
std::string listed(const std::vector<InputInfo>& infos) {
  std::string names;
  for (const InputInfo& i : infos) names += (names.empty() ? "'" : ", '") + i.name + "'";
  return names.empty() ? "none" : names;
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
        return unsupported("input '" + v.name + "' is no tensor");
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
Result<std::vector<Tensor>> order_inputs(NamedTensors tensors,
                                         const std::vector<InputInfo>& infos) {
  std::vector<Tensor> ordered;
  for (const InputInfo& info : infos) {
    auto it = std::find_if(tensors.begin(), tensors.end(),
                           [&](const auto& t) { return t.first == info.name; });
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
      return invalid("the model has no input '" + name + "'; its inputs: " + listed(infos));
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

// Small integer inputs: shapes may depend on their values.
void add_values(Binding& binding, const std::vector<InputInfo>& infos,
                const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor& t = inputs[i];
    if (t.rank() > 1 || t.element_count() > 64) continue;
    if (is_float(t.dtype()) && t.element_count() > 8) continue;
    const auto* p = t.data_as<const uint8_t>();
    binding.values[infos[i].name] =
        ir::make_constant(t.dtype(), t.shape(), std::vector<uint8_t>(p, p + t.bytes()));
  }
}

// No conversions: an input of another type is more likely a mistake.
Status check_types(const std::vector<InputInfo>& infos, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < infos.size(); ++i)
    if (inputs[i].dtype() != infos[i].dtype)
      return invalid("input '" + infos[i].name + "' is " + std::string(name(inputs[i].dtype())) +
                     ", expected " + std::string(name(infos[i].dtype)));
  return {};
}

}  // namespace

Result<BoundModel> open_bound(const ModelOptions& options, const std::string& inputs) {
  BoundModel m;
  TW_ASSIGN(m.model, open_model(options.model));
  m.infos = inputs_of(*m.model);
  TW_ASSIGN(m.binding, parse_one_set(m.infos, options.shapes));
  NamedTensors tensors;
  if (inputs.empty()) {
    TW_ASSIGN(tensors, random_inputs(m.infos, m.binding));
  } else {
    TW_ASSIGN(tensors, read_inputs(inputs, m.model.get(), m.infos));
  }
  TW_ASSIGN(m.inputs, order_inputs(std::move(tensors), m.infos));
  TW_RETURN_IF_ERROR(check_types(m.infos, m.inputs));
  for (size_t i = 0; i < m.infos.size(); ++i) {
    auto bound = m.binding.shapes.find(m.infos[i].name);
    if (bound != m.binding.shapes.end() && bound->second != m.inputs[i].shape())
      return invalid("input '" + m.infos[i].name + "' is " + to_string(m.inputs[i].shape()) +
                     ", but --shape gives " + to_string(bound->second));
    m.binding.shapes[m.infos[i].name] = m.inputs[i].shape();
  }
  add_values(m.binding, m.infos, m.inputs);
  return m;
}

namespace {

Result<std::vector<Tensor>> inputs_for(const Binding& set, const std::string& inputs,
                                       const OnnxModel* model,
                                       const std::vector<InputInfo>& infos) {
  NamedTensors tensors;
  if (inputs.empty()) {
    TW_ASSIGN(tensors, random_inputs(infos, set));
  } else {
    TW_ASSIGN(tensors, read_inputs(inputs, model, infos));
  }
  TW_ASSIGN(std::vector<Tensor> ordered, order_inputs(std::move(tensors), infos));
  TW_RETURN_IF_ERROR(check_types(infos, ordered));
  return ordered;
}

Result<TextModel> open_text(const std::string& path) {
  TW_ASSIGN(TextModel text, read_text_model(path));
  if (text.made_up)
    std::cerr << "tilewright: note: constants whose contents the text does not hold are random\n";
  return text;
}

}  // namespace

Result<SizedModel> open_sized(const ModelOptions& options, const std::string& inputs) {
  SizedModel sized;
  if (is_text_model(options.model)) {
    TW_ASSIGN(sized.text, open_text(options.model));
    sized.infos = inputs_of(*sized.text);
  } else {
    TW_ASSIGN(sized.model, open_model(options.model));
    sized.infos = inputs_of(*sized.model);
  }
  TW_ASSIGN(std::vector<Binding> sets, parse_shapes(sized.infos, options.shapes));
  const bool any =
      sets.back().shapes.empty() && sets.back().symbols.empty() && !options.shapes.empty();
  if (!any && !sized.text && sets.size() > 1)
    return invalid(
        "--shape: an extent is given twice; with --shape any, too, kernels for any extents are "
        "measured at each of these");
  if (!any && !sized.text) {
    TW_ASSIGN(BoundModel bound, open_bound(options, inputs));
    sized.binding = std::move(bound.binding);
    sized.inputs.push_back(std::move(bound.inputs));
    return sized;
  }
  sized.binding = sets.back();
  if (any && sets.size() > 1) sets.pop_back();
  if (sets.size() > 1 && !inputs.empty())
    return invalid("--inputs is of one size, and --shape states several");
  for (const Binding& set : sets) {
    TW_ASSIGN(std::vector<Tensor> of_set, inputs_for(set, inputs, sized.model.get(), sized.infos));
    sized.inputs.push_back(std::move(of_set));
  }
  return sized;
}

Result<OpenedModel> open_to_run(const ModelOptions& options, const std::string& inputs,
                                bool profile) {
  OpenedModel opened;
  std::vector<InputInfo> infos;
  NamedTensors tensors;
  SessionOptions session_options;
  session_options.threads = options.threads;
  session_options.profile = profile;
  session_options.seed = options.seed;
  if (is_compiled(options.model)) {
    TW_ASSIGN(opened.executable, load_executable(options.model));
    infos = inputs_of(describe_inputs(*opened.executable));
    TW_ASSIGN(Binding binding, parse_one_set(infos, options.shapes));
    if (inputs.empty()) {
      TW_ASSIGN(tensors, random_inputs(infos, binding));
    } else {
      TW_ASSIGN(tensors, read_inputs(inputs, nullptr, infos));
    }
    TW_ASSIGN(opened.inputs, order_inputs(std::move(tensors), infos));
  } else if (is_text_model(options.model)) {
    TW_ASSIGN(const TextModel text, open_text(options.model));
    infos = inputs_of(text);
    TW_ASSIGN(const Binding binding, parse_one_set(infos, options.shapes));
    TW_ASSIGN(opened.inputs, inputs_for(binding, inputs, nullptr, infos));
    TW_ASSIGN(opened.executable, compile_in_memory(text, opened.inputs, compile_options(options)));
  } else {
    TW_ASSIGN(BoundModel bound, open_bound(options, inputs));
    infos = std::move(bound.infos);
    opened.inputs = std::move(bound.inputs);
    Progress progress;
    CompileOptions compile = compile_options(options);
    compile.progress = progress.callback();
    std::vector<std::string> fixed;
    TW_ASSIGN(opened.executable, compile_in_memory(*bound.model, bound.binding, compile, &fixed));
    if (!fixed.empty()) {
      std::string names;
      for (const std::string& f : fixed) names += (names.empty() ? "" : ", ") + f;
      std::cerr << "tilewright: shapes or branches depend on values of inputs: compiled for these "
                   "values of "
                << names << "\n";
    }
    for (const OnnxValueInfo& v : bound.model->graph.outputs) opened.output_names.push_back(v.name);
  }
  for (const InputInfo& i : infos) opened.input_names.push_back(i.name);
  TW_ASSIGN(opened.session, Session::create(opened.executable, session_options));
  if (opened.output_names.empty())
    for (const ValueInfo& v : opened.session->outputs()) opened.output_names.push_back(v.name);
  return opened;
}

Status write_outputs(const std::string& path, const std::vector<std::string>& names,
                     const std::vector<Tensor>& outputs) {
  NamedTensors tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HostTensor t(outputs[i].dtype(), outputs[i].shape());
    if (!t.bytes.empty()) std::memcpy(t.bytes.data(), outputs[i].data(), t.bytes.size());
    tensors.emplace_back(names[i], std::move(t));
  }
  if (std::filesystem::path(path).extension() == ".npz") return write_npz(path, tensors);
  std::vector<PbSlot> slots;
  std::vector<HostValue> values;
  for (auto& [name, t] : tensors) {
    slots.push_back({name, PbKind::kTensor});
    values.emplace_back(std::move(t));
  }
  return write_pb_folder(path, "output", slots, values);
}

}  // namespace tilewright::cli
