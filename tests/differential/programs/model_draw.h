// Draws ONNX models node by node, subgraphs among them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "frontends/onnx/onnx.pb.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// A value by its name. Extents below 0 are known to the run alone; equal ones are equal.
struct Drawn {
  // As the subgraphs declare it.
  std::string name;
  DType dtype = DType::kFloat64;
  Shape shape;

  bool is_closed() const;  // is every extent known?
  bool same_type(const Drawn& o) const { return dtype == o.dtype && shape == o.shape; }
};

class ModelDraw {
 public:
  // A graph whose nodes are being drawn, and the values that they may read: its own, and those around it.
  struct Scope {
    // Within the model.
    onnx_format::GraphProto* graph;
    std::vector<Drawn> live;
  };

  // Everything follows from the seed.
  explicit ModelDraw(uint64_t seed);

 protected:
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  template <typename T>
  const T& pick(const std::vector<T>& all) {
    return all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))];
  }

  std::string new_name(const std::string& kind) { return kind + std::to_string(count_++); }
  Drawn add_input(DType dtype, const Shape& shape);
  Drawn constant(Scope& s, const HostTensor& t);
  Drawn integers(Scope& s, const std::vector<int64_t>& values);
  Drawn scalar(Scope& s, DType dtype, double value);
  onnx_format::NodeProto* node(Scope& s, const std::string& op, const std::vector<Drawn>& operands);
  // A result of the node, which the scope sees from here on.
  Drawn result(Scope& s, onnx_format::NodeProto* node, DType dtype, const Shape& shape);
  // A node of one result; of the type of the first operand where none is said.
  Drawn emit(Scope& s, const std::string& op, const std::vector<Drawn>& operands);
  Drawn emit(Scope& s, const std::string& op, const std::vector<Drawn>& operands, DType dtype,
             const Shape& shape);
  static void set(onnx_format::NodeProto* node, const char* attribute, int64_t value);
  static void set(onnx_format::NodeProto* node, const char* attribute,
                  const std::vector<int64_t>& values);
  // A subgraph of the node that sees what the scope around it sees.
  Scope subgraph(const Scope& around, onnx_format::NodeProto* node, const char* attribute);
  static void declare(onnx_format::ValueInfoProto* info, const Drawn& v);
  // An input or an output of the graph that is drawn.
  Drawn take(Scope& s, DType dtype, const Shape& shape);
  static void give(Scope& s, const Drawn& v) { declare(s.graph->add_output(), v); }

  onnx_format::ModelProto model_;
  std::vector<Drawn> inputs_;
  std::mt19937_64 random_;

 private:
  int count_ = 0;
};

// Takes away what the model says of the shapes of values within and of results.
void forget_shapes(onnx_format::ModelProto& model);

}  // namespace tilewright
