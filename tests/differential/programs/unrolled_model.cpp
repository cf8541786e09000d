// Executes a model node by node with the interpreter, and writes down each operator that it executes: an If leaves the
// branch that was taken, a Loop or Scan leaves its body once for each iteration. Conditions and numbers of iterations
// are known, as every value is.
#include "tests/differential/programs/unrolled_model.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "runtime/core/check.h"

namespace tilewright {
namespace {

using ir::ValueId;
using onnx_format::GraphProto;
using onnx_format::NodeProto;
using Values = std::vector<ValueId>;
using Names = std::map<std::string, ValueId>;

// Operators whose attributes are named alike in both.
const std::map<std::string, const char*> kOperators = {
    {"Add", "add"},        {"Sub", "sub"},        {"Mul", "mul"},
    {"Max", "max"},        {"Min", "min"},        {"Neg", "neg"},
    {"Tanh", "tanh"},      {"Sin", "sin"},        {"Sigmoid", "sigmoid"},
    {"Relu", "relu"},      {"Identity", nullptr}, {"Less", "less"},
    {"Equal", "equal"},    {"Not", "not"},        {"And", "and"},
    {"Or", "or"},          {"Xor", "xor"},        {"BitwiseAnd", "and"},
    {"Where", "where"},    {"Concat", "concat"},  {"Transpose", "transpose"},
    {"MatMul", "matmul"},  {"Gather", "gather"},  {"Slice", "slice"},
    {"Reshape", "reshape"}};

// Returns the elements of an initializer, which tests write as raw data.
HostTensor decoded(const onnx_format::TensorProto& t) {
  HostTensor h(*dtype_from_onnx(t.data_type()), Shape(t.dims().begin(), t.dims().end()));
  TW_CHECK(t.raw_data().size() == h.bytes.size());
  if (!h.bytes.empty()) std::memcpy(h.bytes.data(), t.raw_data().data(), h.bytes.size());
  return h;
}
const onnx_format::AttributeProto* attribute(const NodeProto& node, const char* name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}
// Element k of a list of integers; 0 where the list ends before or is left out.
int64_t listed(const NodeProto& node, const char* name, int k) {
  const auto* a = attribute(node, name);
  return a && k < a->ints_size() ? a->ints(k) : 0;
}

// The state of one unrolling: the graph so far, and the tensor of each of its values.
class Unrolling {
 public:
  UnrolledModel run(const onnx_format::ModelProto& model, const Tensors& inputs) {
    Names names;
    for (size_t k = 0; k < inputs.size(); ++k)
      names[model.graph().input(static_cast<int>(k)).name()] =
          known(r_.call.input(inputs[k]), inputs[k]);
    for (const ValueId v : block(model.graph(), names)) {
      r_.call.output(v);
      r_.outputs.push_back(tensor(v));
    }
    return std::move(r_);
  }

 private:
  // Notes the tensor of a value.
  ValueId known(ValueId v, HostTensor t) {
    tensors_[v] = std::move(t);
    return v;
  }
  const HostTensor& tensor(ValueId v) const { return tensors_.at(v); }
  ValueId constant(const HostTensor& t) { return known(r_.call.constant(t), t); }
  ValueId integers(const std::vector<int64_t>& values) {
    return constant(repeated(DType::kInt64, {static_cast<int64_t>(values.size())},
                             {values.begin(), values.end()}));
  }
  ValueId scalar(DType dtype, double value) { return constant(repeated(dtype, {}, {value})); }
  bool truth(ValueId v) const { return element(tensor(v), 0) != 0; }

  // Adds an operator to the unrolled graph, and runs it.
  ValueId op(std::string_view name, const Values& operands, const ir::Attributes& attributes) {
    const ValueId result = r_.call.op(name, operands, attributes);
    GraphCall alone;
    Values given;
    for (const ValueId v : operands)
      given.push_back(r_.call.graph.value(v).constant ? alone.constant(tensor(v))
                                                      : alone.input(tensor(v)));
    alone.output(alone.op(name, given, attributes));
    auto run = interpret_graph(alone.graph, alone.inputs);
    TW_CHECK(run.ok());
    return known(result, std::move(run->outputs[0]));
  }

  // Gives the outputs of a graph; `names`: what it sees from outside.
  Values block(const GraphProto& graph, Names names) {
    for (const auto& t : graph.initializer()) names[t.name()] = constant(decoded(t));
    for (const NodeProto& n : graph.node()) {
      const Values results = node(n, names);
      for (int k = 0; k < n.output_size(); ++k)
        if (!n.output(k).empty()) names[n.output(k)] = results[static_cast<size_t>(k)];
    }
    Values outputs;
    for (const auto& o : graph.output()) outputs.push_back(names.at(o.name()));
    return outputs;
  }
  // Gives the results of a node: those of its bodies, or those of one operator.
  Values node(const NodeProto& n, const Names& names) {
    Values operands;
    for (const std::string& name : n.input())
      operands.push_back(name.empty() ? ir::kNone : names.at(name));
    if (n.op_type() == "If")
      return block(attribute(n, truth(operands[0]) ? "then_branch" : "else_branch")->g(), names);
    if (n.op_type() == "Loop") return loop(attribute(n, "body")->g(), operands, names);
    if (n.op_type() == "Scan") return scan(n, operands, names);
    if (n.op_type() == "Identity") return operands;
    ir::Attributes attributes;
    if (n.op_type() == "ReduceSum") {
      const HostTensor& axes = tensor(operands[1]);
      attributes["axes"] =
          std::vector<int64_t>(axes.data<int64_t>(), axes.data<int64_t>() + axes.size());
      attributes["keepdims"] = attribute(n, "keepdims")->i();
      return {op("reduce_sum", {operands[0]}, attributes)};
    }
    for (const auto& a : n.attribute())
      if (a.type() == onnx_format::INTS)
        attributes[a.name()] = std::vector<int64_t>(a.ints().begin(), a.ints().end());
      else
        attributes[a.name()] = a.i();
    if (n.op_type() == "Reshape") attributes["allowzero"] = int64_t{0};
    return {op(kOperators.at(n.op_type()), operands, attributes)};
  }

  // Operands of a Loop are the number of iterations, the condition, and the carried values; any of the first two may be
  // absent. The condition that a body gives counts only if there was one at first.
  Values loop(const GraphProto& body, const Values& operands, const Names& names) {
    const auto carried = operands.size() - 2;
    Values state(operands.begin() + 2, operands.end());
    std::vector<Values> rows(static_cast<size_t>(body.output_size()) - 1 - carried);
    bool more = operands[1] == ir::kNone || truth(operands[1]);
    for (int64_t i = 0; more; ++i) {
      if (operands[0] != ir::kNone && i >= tensor(operands[0]).data<int64_t>()[0]) break;
      Names inside = names;
      inside[body.input(0).name()] = scalar(DType::kInt64, static_cast<double>(i));
      inside[body.input(1).name()] = scalar(DType::kBool, 1);
      for (size_t k = 0; k < carried; ++k)
        inside[body.input(static_cast<int>(k) + 2).name()] = state[k];
      const Values given = block(body, inside);
      more = operands[1] == ir::kNone || truth(given[0]);  // ignored where there is none at first
      for (size_t k = 0; k < carried; ++k) state[k] = given[k + 1];
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(given[k + 1 + carried]);
    }
    for (size_t k = 0; k < rows.size(); ++k)
      state.push_back(stacked(rows[k], body.output(static_cast<int>(k + 1 + carried)), 0));
    return state;
  }

  // Operands of a Scan are its states, then its sequences, which are read along their axes in their directions.
  Values scan(const NodeProto& n, const Values& operands, const Names& names) {
    const GraphProto& body = attribute(n, "body")->g();
    const auto sequences = static_cast<size_t>(attribute(n, "num_scan_inputs")->i());
    const size_t states = operands.size() - sequences;
    Values state(operands.begin(), operands.begin() + static_cast<int64_t>(states));
    std::vector<Values> rows(static_cast<size_t>(body.output_size()) - states);
    const auto axis_of = [&](int k) {
      const int64_t axis = listed(n, "scan_input_axes", k);
      const auto rank =
          static_cast<int64_t>(tensor(operands[states + static_cast<size_t>(k)]).shape.size());
      return axis < 0 ? axis + rank : axis;
    };
    const int64_t steps = tensor(operands[states]).shape[static_cast<size_t>(axis_of(0))];
    for (int64_t i = 0; i < steps; ++i) {
      Names inside = names;
      for (size_t k = 0; k < states; ++k) inside[body.input(static_cast<int>(k)).name()] = state[k];
      for (int k = 0; k < static_cast<int>(sequences); ++k) {
        const int64_t at = listed(n, "scan_input_directions", k) ? steps - 1 - i : i;
        inside[body.input(static_cast<int>(states) + k).name()] =
            op("gather",
               {operands[states + static_cast<size_t>(k)],
                scalar(DType::kInt64, static_cast<double>(at))},
               {{"axis", axis_of(k)}});
      }
      const Values given = block(body, inside);
      state.assign(given.begin(), given.begin() + static_cast<int64_t>(states));
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(given[states + k]);
    }
    for (size_t k = 0; k < rows.size(); ++k) {
      const int place = static_cast<int>(k);
      if (listed(n, "scan_output_directions", place)) std::reverse(rows[k].begin(), rows[k].end());
      state.push_back(stacked(rows[k], body.output(static_cast<int>(states) + place),
                              listed(n, "scan_output_axes", place)));
    }
    return state;
  }
  // Rows along a new axis; `type`: of one of them.
  ValueId stacked(const Values& rows, const onnx_format::ValueInfoProto& type, int64_t axis) {
    const auto& tensor_type = type.type().tensor_type();
    Shape shape;
    for (const auto& d : tensor_type.shape().dim()) shape.push_back(d.dim_value());
    if (axis < 0) axis += static_cast<int64_t>(shape.size()) + 1;
    if (rows.empty()) {
      shape.insert(shape.begin() + axis, 0);
      return constant(HostTensor(*dtype_from_onnx(tensor_type.elem_type()), shape));
    }
    TW_CHECK(tensor(rows[0]).shape == shape);
    shape.insert(shape.begin() + axis, 1);
    Values parts;
    for (const ValueId v : rows)
      parts.push_back(op("reshape", {v, integers(shape)}, {{"allowzero", int64_t{1}}}));
    return op("concat", parts, {{"axis", axis}});
  }

  UnrolledModel r_;
  std::map<ValueId, HostTensor> tensors_;
};

}  // namespace

UnrolledModel unroll(const onnx_format::ModelProto& model, const Tensors& inputs) {
  return Unrolling().run(model, inputs);
}

}  // namespace tilewright
