// Models of one node for tests, which they compile and run.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

using onnx_format::NodeProto;
using Ints = std::vector<int64_t>;

// An operand: floats of a shape; else integers that the model has as a constant; else left out.
struct Operand {
  std::optional<Shape> shape;
  Ints constant;
  bool is_scalar = false;
  bool absent() const { return !shape && constant.empty(); }
};
inline Operand floats(Shape s) { return {std::move(s), {}}; }
inline Operand integers(Ints v) { return {std::nullopt, std::move(v)}; }
inline Operand integer(int64_t v) { return {std::nullopt, {v}, true}; }

using Attributes = std::function<void(NodeProto*)>;
inline auto with(const char* name, float value) {
  return [=](NodeProto* n) {
    auto* a = n->add_attribute();
    a->set_name(name);
    a->set_type(onnx_format::FLOAT);
    a->set_f(value);
  };
}
inline auto with(const char* name, int value) {
  return [=](NodeProto* n) {
    auto* a = n->add_attribute();
    a->set_name(name);
    a->set_type(onnx_format::INT);
    a->set_i(value);
  };
}
inline auto with(const char* name, const Ints& values) {
  return [=](NodeProto* n) {
    auto* a = n->add_attribute();
    a->set_name(name);
    a->set_type(onnx_format::INTS);
    for (int64_t v : values) a->add_ints(v);
  };
}
inline auto with(const char* name, const char* value) {
  return [=](NodeProto* n) {
    auto* a = n->add_attribute();
    a->set_name(name);
    a->set_type(onnx_format::STRING);
    a->set_s(value);
  };
}
template <typename... F>
Attributes all(F... f) {
  return [=]([[maybe_unused]] NodeProto* n) { (f(n), ...); };
}

struct OneNode {
  const char* op;
  std::vector<Operand> operands;
  Attributes attributes = all();
  int outputs = 1;
  const char* domain = "";
};

inline int onnx_code(DType t) {
  int code = 0;
  while (dtype_from_onnx(code) != t) ++code;
  return code;
}

// Operands of floats are inputs of type t.
inline onnx_format::ModelProto model_of(const OneNode& c, DType t) {
  onnx_format::ModelProto model = small_model();
  model.mutable_opset_import(0)->set_version(24);
  auto* microsoft = model.add_opset_import();
  microsoft->set_domain("com.microsoft");
  microsoft->set_version(1);
  auto* graph = model.mutable_graph();
  graph->clear_node();
  graph->clear_input();
  graph->clear_output();
  Names inputs, outputs;
  for (size_t k = 0; k < c.operands.size(); ++k) {
    const Operand& o = c.operands[k];
    inputs.push_back(o.absent() ? "" : "x" + std::to_string(k));
    if (o.shape) {
      add_value(graph->mutable_input(), inputs.back());
      auto* tensor =
          graph->mutable_input(graph->input_size() - 1)->mutable_type()->mutable_tensor_type();
      tensor->set_elem_type(onnx_code(t));
      for (int64_t d : *o.shape) tensor->mutable_shape()->add_dim()->set_dim_value(d);
    } else if (!o.absent()) {
      auto* tensor = graph->add_initializer();
      tensor->set_name(inputs.back());
      tensor->set_data_type(onnx_code(DType::kInt64));
      if (!o.is_scalar) tensor->add_dims(static_cast<int64_t>(o.constant.size()));
      tensor->set_raw_data(o.constant.data(), o.constant.size() * sizeof(int64_t));
    }
  }
  for (int k = 0; k < c.outputs; ++k) {
    outputs.push_back("y" + std::to_string(k));
    add_value(graph->mutable_output(), outputs.back());
  }
  c.attributes(add_node(graph->mutable_node(), c.op, inputs, outputs, "node", c.domain));
  return model;
}

// Empty after a failure.
inline Tensors run_node(const OneNode& c, DType t, const Tensors& operands) {
  auto model = parse(model_of(c, t));
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  auto executable = compile_in_memory(**model, {}, {});
  EXPECT_TRUE(executable.ok()) << executable.error().to_string();
  if (!executable.ok()) return {};
  auto session = Session::create(*executable, {.threads = 1}).value();
  std::vector<Tensor> inputs, results;
  for (const HostTensor& x : operands)
    inputs.push_back(
        Tensor::share(x.dtype, x.shape, const_cast<uint8_t*>(x.bytes.data()), nullptr));
  const Status s = session->run(inputs, results);
  EXPECT_TRUE(s.ok()) << s.error().to_string();
  Tensors outputs;
  for (const Tensor& r : results) {
    outputs.emplace_back(r.dtype(), r.shape());
    const auto* bytes = static_cast<const uint8_t*>(r.data());
    outputs.back().bytes.assign(bytes, bytes + r.bytes());
  }
  return outputs;
}

}  // namespace tilewright
