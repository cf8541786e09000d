// Models of few ONNX nodes, compiled in memory and run.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <variant>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// Between the tensors of sessions and those of files and oracles, with a copy; and numbers in and
// out, whatever the element type.
inline Tensor to_tensor(const HostTensor& h) {
  Tensor t = Tensor::allocate(h.dtype, h.shape).value();
  if (!h.bytes.empty()) std::memcpy(t.data(), h.bytes.data(), h.bytes.size());
  return t;
}
inline HostTensor to_host(const Tensor& t) {
  HostTensor h(t.dtype(), t.shape());
  if (!h.bytes.empty()) std::memcpy(h.bytes.data(), t.data(), h.bytes.size());
  return h;
}
inline Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  return to_tensor(repeated(dtype, shape, values));
}
inline std::vector<double> numbers_of(const Tensor& t) {
  const HostTensor h = to_host(t);
  std::vector<double> v;
  for (int64_t i = 0; i < h.size(); ++i) v.push_back(element(h, i));
  return v;
}

// An operand: given at the run, or known when the model is compiled. Without a tensor: left out.
struct Operand {
  Tensor tensor;
  bool known = false;
};
using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using NodeAttributes = std::map<std::string, AttributeValue>;

// A model of nodes that tests add to, operands named x0, x1, ...
class NodeModel {
 public:
  // Opset of the standard domain; com.microsoft is imported as well.
  explicit NodeModel(int64_t opset = 21) {
    proto.set_ir_version(10);
    proto.add_opset_import()->set_version(opset);
    auto* microsoft = proto.add_opset_import();
    microsoft->set_domain("com.microsoft");
    microsoft->set_version(1);
    proto.mutable_graph()->set_name("main");
  }
  // Makes an operand known to the graph; the name to give to nodes.
  std::string operand(const Operand& o) {
    if (!o.tensor.defined()) return "";
    const std::string name = "x" + std::to_string(count_++);
    auto* graph = proto.mutable_graph();
    if (o.known) {
      auto* t = graph->add_initializer();
      t->set_name(name);
      t->set_data_type(info(o.tensor.dtype()).onnx_code);
      for (int64_t d : o.tensor.shape()) t->add_dims(d);
      t->set_raw_data(o.tensor.data(), static_cast<size_t>(o.tensor.bytes()));
      return name;
    }
    auto* value = graph->add_input();
    value->set_name(name);
    auto* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(info(o.tensor.dtype()).onnx_code);
    type->mutable_shape();
    for (int64_t d : o.tensor.shape()) type->mutable_shape()->add_dim()->set_dim_value(d);
    inputs.push_back(o.tensor);
    return name;
  }
  // Appends a node; attributes take the type of the value given.
  onnx_format::NodeProto* node(const std::string& op, const Names& in, const Names& out,
                               const NodeAttributes& attributes = {},
                               const std::string& domain = {}) {
    auto* node = add_node(proto.mutable_graph()->mutable_node(), op, in, out, "node", domain);
    for (const auto& [name, value] : attributes) {
      auto* a = node->add_attribute();
      a->set_name(name);
      if (const auto* i = std::get_if<int64_t>(&value)) {
        a->set_type(onnx_format::INT);
        a->set_i(*i);
      } else if (const auto* f = std::get_if<double>(&value)) {
        a->set_type(onnx_format::FLOAT);
        a->set_f(static_cast<float>(*f));
      } else if (const auto* s = std::get_if<std::string>(&value)) {
        a->set_type(onnx_format::STRING);
        a->set_s(*s);
      } else {
        a->set_type(onnx_format::INTS);
        for (int64_t v : std::get<std::vector<int64_t>>(value)) a->add_ints(v);
      }
    }
    return node;
  }
  // Declares a value that nodes make as a result of the model.
  // Of the type that its node gives it.
  void output(const std::string& name) { proto.mutable_graph()->add_output()->set_name(name); }

  // Compiled, ready to run; errors are for the test to judge.
  Result<std::unique_ptr<Session>> session(const CompileOptions& compile = {},
                                           const SessionOptions& options = {}) const {
    TW_ASSIGN(std::unique_ptr<OnnxModel> model, parse(proto));
    TW_ASSIGN(std::shared_ptr<Executable> executable, compile_in_memory(*model, {}, compile));
    return Session::create(executable, options);
  }
  // The results of one run, whose random numbers are always the same; none, and a failed test,
  // after an error.
  std::vector<Tensor> run(const CompileOptions& compile = {}) const {
    std::vector<Tensor> outputs;
    SessionOptions options;
    options.seed = 1;
    auto made = session(compile, options);
    if (!made.ok()) {
      ADD_FAILURE() << made.error().to_string();
      return outputs;
    }
    Status s = (*made)->run(inputs, outputs);
    if (!s.ok()) ADD_FAILURE() << s.error().to_string();
    return outputs;
  }

  // Open, so that tests can make it worse; and what run() passes in, in the graph's order.
  onnx_format::ModelProto proto;
  std::vector<Tensor> inputs;

 private:
  int count_ = 0;
};

// The results of one node.
inline std::vector<Tensor> run_node(const std::string& op, const std::vector<Operand>& operands,
                                    const NodeAttributes& attributes = {}, int64_t opset = 21,
                                    int outputs = 1, const std::string& domain = {}) {
  NodeModel m(opset);
  Names in, out;
  for (const Operand& o : operands) in.push_back(m.operand(o));
  for (int k = 0; k < outputs; ++k) {
    out.push_back("y" + std::to_string(k));
    m.output(out.back());
  }
  m.node(op, in, out, attributes, domain);
  return m.run();
}

}  // namespace tilewright
