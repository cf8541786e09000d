// What a model wants to be given, as an ONNX file, a compiled model or a text says it.
#include "frontends/cli/cli.h"
#include "ir/text/printer_loops.h"
#include "passes/plan_kernel.h"

namespace tilewright::cli {

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

}  // namespace tilewright::cli
