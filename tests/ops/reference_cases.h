// Cases whose results were computed elsewhere: by NumPy and the ONNX reference implementation
// (references/write_references.py). Each is a graph, its operands and what must come out.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"

namespace tilewright {

struct ExpectedResult {
  HostTensor value;
  bool exact = false;    // every bit, NaN being one value
  double terms = 0;      // that a result sums up, or roundings on the way to it
  double magnitude = 0;  // the largest sum of the magnitudes of these terms
};
struct ReferenceCase {
  std::string name;
  ir::Graph graph;
  std::vector<HostTensor> operands;      // of the graph's inputs, in their order
  std::vector<ExpectedResult> expected;  // of its outputs
};

// Every case of a file's text. kInvalid, naming the line: whatever is not of the form that
// references/README.md describes, and a graph that its verifier refuses.
Result<std::vector<ReferenceCase>> parse_reference_cases(std::string_view text);

// What is wrong with a result; empty: nothing. A result that is not exact may be off by a few units
// in its last place and by the rounding of the terms that it sums.
std::string mismatch(const HostTensor& got, const ExpectedResult& expected);

}  // namespace tilewright
