// Makes a random graph node by node, so that every node is valid and its results stay bounded.
#pragma once

#include <algorithm>
#include <random>

#include "ir/interpreter/evaluate.h"
#include "tests/differential/random_graph.h"

namespace tilewright {

// Extents around the widths of vectors and the sizes of register tiles, where remainders begin, and some that have
// many divisors; few enough elements and products that the interpreter keeps up; a value beyond the bound goes through
// tanh before it is used.
inline constexpr int64_t kExtents[] = {1,  2,  3,  4,  5,  6,  7,  8,  12, 13,
                                       16, 17, 20, 28, 31, 33, 40, 49, 64, 97};
inline constexpr int64_t kMostElements = 12000;
inline constexpr int64_t kMostProducts = 400000;  // multiplications of one contraction
inline constexpr double kLargestBound = 30;

// Grows a graph from values that are there already: picks one, picks an operator that takes it, and
// keeps for each result a bound of its magnitude, so that differences can be judged.
class GraphGenerator {
 public:
  // Everything follows from the seed; run() is for once.
  explicit GraphGenerator(uint64_t seed) : random_(seed) {}

  RandomGraph run();  // of some nodes, with inputs and outputs

 private:
  struct Known {
    ir::ValueId id;
    double bound;
  };  // |elements| <= bound

  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  int64_t any_extent() { return kExtents[below(std::size(kExtents))]; }
  ir::Graph& graph() { return result_.graph; }
  const ir::TensorType& type(ir::ValueId v) { return graph().value(v).type; }

  Shape shape(ir::ValueId v);
  bool is_static(ir::ValueId v) { return ir::constant_shape(type(v)).has_value(); }

  Shape random_shape(int rank, bool may_be_empty);
  ir::ValueId add_input(const Shape& extents, bool symbolic = false);
  ir::ValueId add_ints(const std::vector<int64_t>& values);
  ir::ValueId add_weight(const Shape& extents, int64_t fan_in);
  bool add(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes,
           double bound);
  Known pick();

  bool step();
  bool unary(const Known& x);
  Known partner(const Known& x);
  bool binary(const Known& x);
  bool reduce(const Known& x);
  bool transpose(const Known& x);
  bool reshape(const Known& x);
  bool slice(const Known& x);
  bool concat(const Known& x);
  bool matmul(const Known& x);
  bool conv(const Known& x);
  bool pool(const Known& x);
  bool normalize(const Known& x);
  bool look_up(const Known& x);
  bool add_up_at(const Known& x);
  ir::ValueId index_node(std::string_view op, std::vector<ir::ValueId> operands,
                         ir::Attributes attributes);
  ir::ValueId index_input(const Shape& extents, int64_t limit);
  ir::ValueId convolved(ir::ValueId v, int64_t channels, int rank, int64_t limit);
  ir::ValueId whole_numbers(const Shape& extents, int64_t limit, int nodes);
  ir::ValueId indices(const Shape& extents, int64_t limit);
  void choose_outputs();

  std::mt19937_64 random_;
  RandomGraph result_;
  std::vector<Known> live_;
  ir::Var symbol_;
  int64_t extent_of_symbol_ = 1;
  ir::IntValues values_;
};

}  // namespace tilewright
