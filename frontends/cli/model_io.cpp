// Opening models for a run; its outputs in .npz files and folders of .pb files.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "frontends/cli/cli.h"
#include "frontends/cli/progress.h"
#include "frontends/tensor_files/element_type.h"
#include "frontends/tensor_files/npz.h"
#include "frontends/tensor_files/tensor_pb.h"
#include "runtime/core/open_file.h"
#include "runtime/core/write_file.h"

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
  if (compile.cache) compile.cache->set_note(compile.note);
  compile.schedule_threads = options.threads > 0 ? options.threads : available_cpus();
  return compile;
}

void note_bounded_threads(int threads) {
  const int most = ThreadPool::most_workers();
  if (threads > most)
    std::cerr << "tilewright: note: runs with " << most << " threads instead of " << threads
              << ": the most for the " << available_cpus() << " CPUs that this process may use\n";
}

bool may_decide_shapes(DType dtype, const Shape& shape) {
  const int64_t most = is_float(dtype) ? 8 : 64;  // scales of Resize; lists of axes, sizes and pads
  return shape.size() <= 1 && element_count(shape).value_or(most + 1) <= most;
}

namespace {

// Binds the values of inputs on which shapes may depend.
void add_values(Binding& binding, const std::vector<InputInfo>& infos,
                const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor& t = inputs[i];
    if (!may_decide_shapes(t.dtype(), t.shape())) continue;
    const auto* p = t.data_as<const uint8_t>();
    binding.values[infos[i].name] =
        ir::make_constant(t.dtype(), t.shape(), std::vector<uint8_t>(p, p + t.bytes()));
  }
}

Result<Tensor> default_of(const OnnxModel& model, const InputInfo& input) {
  const TensorView& value = model.graph.initializers.at(input.name);
  if (value.dtype() != input.dtype)
    return invalid("input '" + input.name + "' is declared as " + std::string(name(input.dtype)) +
                   ", but its initializer is " + onnx_element_name(value.onnx_code));
  TW_ASSIGN(Tensor tensor, Tensor::allocate(input.dtype, value.shape));
  if (static_cast<int64_t>(value.bytes) != tensor.bytes())
    return internal_error("initializer '" + input.name + "' has " + std::to_string(value.bytes) +
                          " bytes, expected " + std::to_string(tensor.bytes()));
  if (value.bytes > 0) std::memcpy(tensor.data(), value.data, value.bytes);
  return tensor;
}

// Initialisers that are given, or that the binding names, are inputs, too. Writes which inputs those are.
Result<std::vector<Tensor>> inputs_and_overrides(const std::string& path, const OnnxModel& model,
                                                 Binding& binding, std::vector<InputInfo>& infos) {
  const std::vector<InputInfo> all = inputs_and_defaults_of(model);
  TW_ASSIGN(const std::vector<Tensor> given, inputs_for(path, all, binding, &model));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].has_default && !given[i].defined() && !binding.overrides.count(all[i].name))
      continue;
    infos.push_back(all[i]);
    inputs.push_back(given[i]);
    if (all[i].has_default) binding.overrides.insert(all[i].name);
    if (!given[i].defined()) { TW_ASSIGN(inputs.back(), default_of(model, all[i])); }
  }
  return inputs;
}

Result<TextModel> open_text(const std::string& path) {
  TW_ASSIGN(TextModel text, read_text_model(path));
  if (text.made_up)
    std::cerr << "tilewright: note: constants whose contents the text does not hold are random\n";
  return text;
}

}  // namespace

Result<BoundModel> open_bound(const ModelOptions& options, const std::string& inputs) {
  BoundModel m;
  TW_ASSIGN(m.model, open_model(options.model));
  TW_ASSIGN(const std::vector<InputInfo> wanted, inputs_of(*m.model, options.overrides));
  TW_ASSIGN(m.binding, parse_one_set(wanted, options.shapes));
  TW_ASSIGN(m.inputs, inputs_and_overrides(inputs, *m.model, m.binding, m.infos));
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

Result<SizedModel> open_sized(const ModelOptions& options, const std::string& inputs) {
  SizedModel sized;
  if (is_text_model(options.model)) {
    TW_ASSIGN(sized.text, open_text(options.model));
    sized.infos = inputs_of(*sized.text);
  } else {
    TW_ASSIGN(sized.model, open_model(options.model));
    TW_ASSIGN(sized.infos, inputs_of(*sized.model, options.overrides));
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
    TW_ASSIGN(std::vector<Tensor> of_set, inputs_for(inputs, sized.infos, set, sized.model.get()));
    for (size_t i = 0; i < of_set.size(); ++i)
      if (!of_set[i].defined()) { TW_ASSIGN(of_set[i], default_of(*sized.model, sized.infos[i])); }
    sized.inputs.push_back(std::move(of_set));
  }
  return sized;
}

Result<OpenedModel> open_to_run(const ModelOptions& options, const std::string& inputs,
                                bool profile) {
  if (!options.overrides.empty() && (is_compiled(options.model) || is_text_model(options.model)))
    return invalid("--override is of .onnx files: '" + options.model + "' has its inputs");
  note_bounded_threads(options.threads);
  OpenedModel opened;
  std::vector<InputInfo> infos;
  SessionOptions session_options;
  session_options.threads = options.threads;
  session_options.profile = profile;
  session_options.seed = options.seed;
  if (is_compiled(options.model)) {
    TW_ASSIGN(opened.executable, load_executable(options.model));
    infos = inputs_of(describe_inputs(*opened.executable));
    TW_ASSIGN(Binding binding, parse_one_set(infos, options.shapes));
    TW_ASSIGN(opened.inputs, inputs_for(inputs, infos, binding));
  } else if (is_text_model(options.model)) {
    TW_ASSIGN(const TextModel text, open_text(options.model));
    infos = inputs_of(text);
    TW_ASSIGN(const Binding binding, parse_one_set(infos, options.shapes));
    TW_ASSIGN(opened.inputs, inputs_for(inputs, infos, binding));
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

namespace {

bool is_archive(const std::string& path) {
  return std::filesystem::path(path).extension() == ".npz";
}

}  // namespace

Status check_outputs(const std::string& path) {
  if (is_archive(path)) return check_writable(path);
  std::error_code error;
  if (is_taken(path) && !std::filesystem::is_directory(path, error))
    return invalid("is no folder, and its name does not end with .npz", path);
  return {};
}

Status write_outputs(const std::string& path, const std::vector<std::string>& names,
                     const std::vector<Tensor>& outputs) {
  NamedTensors tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HostTensor t(outputs[i].dtype(), outputs[i].shape());
    if (!t.bytes.empty()) std::memcpy(t.bytes.data(), outputs[i].data(), t.bytes.size());
    tensors.emplace_back(names[i], std::move(t));
  }
  if (is_archive(path)) return write_npz(path, tensors);
  std::vector<PbSlot> slots;
  std::vector<HostValue> values;
  for (auto& [name, t] : tensors) {
    slots.push_back({name, PbKind::kTensor});
    values.emplace_back(std::move(t));
  }
  return write_pb_folder(path, "output", slots, values);
}

}  // namespace tilewright::cli
