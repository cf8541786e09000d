// The operator record: everything there is to know about a graph operator, in one value.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::ir {

class NodeView;
class InferContext;
class ComputeContext;
class GradientContext;

// One operand of an operator's signature, as errors and the operator reference name it.
struct OperandDef {
  // kVariadic: any number of operands, only as the last one.
  std::string_view name;
  enum Kind : uint8_t { kRequired, kOptional, kVariadic } kind = kRequired;
};
// The alternatives of Attribute (graph.h), in their order.
enum class AttributeKind : uint8_t {
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kTensor,
  kExtents
};
// An attribute that a node of the operator may have.
struct AttributeDef {
  // `doc`: a phrase for the operator reference: meaning, unit, default.
  std::string_view name;
  AttributeKind kind = AttributeKind::kInt;
  std::string_view doc;
};

// A small call of the operator: documentation, and a test (compiled against interpreted, and
// verified).
struct OpExample {
  // The call: types of operands, and attributes.
  std::vector<TensorType> inputs;
  Attributes attributes;
  // Values for operands that must be known or lie in a range; operand n is filled by values[n],
  // repeated; empty: random.
  std::vector<std::vector<double>> values;
  int outputs = 1;
};

// How fusion may treat a call. Pointwise: each output element depends on one element of each
// operand, at the same index up to broadcasting. Injective: at some other index (transpose, slice).
// Reduction: contains reduction axes. Contraction: a reduction that sums products. Opaque: never
// fused.
enum class FusionKind : uint8_t { kPointwise, kInjective, kReduction, kContraction, kOpaque };
inline bool has_reduction(FusionKind k) {
  return k == FusionKind::kReduction || k == FusionKind::kContraction;
}

// Where the channels, dimension 1 of [n, c, spatial...], of operand 0 and the result had best lie
// in memory. Anywhere: the loops do not care, or do not take other layouts well. Along: the result
// as the operands, whose elements it takes one by one or by reduction. Innermost: channels side by
// side, for the window around them is small and vectors run along them. Operands innermost: the like,
// of all operands and not of the result.
enum class Channels : uint8_t { kAnywhere, kAlong, kInnermost, kOperandsInnermost };

// Names the dimension that indices of an operand point into, or gives the range of its other integers.
struct IndexedDim {
  // Dimension and extent of the operand that is read or written there. kNoIndices: elements are lengths, classes or
  // places, at least 0 and less than `extent`, where negative ones do not count from the end.
  int dim;
  Expr extent;
};
inline constexpr int kNoIndices = -1;

// Everything the compiler knows of an operator. Passes ask these fields and never for a name (TVM's
// and MLIR's operator traits serve the same end); `compute` is both what the interpreter runs and
// what is scheduled, as in Halide and TVM's tensor expressions.
struct OpDef {
  // Lower-case, unique among all operators; `summary` is one sentence for the reference.
  std::string_view name;
  std::string_view summary;
  // The signature, which the verifier checks nodes against.
  std::vector<OperandDef> operands;
  std::vector<AttributeDef> attributes;
  std::string_view outputs = "y";  // names, comma-separated; a last "*" means any number
  // Whether and how the operator shares a kernel with its neighbours.
  FusionKind fusion = FusionKind::kOpaque;
  // What passes ask of any operator, beside its fusion.
  Channels channels = Channels::kAnywhere;
  // No producer is inlined into its loops: an element of an operand is read for many results
  // (windows, products), or by the loops of one part of the result alone (concat).
  bool reads_stored = false;
  bool of_types = false;  // results follow from the types of the operands; elements are not read
  // An element of the result costs more to compute again for each reader than to store and load.
  bool costly = false;
  // Operands broadcast against one another by numpy's rule, of a product their batch dimensions.
  bool broadcasts = false;
  // Where operand and result have one type the result is the operand (cast, reshape).
  bool retypes = false;
  // Reads much and keeps little of it for later: runs at once, while its operands are in cache.
  bool early = false;
  bool has_parts = false;  // parts of the result have loops of their own: nothing is fused after it
  // Checks operands and attributes and gives the output types. Called again whenever more is known
  // of the operands.
  Status (*infer_type)(InferContext&) = nullptr;
  // Writes the loops of one call: the operator's single meaning. Null only for control flow.
  void (*compute)(ComputeContext&) = nullptr;
  // Adds the derivatives by operands (ir/formula/gradient.h). Null: there is no rule, and a loss that depends on
  // the results is not differentiated. Operands that are no floats have none anyway.
  void (*gradient)(GradientContext&) = nullptr;
  // Takes the attributes of the operator that attribute `transposed_op` names, beside its own.
  bool takes_others_attributes = false;
  // For extents that depend on data: writes the value of each of the node's defined symbols into an
  // int64 buffer.
  void (*compute_symbols)(ComputeContext&) = nullptr;
  std::string_view symbols_rule;  // what a value below 0 means, as the run's error says
  bool fold = true;               // false: left to the run even where it hangs on constants alone
  // For operators that read or write at positions that are data: the operand that holds them, and
  // the dimensions they point into, consecutive ones: one for all elements of that operand, or one
  // for each place along its last dimension. Indices out of range are errors (index_checks.cpp).
  int index_operand = -1;
  std::vector<IndexedDim> (*indexed_dims)(const NodeView&) = nullptr;
  OpExample example;
  std::string_view source;  // where the meaning is defined
};

// All operators, in the order of their families (ir/ops/*.cpp).
const std::vector<const OpDef*>& all_ops();
// Null when there is none of this name.
const OpDef* find_op(std::string_view name);

// Attributes of `transposed` (ir/ops/transposed.cpp): the operator, which of its operands, and the
// extents of that.
inline constexpr const char *kTransposedOp = "transposed_op",
                            *kTransposedOperand = "transposed_operand",
                            *kTransposedExtents = "transposed_extents";
// What the node's operator says of the attribute; null: it has none of that name.
const AttributeDef* find_attribute_def(const Node& node, std::string_view attribute);

// Access to attributes, shared by inference and compute.
class NodeView {
 public:
  // Borrows both; valid while neither changes.
  NodeView(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}
  virtual ~NodeView() = default;
  // Operands by their place: absent optional ones count, `has` tells them. Asking for the type or
  // value of an absent one is an error of the caller.
  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool has(int i) const {
    return i < num_inputs() && node_.inputs[static_cast<size_t>(i)] != kNone;
  }
  // Does somebody read that result? The others are still computed where that costs nothing.
  bool wants(int output) const {
    return output < num_outputs() && node_.outputs[static_cast<size_t>(output)] != kNone;
  }
  // The operand, its type, rank and extents. Requires has(i).
  const Value& value(int i) const { return graph_.value(node_.inputs[static_cast<size_t>(i)]); }
  const TensorType& type(int i) const { return value(i).type; }
  int rank(int i) const { return type(i).rank(); }
  // A dimension that the operand lacks is a failed check, which ends as an internal error and not as a read outside.
  Expr dim(int i, int d) const {
    TW_CHECK(d >= 0 && d < rank(i));
    return type(i).dims[static_cast<size_t>(d)];
  }
  // Elements of operand i when known at compile time.
  std::optional<std::vector<Expr>> known(int i) const;
  std::optional<std::vector<int64_t>> known_ints(int i) const;  // all constant

  // Attributes, with `fallback` where the node has none of that name.
  bool has_attribute(const std::string& name) const { return node_.attributes.count(name) != 0; }
  int64_t attr_int(const std::string& name, int64_t fallback = 0) const;
  double attr_float(const std::string& name, double fallback = 0) const;
  std::string attr_string(const std::string& name, const std::string& fallback = "") const;
  std::vector<int64_t> attr_ints(const std::string& name, std::vector<int64_t> fallback = {}) const;
  // Extents may be written as plain integers, too.
  std::optional<std::vector<Expr>> attr_extents(const std::string& name) const;
  // Attribute "axis" brought into [0, rank).
  int axis(int rank, int64_t fallback = 0) const;
  // Requires that two extents are equal. Returns false if known extents are not; where types are
  // inferred, the run checks unknown ones.
  bool agree(const Expr& a, const Expr& b) const;
  // Requires a <= b, or that a is a multiple of `of` (at least 1). Returns false if known extents
  // violate it; otherwise the run checks it. `rule`: a sentence for the run's error.
  bool at_most(const Expr& a, const Expr& b, const std::string& rule) const;
  bool is_multiple(const Expr& a, int64_t of, const std::string& rule) const;
  // Requires that a and b are equal or that one of them is 1; returns as above.
  bool broadcasts(const Expr& a, const Expr& b) const;
  // Numpy broadcasting of dimensions. Unknown extents are assumed to be equal, never to be 1.
  Result<std::vector<Expr>> broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b) const;

 protected:
  virtual void expect_equal(const Expr&, const Expr&) const {}
  virtual void expect(Requirement) const {}
  const Graph& graph_;
  const Node& node_;
};

// What an operator's infer_type sees, and where it puts the types of results.
class InferContext : public NodeView {
 public:
  // `node` gets the symbols that inference defines for it (defined_symbols).
  InferContext(const Graph& graph, Node& node) : NodeView(graph, node), mutable_node_(node) {}
  // Extents are simplified expressions over symbols, also of data_dependent_symbol's.
  void set_output(int i, TensorType type);
  void set_output(int i, DType dtype, std::vector<Expr> dims) {
    set_output(i, TensorType{dtype, std::move(dims)});
  }
  // As set so far, in the order of results.
  const std::vector<TensorType>& outputs() const { return outputs_; }
  // Extents that are not all known, and that the types take for equal.
  const std::vector<std::pair<Expr, Expr>>& equal_extents() const { return equal_extents_; }
  // Returns the other conditions that the inferred types assume about unknown extents.
  const std::vector<Requirement>& requirements() const { return requirements_; }
  // A symbol for an extent that only the run knows; compute_symbols writes it. The same one each
  // time it is asked for.
  Var data_dependent_symbol(int index, const std::string& name);
  // invalid("matmul 'fc1': ...")
  Error error(const std::string& message) const;
  Error unsupported(const std::string& message) const;
  Error needs_value(const std::string& message) const;
  Error at_node(Error error) const;  // of the same kind

 protected:
  void expect_equal(const Expr& a, const Expr& b) const override;
  void expect(Requirement requirement) const override;

 private:
  Node& mutable_node_;
  std::vector<TensorType> outputs_;
  mutable std::vector<std::pair<Expr, Expr>> equal_extents_;
  mutable std::vector<Requirement> requirements_;
};

}  // namespace tilewright::ir
