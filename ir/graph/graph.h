// The graph: typed values, nodes in topological order, subgraphs for control flow. Plain data;
// passes build new graphs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/loops/nodes.h"
#include "runtime/core/result.h"
#include "runtime/core/shape.h"

namespace tilewright::ir {

struct OpDef;
struct Graph;

// A dense row-major tensor of known contents. The bytes belong to `owner` (a mapped file, a
// vector).
struct Constant {
  // `data`: `bytes` of them, row-major and little-endian as HostTensor's; read-only.
  DType dtype = DType::kFloat32;
  Shape shape;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> owner;
};
using ConstantRef = std::shared_ptr<const Constant>;
// Takes over the bytes, which must be as many as the shape and type need; from values, bit for bit.
ConstantRef make_constant(DType dtype, Shape shape, std::vector<uint8_t> bytes);
template <typename T>
ConstantRef make_constant_of(DType dtype, Shape shape, const std::vector<T>& values) {
  const auto* p = reinterpret_cast<const uint8_t*>(values.data());
  return make_constant(dtype, std::move(shape),
                       std::vector<uint8_t>(p, p + values.size() * sizeof(T)));
}
// Element i of an integer or bool constant.
int64_t integer_at(const Constant& c, int64_t i);
// Element i of any constant as a double.
double number_at(const Constant& c, int64_t i);

// What is known of a tensor before it exists. Extents need not be numbers: a batch is a symbol,
// what follows from it an expression over it.
struct TensorType {
  // The type of the elements, known as soon as the operator's operands are.
  DType dtype = DType::kFloat32;
  std::vector<Expr> dims;                                     // int64 expressions over symbols
  int rank() const { return static_cast<int>(dims.size()); }  // 0: a scalar
};
std::string to_string(const TensorType& type);  // f32[batch, 3, 224]
// The extents when all are constant.
std::optional<Shape> constant_shape(const TensorType& type);
// The product of the extents, simplified; 1 for a scalar.
Expr element_count(const TensorType& type);

// Extents as an attribute: int64 expressions over symbols. Ordered by their text, so that
// attributes can be compared.
struct Extents {
  // Compared by structure, symbols by name.
  std::vector<Expr> dims;
  bool operator==(const Extents& other) const;
  bool operator<(const Extents& other) const;
};

// The kinds of an attribute's value; which one an operator expects, its record says (AttributeKind,
// in the same order). Sorted by name, so that text and hashes do not depend on insertion.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, ConstantRef, Extents>;
using Attributes = std::map<std::string, Attribute>;

// The place of a value in Graph::values.
using ValueId = int32_t;
inline constexpr ValueId kNone = -1;  // an optional operand that is absent

// An edge of the graph: what one node, an input or a constant gives and any number of nodes read
// (SSA).
struct Value {
  // As text and errors call it: the model's name, or one derived from it. Unique by the printer's
  // suffixes only.
  std::string name;
  TensorType type;
  Layout layout;  // empty: row-major
  // Without producer or constant they are all there is: no kernel reads such a value.
  std::optional<std::vector<Expr>>
      known;  // elements of a small integer, bool or scalar float tensor, in row-major order
  ConstantRef constant;   // set for constants
  int32_t producer = -1;  // node, or -1 for inputs and constants
};

struct Node {
  // The record of the operator; lives as long as the program.
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;   // kNone where an optional operand is absent
  std::vector<ValueId> outputs;  // kNone where an output is not wanted
  // None but those that the operator declares; for a missing one it has a default.
  Attributes attributes;
  std::vector<std::shared_ptr<const Graph>>
      regions;  // bodies of control flow; all they use comes through their inputs
  std::vector<std::string> sources;  // names of the source model's nodes that this one came from
  std::vector<Var> defined_symbols;  // symbols whose value this node's execution defines (extents
                                     // that depend on data)
  int32_t group = -1;                // fused group; set by fuse_operators
};

// How two extents stand to each other: equal; the first at most the second; equal or one of them 1.
enum class Relation : uint8_t { kEqual, kAtMost, kBroadcast };
// The keyword of the relation in the text form; nothing for an unknown word.
std::string_view name(Relation relation);
std::optional<Relation> relation_from_name(std::string_view name);

// What must hold of extents that only the run knows; else it ends with an error.
struct Requirement {
  // int64 expressions over symbols of the graph and of those around it.
  Expr a, b;
  Relation relation = Relation::kEqual;
  std::string what;  // who requires it: "top_k 'y': the axis must have k elements"
};
// The requirement with both extents in its text, as the run's error begins.
std::string to_string(const Requirement& requirement);

// A directed acyclic graph of operators, as ONNX's: values are defined once, and nothing has side
// effects.
struct Graph {
  // The model's name of the graph or branch.
  std::string name;
  // By ValueId. Passes build new graphs instead of removing values.
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological
  // In the order of the model's signature; `output_names`: by which callers know results, as a
  // value may be two outputs.
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;
  // State: outputs that a run leaves in the memory of inputs of their type, so that these are updated in
  // place. Of the main graph alone; an input or an output stands in one pair at most.
  struct Update {
    int32_t input, output;  // places in `inputs` and `outputs`
  };
  std::vector<Update> updates;
  // Conditions on extents that the run checks. Those that follow from types of nodes are added by
  // collect_requirements.
  std::vector<Requirement> requirements;

  // Appends a value and returns its id, which stays valid; references to values do not.
  ValueId add_value(std::string name, TensorType type);
  ValueId add_constant(std::string name, ConstantRef constant);
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  // Number of uses by nodes and graph outputs, per value.
  std::vector<int> use_counts() const;
};

// "matmul 'fc1'": how errors name a node.
std::string describe(const Node& node);

}  // namespace tilewright::ir
