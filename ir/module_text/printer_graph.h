// The text form of graphs. It round-trips: parse_graph(to_text(g, &c), c) prints the same.
//
//   graph mlp {
//     input x: f32[batch, 784]
//     const w: f32[784, 10] = #0
//     const axes: i64[1] = [1]
//     stated s: i64[2] known [batch, 10]
//     h: f32[batch, 10] = matmul(x, w) from "fc1" group 0
//     y: f32[batch, 10], _ = softmax(h) {axis = -1} from "prob"
//     output y as "probabilities"
//   }
//
// A `stated` value is made by no node: operators read its known elements only (a shape of symbols).
// A value has its type, then `layout(...)` and `known [...]` where it has them; `_` is an operand
// or output that is absent. A node ends with `with [graph ... graph ...]` (regions), `defines(n)`
// (symbols), `from "..."` (source nodes), `group n`. Attributes: 1, 1.5, "s", [1, 2], [1.5], ["s"],
// an empty list as ints[], floats[] or strings[], `const f32[2] = [1.0, 2.0]`. Constants of at most
// 16 elements are written out; others are `#n`, the n-th of a list that travels beside the text.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::ir {

// Constants referred to as #n are appended to `constants`, each once.
std::string to_text(const Graph& graph, std::vector<ConstantRef>* constants = nullptr);
std::string to_text(const TensorType& type);

}  // namespace tilewright::ir
