// The rules that every graph obeys. Checked after each pass; all violations are collected.
//
// Structure
//  - Ids of values are in range; only operands and outputs of nodes may be absent.
//  - A value in use is defined exactly once: as an input, a constant or the output of one node,
//  which is its producer; or it has no producer and its elements are known.
//  - Nodes are in topological order; a region uses only values of its own.
//  - There are as many output names as outputs.
// Nodes
//  - A node has an operator. It has every required operand, and no more operands or outputs than
//  the operator names.
//  - Its attributes are those that the operator declares, of the declared kind.
//  - Regions are present and obey these rules themselves.
// Types
//  - Extents are scalar i64, constant ones at least 0. A layout names dimensions of its value.
//  - Once nodes have groups, what the graph takes and gives is row-major. Operands and results of
//    control flow always are.
//    Indices keep their layout where they are checked.
//  - As many known elements as the value has. A constant has the type and the number of bytes that
//  its value states.
// Typed graphs only
//  - A symbol of a type is named by the type of an input or defined by an earlier node (in a
//  region: also outside).
//  - An output has the type that the operator infers from the operands: element type, rank,
//  constant extents.
#pragma once

#include "ir/graph/graph.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

enum class GraphStage : uint8_t {
  kImported,  // types of node outputs are not inferred yet
  kTyped,
};

// kInternal with one note per violation, each naming the node and its source.
Status verify(const Graph& graph, GraphStage stage = GraphStage::kTyped);

}  // namespace tilewright::ir
