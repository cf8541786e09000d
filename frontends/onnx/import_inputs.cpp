// Inputs and initializers of a graph: their types, what the caller says of their extents and elements, and constants.
#include "frontends/onnx/graph_import.h"
#include "frontends/tensor_files/element_type.h"

namespace tilewright {
namespace onnx {

using ir::ValueId;

// The bytes stay where the model file is mapped, aligned or not: readers of constants copy
// elements.
ir::ConstantRef to_constant(const TensorView& t) {
  return std::make_shared<const ir::Constant>(
      ir::Constant{*t.dtype(), t.shape, t.data, t.bytes, t.owner});
}

namespace {
void check_rank(const std::string& what, size_t rank) {
  if (rank > kRankLimit)
    throw ImportFailure{limit_error(what + " has rank " + std::to_string(rank) +
                                    ", beyond the limit of " + std::to_string(kRankLimit))};
}
// An initialiser against what the model declares of the input whose default it is.
void check_default(const OnnxValueInfo& info, const TensorView& value) {
  auto fail = [&](const std::string& is, const std::string& wanted) {
    throw ImportFailure{invalid("input '" + info.name + "': its initializer " + is +
                                ", the model declares " + wanted)};
  };
  if (value.onnx_code != info.type.onnx_code)
    fail("is " + onnx_element_name(value.onnx_code), onnx_element_name(info.type.onnx_code));
  if (!info.type.shape) return;
  const auto& dims = *info.type.shape;
  if (dims.size() != value.shape.size())
    fail("has rank " + std::to_string(value.shape.size()), "rank " + std::to_string(dims.size()));
  for (size_t d = 0; d < dims.size(); ++d)
    if (const auto* fixed = std::get_if<int64_t>(&dims[d]); fixed && *fixed != value.shape[d])
      fail("is " + to_string(value.shape),
           std::to_string(*fixed) + " as extent " + std::to_string(d));
}
}  // namespace

ir::TensorType GraphImport::input_type(const OnnxValueInfo& info) {
  auto fail = [&](const std::string& what) {
    throw ImportFailure{unsupported("input '" + info.name + "': " + what)};
  };
  if (info.type.kind != OnnxTypeKind::kTensor)
    fail("is " + std::string(describe_kind(info.type.kind)) + ", expected a tensor");
  auto dtype = dtype_from_onnx(info.type.onnx_code);
  if (!dtype) fail("element type " + onnx_element_name(info.type.onnx_code));
  ir::TensorType type{*dtype, {}};
  auto given = options_.input_shapes.find(info.name);
  const auto fallback = model_.graph.initializers.find(info.name);
  if (fallback != model_.graph.initializers.end()) {
    check_default(info, fallback->second);
    if (!info.type.shape && given == options_.input_shapes.end()) {
      for (int64_t d : fallback->second.shape) type.dims.push_back(ir::Expr(d));
      return type;
    }
  }
  if (!info.type.shape) {
    if (given == options_.input_shapes.end())
      throw ImportFailure{
          needs_value("input '" + info.name + "': rank is unknown: give its shape")};
    for (int64_t d : given->second) type.dims.push_back(ir::Expr(d));
    return type;
  }
  const auto& dims = *info.type.shape;
  if (given != options_.input_shapes.end() && given->second.size() != dims.size())
    throw ImportFailure{invalid("input '" + info.name + "': shape " + to_string(given->second) +
                                " has rank " + std::to_string(given->second.size()) +
                                ", the model declares rank " + std::to_string(dims.size()))};
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t* fixed = std::get_if<int64_t>(&dims[d]);
    if (given != options_.input_shapes.end()) {
      const int64_t want = given->second[d];
      if (fixed && *fixed != want)
        throw ImportFailure{invalid("input '" + info.name + "': extent " + std::to_string(d) +
                                    " is " + std::to_string(want) + ", expected " +
                                    std::to_string(*fixed))};
      type.dims.push_back(ir::Expr(want));
    } else {
      type.dims.push_back(extents_.extent(info.name, d, dims[d]));
    }
  }
  return type;
}

void GraphImport::import_inputs(const OnnxGraph& graph, ImportScope& scope) {
  std::vector<const OnnxValueInfo*> inputs, overridden;
  for (const OnnxValueInfo& info : graph.inputs) {
    if (!graph.initializers.count(info.name))
      inputs.push_back(&info);
    else if (options_.overrides.count(info.name))
      overridden.push_back(&info);  // else a constant with a declaration
  }
  inputs.insert(inputs.end(), overridden.begin(), overridden.end());
  for (const OnnxValueInfo* input : inputs) {
    const OnnxValueInfo& info = *input;
    ir::TensorType type;
    try {
      type = input_type(info);
      check_rank("input '" + info.name + "'", type.dims.size());
    } catch (ImportFailure& f) {
      if (f.error.kind != ErrorKind::kUnsupported) throw;
      unsupported_.push_back(std::move(f.error));
      continue;
    }
    ValueId v = graph_.add_value(info.name, std::move(type));
    graph_.inputs.push_back(v);
    scope.values[info.name] = v;
    auto value = options_.input_values.find(info.name);
    if (value == options_.input_values.end()) continue;
    std::vector<ir::Expr> elements;
    const ir::Constant& c = *value->second;
    for (int64_t i = 0; i < element_count(c.shape).value_or(0); ++i)
      elements.push_back(is_float(c.dtype) ? ir::float_imm(ir::number_at(c, i), c.dtype)
                                           : ir::int_imm(ir::integer_at(c, i), c.dtype));
    graph_.value(v).known = std::move(elements);
  }
}

void GraphImport::import_initializers(const OnnxGraph& graph, ImportScope& scope) {
  for (const auto& [name, tensor] : graph.initializers) {
    if (!tensor.dtype()) {
      unsupported_.push_back(unsupported("initializer '" + name + "': element type " +
                                         onnx_element_name(tensor.onnx_code)));
      continue;
    }
    if (scope.values.count(name) && current_ == &graph_ && !scope.parent) continue;  // bound
    check_rank("initializer '" + name + "'", tensor.shape.size());
    scope.values[name] = current_->add_constant(name, to_constant(tensor));
  }
}

}  // namespace onnx
}  // namespace tilewright
