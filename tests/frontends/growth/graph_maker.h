// Models of many nodes, written in few lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tests/frontends/model_builder.h"

namespace tilewright::growth {

// An extent, or the name of an open one.
using Dim = std::variant<int64_t, std::string>;
using Dims = std::vector<Dim>;
using Integers = std::vector<int64_t>;
using Attributes = std::map<std::string, std::variant<int64_t, float, std::string, Integers>>;

// Element types as ONNX numbers them.
constexpr int kF32 = 1, kU8 = 2, kI8 = 3, kI64 = 7, kBool = 9;

// Appends to a graph, whose values it names.
class GraphMaker {
 public:
  // Both are borrowed; bodies of control flow share the counter of names with the graph around them.
  GraphMaker(onnx_format::GraphProto* graph, int* names) : graph_(graph), names_(names) {
    graph_->set_name("g" + std::to_string((*names_)++));
  }
  // The name of a new input.
  std::string input(const Dims& dims, int type = kF32) {
    return declare(graph_->mutable_input(), fresh("x"), dims, type);
  }
  // The names of new inputs of one type.
  Names inputs(int n, const Dims& dims) {
    Names all;
    for (int i = 0; i < n; ++i) all.push_back(input(dims));
    return all;
  }
  // The name of an initialiser of small floats that differ.
  std::string weights(const Integers& shape) {
    int64_t size = 1;
    for (int64_t d : shape) size *= d;
    std::vector<float> data;
    for (int64_t i = 0; i < size; ++i) data.push_back(0.01f * static_cast<float>((7 * i + 3) % 23));
    std::string name = fresh("w");
    set_floats(graph_->add_initializer(), name, shape, data);
    return name;
  }
  // The name of an initialiser of one element, a factor or an offset.
  std::string scalar(float value, const Integers& shape = {}) {
    std::string name = fresh("c");
    set_floats(graph_->add_initializer(), name, shape, {value});
    return name;
  }
  // The names of initialisers of integers: of a list, of one number, and of one of another type.
  std::string integers(const Integers& values) {
    std::string name = integers(Integers{static_cast<int64_t>(values.size())}, values, kI64);
    return name;
  }
  std::string integer(int64_t value, int type = kI64) { return integers({}, {value}, type); }
  std::string integers(const Integers& shape, const Integers& values, int type) {
    auto* tensor = graph_->add_initializer();
    tensor->set_name(fresh("i"));
    tensor->set_data_type(type);
    for (int64_t d : shape) tensor->add_dims(d);
    for (int64_t v : values)
      if (type == kI64)
        tensor->add_int64_data(v);
      else
        tensor->add_int32_data(static_cast<int32_t>(v));
    return tensor->name();
  }
  // The name of a new node's only result, and of all of several.
  std::string node(const std::string& op, const Names& in, const Attributes& attributes = {}) {
    return nodes(op, in, 1, attributes)[0];
  }
  Names nodes(const std::string& op, const Names& in, int results,
              const Attributes& attributes = {}) {
    Names out;
    for (int k = 0; k < results; ++k) out.push_back(fresh("t"));
    last_ = add_node(graph_->mutable_node(), op, in, out, "n" + out[0]);
    for (const auto& [name, value] : attributes) set(last_->add_attribute(), name, value);
    return out;
  }
  // A body of the node that was appended last.
  GraphMaker body(const std::string& attribute) {
    auto* a = last_->add_attribute();
    a->set_name(attribute);
    a->set_type(onnx_format::GRAPH);
    return GraphMaker(a->mutable_g(), names_);
  }
  // Makes a value a result of the graph, of unknown shape.
  void output(const std::string& name, int type = kF32) {
    auto* value = graph_->add_output();
    value->set_name(name);
    value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  }
  onnx_format::GraphProto* graph() { return graph_; }

 private:
  std::string fresh(const char* prefix) { return prefix + std::to_string((*names_)++); }
  static std::string declare(google::protobuf::RepeatedPtrField<onnx_format::ValueInfoProto>* to,
                             const std::string& name, const Dims& dims, int type) {
    auto* value = to->Add();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const Dim& d : dims) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (const auto* extent = std::get_if<int64_t>(&d))
        dim->set_dim_value(*extent);
      else
        dim->set_dim_param(std::get<std::string>(d));
    }
    return name;
  }
  static void set(onnx_format::AttributeProto* a, const std::string& name,
                  const Attributes::mapped_type& value) {
    a->set_name(name);
    if (const auto* i = std::get_if<int64_t>(&value)) {
      a->set_type(onnx_format::INT);
      a->set_i(*i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      a->set_type(onnx_format::FLOAT);
      a->set_f(*f);
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      a->set_type(onnx_format::STRING);
      a->set_s(*s);
    } else {
      a->set_type(onnx_format::INTS);
      for (int64_t v : std::get<Integers>(value)) a->add_ints(v);
    }
  }

  onnx_format::GraphProto* graph_;
  onnx_format::NodeProto* last_ = nullptr;
  int* names_;
};

}  // namespace tilewright::growth
