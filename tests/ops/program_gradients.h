// Gradients of graphs that the interpreter does not run, such as those with regions: by differences of
// compiled programs.
#pragma once

#include <string>

#include "tests/ops/graph_oracle.h"

namespace tilewright {

// Tensors of a kind that such graphs take.
inline HostTensor f64(const Shape& shape, const std::vector<double>& values) {
  return repeated(DType::kFloat64, shape, values);
}
inline HostTensor whole(double n) { return repeated(DType::kInt64, {}, {n}); }
inline HostTensor truth(bool b) { return repeated(DType::kBool, {}, {b ? 1.0 : 0.0}); }

// What a branch or a loop that did not run leaves.
inline bool all_zero(const HostTensor& t) {
  for (int64_t k = 0; k < t.size(); ++k)
    if (element(t, k) != 0) return false;
  return true;
}

// The gradients of a graph's only output, a loss, by all floats that it is given, of type f64. Fails
// where they differ from central differences, or from those of kernels neither fused nor scheduled.
Tensors checked_gradients(const std::string& graph, const Tensors& inputs);

}  // namespace tilewright
