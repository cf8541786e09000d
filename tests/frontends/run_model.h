// Runs a model of one ONNX node, compiled in memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <variant>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {

inline Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor t = Tensor::allocate(dtype, shape).value();
  for (size_t i = 0; i < values.size(); ++i) switch (dtype) {
      case DType::kFloat32: t.data_as<float>()[i] = static_cast<float>(values[i]); break;
      case DType::kFloat64: t.data_as<double>()[i] = values[i]; break;
      case DType::kInt32: t.data_as<int32_t>()[i] = static_cast<int32_t>(values[i]); break;
      case DType::kInt64: t.data_as<int64_t>()[i] = static_cast<int64_t>(values[i]); break;
      case DType::kUInt8: t.data_as<uint8_t>()[i] = static_cast<uint8_t>(values[i]); break;
      case DType::kInt8: t.data_as<int8_t>()[i] = static_cast<int8_t>(values[i]); break;
      default: TW_CHECK(!"an element type that these tests use");
    }
  return t;
}
inline std::vector<double> numbers_of(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.element_count(); ++i) switch (t.dtype()) {
      case DType::kFloat32: v.push_back(t.data_as<float>()[i]); break;
      case DType::kFloat64: v.push_back(t.data_as<double>()[i]); break;
      case DType::kInt32: v.push_back(t.data_as<int32_t>()[i]); break;
      case DType::kInt64: v.push_back(static_cast<double>(t.data_as<int64_t>()[i])); break;
      case DType::kUInt8: v.push_back(t.data_as<uint8_t>()[i]); break;
      case DType::kInt8: v.push_back(t.data_as<int8_t>()[i]); break;
      case DType::kBool: v.push_back(t.data_as<uint8_t>()[i]); break;
      default: TW_CHECK(!"an element type that these tests use");
    }
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
  explicit NodeModel(int64_t opset = 21) {
    proto.set_ir_version(10);
    proto.add_opset_import()->set_version(opset);
    proto.mutable_graph()->set_name("main");
  }
  std::string operand(const Operand& o) {
    if (!o.tensor.defined()) return "";
    const std::string name = "x" + std::to_string(count_++);
    auto* graph = proto.mutable_graph();
    if (o.known) {
      auto* t = graph->add_initializer();
      t->set_name(name);
      t->set_data_type(code(o.tensor.dtype()));
      for (int64_t d : o.tensor.shape()) t->add_dims(d);
      t->set_raw_data(o.tensor.data(), static_cast<size_t>(o.tensor.bytes()));
      return name;
    }
    auto* value = graph->add_input();
    value->set_name(name);
    auto* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(code(o.tensor.dtype()));
    type->mutable_shape();
    for (int64_t d : o.tensor.shape()) type->mutable_shape()->add_dim()->set_dim_value(d);
    inputs.push_back(o.tensor);
    return name;
  }
  onnx_format::NodeProto* node(const std::string& op, const Names& in, const Names& out,
                               const NodeAttributes& attributes = {}) {
    auto* node = add_node(proto.mutable_graph()->mutable_node(), op, in, out);
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
  void output(const std::string& name) { add_value(proto.mutable_graph()->mutable_output(), name); }

  Result<std::unique_ptr<Session>> session(const CompileOptions& compile = {},
                                           const SessionOptions& options = {}) const {
    TW_ASSIGN(std::unique_ptr<OnnxModel> model, parse(proto));
    TW_ASSIGN(std::shared_ptr<Executable> executable, compile_in_memory(*model, {}, compile));
    return Session::create(executable, options);
  }
  // The results of one run, whose random numbers are always the same; none, and a failed test, after
  // an error.
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

  onnx_format::ModelProto proto;
  std::vector<Tensor> inputs;

 private:
  static int32_t code(DType t) {
    switch (t) {
      case DType::kFloat32: return 1;
      case DType::kUInt8: return 2;
      case DType::kInt8: return 3;
      case DType::kInt32: return 6;
      case DType::kInt64: return 7;
      case DType::kBool: return 9;
      case DType::kFloat64: return 11;
      default: TW_CHECK(!"an element type that these tests use"); return 0;
    }
  }
  int count_ = 0;
};

// The results of one node.
inline std::vector<Tensor> run_node(const std::string& op, const std::vector<Operand>& operands,
                                    const NodeAttributes& attributes = {}, int64_t opset = 21,
                                    int outputs = 1) {
  NodeModel m(opset);
  Names in, out;
  for (const Operand& o : operands) in.push_back(m.operand(o));
  for (int k = 0; k < outputs; ++k) {
    out.push_back("y" + std::to_string(k));
    m.output(out.back());
  }
  m.node(op, in, out, attributes);
  return m.run();
}

}  // namespace tilewright
