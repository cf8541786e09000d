#include "frontends/train/step_nodes.h"

#include "frontends/train/losses.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"

namespace tilewright::train {

using ir::V;
using ir::ValueId;

std::vector<ValueId> StepNodes::ops(std::string_view name, std::vector<ValueId> inputs,
                                    ir::Attributes attributes, int outputs) {
  auto r = ir::add_node(graph_, name, std::move(inputs), std::move(attributes), outputs, label_,
                        {label_});
  if (!r.ok()) throw StepFailure{std::move(r.error())};
  return std::move(r).value();
}
void StepNodes::fail(const std::string& message) const {
  throw StepFailure{invalid(message, label_)};
}
ValueId StepNodes::input(const std::string& name, ir::TensorType type) {
  const ValueId v = graph_.add_value(name, std::move(type));
  graph_.inputs.push_back(v);
  return v;
}

ir::TensorType flat_type(const Parameters& p) { return {DType::kFloat32, {ir::Expr(p.elements)}}; }

ValueId piece_of(StepNodes& n, ValueId flat, const Parameter& p) {
  const ValueId piece =
      n.reshape(n.slice(flat, 0, p.offset, p.offset + p.elements), p.stored_shape());
  if (p.order.empty()) return piece;
  std::vector<int64_t> place(p.order.size());  // of each dimension among those that lie there
  for (size_t k = 0; k < place.size(); ++k)
    place[static_cast<size_t>(p.order[k])] = static_cast<int64_t>(k);
  return n.op("transpose", {piece}, {{"perm", place}});
}

std::vector<ValueId> add_pieces(StepNodes& n, ValueId flat, const Parameters& members,
                                BoundValues& bound) {
  std::vector<ValueId> pieces;
  for (const Parameter& p : members.members) {
    pieces.push_back(piece_of(n, flat, p));
    bound.initializers[p.name] = pieces.back();
  }
  return pieces;
}

static Status bind_batch(const OnnxValueInfo& input, int64_t batch, const Shape* in_data,
                         ImportOptions& options) {
  const std::string where = "input '" + input.name + "' of the model";
  if (!input.type.shape || input.type.shape->empty())
    return invalid("has no dimension of samples", where);
  const auto& dims = *input.type.shape;
  if (const auto* extent = std::get_if<int64_t>(&dims[0]); extent && *extent != batch)
    return invalid(
        "is made for batches of " + std::to_string(*extent) + ", batch is " + std::to_string(batch),
        where);
  Shape shape{batch};
  for (size_t d = 1; d < dims.size(); ++d) {
    const auto* extent = std::get_if<int64_t>(&dims[d]);
    if (!extent && (!in_data || in_data->size() != dims.size() - 1))
      return unsupported("an extent of a sample is not known: " + extent_name(dims[d]), where);
    shape.push_back(extent ? *extent : (*in_data)[d - 1]);
  }
  options.input_shapes[input.name] = shape;
  return {};
}

Status bind_batches(const OnnxModel& model, const Job& job, ImportOptions& options) {
  std::vector<const OnnxValueInfo*> inputs;
  std::vector<std::string> open;
  for (const OnnxValueInfo& input : model.graph.inputs) {
    if (model.graph.initializers.count(input.name)) continue;
    inputs.push_back(&input);
    if (!input.type.shape) continue;
    for (size_t d = 1; d < input.type.shape->size(); ++d)
      if (!std::holds_alternative<int64_t>((*input.type.shape)[d])) open.push_back(input.name);
  }
  std::map<std::string, Shape> in_data;
  if (!open.empty()) { TW_ASSIGN(in_data, sample_shapes(job.data, open)); }
  for (const OnnxValueInfo* input : inputs) {
    const auto found = in_data.find(input->name);
    TW_RETURN_IF_ERROR(
        bind_batch(*input, job.part(), found == in_data.end() ? nullptr : &found->second, options));
  }
  return {};
}

SampleInfo sample_of(const ir::Graph& graph, ValueId v) {
  const ir::Value& value = graph.value(v);
  Shape shape = constant_shape(value.type).value_or(Shape{});
  if (!shape.empty()) shape.erase(shape.begin());
  return {value.name, value.type.dtype, shape};
}

// With the classes last, as losses have them.
static V with_classes_last(V output, int64_t axis) {
  if (axis < 0) return output;
  if (axis >= output.rank())
    output.n.fail("the output is " + to_string(output.n.type(output.id)) +
                  ": it has no dimension " + std::to_string(axis) + ", the job's class_axis");
  std::vector<int64_t> order;
  for (int64_t d = 0; d < output.rank(); ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  return {output.n, output.n.transpose(output.id, order)};
}

Compared add_targets(StepNodes& n, ValueId output, const Job& job, Wanted& wanted) {
  const Loss& loss = find_loss(job.loss);
  const V y = with_classes_last(V{n, output}.to(DType::kFloat32), job.class_axis);
  if (!loss.has_targets) return {y, y};
  const ir::TensorType type = loss.targets(n.type(y.id));
  if (type.dims.empty() || ir::as_int(type.dims[0]) != job.part())
    n.fail("the output is " + to_string(n.type(output)) + ", expected " +
           std::to_string(job.part()) + " samples in dimension 0");
  const V targets{n, n.input("targets", type)};
  wanted.has_targets = true;
  wanted.targets = sample_of(n.graph(), targets.id);
  // Of whole numbers they are classes: numbers of the extent of the logits.
  if (type.dtype == DType::kInt64)
    wanted.classes = ir::as_int(n.type(y.id).dims.back()).value_or(0);
  return {y, targets};
}

}  // namespace tilewright::train
