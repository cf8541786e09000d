// A small graph to be timed, with its operands and what it asks of the machine at least.
#pragma once

#include <random>
#include <string_view>

#include "ir/graph/graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright::performance {

// Elements of inputs and weights are random. An operator that refuses its operands ends the
// program.
class KernelGraph {
 public:
  // Operands: random ones that a run is given, random constants, and single numbers.
  ir::ValueId input(const Shape& shape, DType dtype = DType::kFloat32);
  ir::ValueId weight(const Shape& shape, DType dtype = DType::kFloat32);  // a constant
  // A scalar constant of f32.
  ir::ValueId number(double value);
  ir::ValueId op(std::string_view op, std::vector<ir::ValueId> operands,
                 ir::Attributes attributes = {}, int outputs = 1);  // the first output
  // To a fixed shape, as exporters do around attention.
  ir::ValueId reshape(ir::ValueId value, const Shape& shape);
  // Makes a value a result of the graph, whose bytes then count as written.
  void output(ir::ValueId value);
  // The same of what an input is afterwards: it is written in place.
  void update(ir::ValueId input, ir::ValueId value);

  double operations = 0;  // multiplications and additions; 0: of no interest
  bool int8 = false;      // they are products of 8 bits
  // When set, the kernels with a node of this operator are timed, and no others: what lies around
  // them is there for the layouts that they meet in a model.
  std::string timed;

  // What is compiled, and what a run is given.
  const ir::Graph& graph() const { return graph_; }
  const Tensors& inputs() const { return inputs_; }
  double bytes_read() const { return bytes_read_; }  // inputs and weights, once
  // Of the results, once.
  double bytes_written() const { return bytes_written_; }

 private:
  std::string next_name(const char* kind) const;

  ir::Graph graph_;
  Tensors inputs_;
  double bytes_read_ = 0, bytes_written_ = 0;
  std::mt19937_64 random_{1};
};

}  // namespace tilewright::performance
