#include "tests/performance/kernel_graph.h"

#include <algorithm>

#include "ir/graph/infer.h"

namespace tilewright::performance {

using ir::ValueId;

std::string KernelGraph::next_name(const char* kind) const {
  return kind + std::to_string(graph_.values.size());
}

ValueId KernelGraph::input(const Shape& shape, DType dtype) {
  const ValueId v = graph_.add_value(next_name("x"), {dtype, {shape.begin(), shape.end()}});
  graph_.inputs.push_back(v);
  inputs_.push_back(random_tensor(dtype, shape, random_));
  bytes_read_ += static_cast<double>(inputs_.back().bytes.size());
  return v;
}

ValueId KernelGraph::weight(const Shape& shape, DType dtype) {
  const HostTensor t = random_tensor(dtype, shape, random_);
  bytes_read_ += static_cast<double>(t.bytes.size());
  return graph_.add_constant(next_name("w"),
                             ir::make_constant(dtype, shape, {t.bytes.begin(), t.bytes.end()}));
}

ValueId KernelGraph::number(double value) {
  return graph_.add_constant(next_name("c"), ir::make_constant_of<float>(
                                                 DType::kFloat32, {}, {static_cast<float>(value)}));
}

// Nodes are named by their number and profiled under their operator, by which `timed` finds them.
ValueId KernelGraph::op(std::string_view op, std::vector<ValueId> operands,
                        ir::Attributes attributes, int outputs) {
  const std::string name = next_name("n");
  auto results = ir::add_node(graph_, op, std::move(operands), std::move(attributes), outputs, name,
                              {std::string(op)});
  if (!results.ok()) check_failed(results.error().to_string().c_str(), __FILE__, __LINE__);
  return (*results)[0];
}

ValueId KernelGraph::reshape(ValueId value, const Shape& shape) {
  const ValueId extents = graph_.add_constant(
      next_name("shape"),
      ir::make_constant_of<int64_t>(DType::kInt64, {static_cast<int64_t>(shape.size())}, shape));
  return op("reshape", {value, extents});
}

void KernelGraph::output(ValueId value) {
  graph_.outputs.push_back(value);
  graph_.output_names.push_back(graph_.value(value).name);
  const ir::TensorType& type = graph_.value(value).type;
  const auto shape = ir::constant_shape(type);
  TW_CHECK(shape.has_value());
  bytes_written_ += static_cast<double>(*element_count(*shape) * byte_size(type.dtype));
}

void KernelGraph::update(ValueId input, ValueId value) {
  const auto at = std::find(graph_.inputs.begin(), graph_.inputs.end(), input);
  TW_CHECK(at != graph_.inputs.end());
  output(value);
  graph_.updates.push_back({static_cast<int32_t>(at - graph_.inputs.begin()),
                            static_cast<int32_t>(graph_.outputs.size()) - 1});
}

}  // namespace tilewright::performance
