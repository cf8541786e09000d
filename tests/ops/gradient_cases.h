// Calls of operators whose gradients are tried.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "ir/graph/op.h"

namespace tilewright {

struct GradientCase {
  // As an OpExample; floats are f64, drawn from [low, high] where they are not given.
  std::string op, label;
  std::vector<ir::TensorType> inputs;
  ir::Attributes attributes = {};
  std::vector<std::vector<double>> values = {};
  double low = -1, high = 1;
  int outputs = 1;
  bool const_floats = false;  // those that are given

  std::string name() const { return label.empty() ? op : op + "_" + label; }
};
inline std::ostream& operator<<(std::ostream& out, const GradientCase& c) {
  return out << c.name();
}

// Is its gradient not the derivative, but one that passes through its rounding (straight_through_test.cpp)?
bool is_straight_through(std::string_view op);
// The example of each other operator that has a rule, and shapes with extents of 1 and primes.
std::vector<GradientCase> gradient_cases();

}  // namespace tilewright
