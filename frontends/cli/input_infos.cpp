// What a model wants to be given, as an ONNX file, a compiled model or a text says it.
#include <algorithm>

#include "frontends/cli/cli.h"
#include "frontends/train/job.h"
#include "ir/text/printer_loops.h"
#include "passes/plan_kernel.h"

namespace tilewright::cli {

namespace {

InputInfo info_of(const OnnxValueInfo& v) {
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
  return info;
}
// Compares literally first, since a name may contain wildcard characters.
bool names(const std::string& pattern, const std::string& name) {
  return pattern == name || train::matches(pattern, name);
}
Error names_none(const OnnxModel& model, const std::string& pattern) {
  const OnnxGraph& graph = model.graph;
  const bool is_input = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                    [&](const OnnxValueInfo& v) { return names(pattern, v.name); });
  const bool is_initializer = std::any_of(graph.initializers.begin(), graph.initializers.end(),
                                          [&](const auto& i) { return names(pattern, i.first); });
  const std::string what = "--override " + pattern + ": ";
  if (is_input && is_initializer)
    return invalid(what + "in a model of IR version " + std::to_string(model.ir_version) +
                   " initializers are constants, also where they are inputs; from 4 on these are "
                   "defaults");
  if (is_initializer)
    return invalid(what + "an initializer that is no input of the model is a constant");
  return invalid(what + (is_input ? "an input that has no default must be given anyhow"
                                  : "the model has no such initializer"));
}

}  // namespace

std::vector<InputInfo> inputs_of(const OnnxModel& model) {
  std::vector<InputInfo> infos;
  for (const OnnxValueInfo& v : model.graph.inputs)
    if (!model.graph.initializers.count(v.name)) infos.push_back(info_of(v));
  return infos;
}
std::vector<InputInfo> inputs_and_defaults_of(const OnnxModel& model) {
  std::vector<InputInfo> infos = inputs_of(model);
  for (const OnnxValueInfo& v : model.graph.inputs) {
    if (!is_overridable(model, v.name)) continue;
    infos.push_back(info_of(v));
    infos.back().has_default = true;
  }
  return infos;
}
Result<std::vector<InputInfo>> inputs_of(const OnnxModel& model,
                                         const std::vector<std::string>& overrides) {
  std::vector<InputInfo> infos = inputs_and_defaults_of(model);
  for (const std::string& o : overrides)
    if (std::none_of(infos.begin(), infos.end(),
                     [&](const InputInfo& i) { return i.has_default && names(o, i.name); }))
      return names_none(model, o);
  std::erase_if(infos, [&](const InputInfo& i) {
    return i.has_default && std::none_of(overrides.begin(), overrides.end(),
                                         [&](const auto& o) { return names(o, i.name); });
  });
  return infos;
}
std::vector<InputInfo> inputs_of(const std::vector<ValueInfo>& values) {
  std::vector<InputInfo> infos;
  for (const ValueInfo& v : values)
    infos.push_back({v.name, v.dtype, v.extents, v.dim_names, true, v.has_default});
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

}  // namespace tilewright::cli
