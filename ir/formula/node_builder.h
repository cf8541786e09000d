// Adding nodes to a graph one after the other: what importers and gradients write formulas with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::ir {

// Its owner decides which graph nodes go into, what they are called, and what becomes of an operator
// that does not take its operands.
class NodeBuilder {
 public:
  virtual ~NodeBuilder() = default;
  // The graph that nodes are added to.
  virtual Graph& graph() = 0;
  virtual const Graph& graph() const = 0;
  // An operator of the table with so many results.
  virtual std::vector<ValueId> ops(std::string_view name, std::vector<ValueId> inputs,
                                   Attributes attributes, int outputs) = 0;
  // What is asked for cannot be had, for a reason that names what is wrong.
  [[noreturn]] virtual void fail(const std::string& message) const = 0;

  // --- types and known elements of any value
  const TensorType& type(ValueId v) const { return graph().value(v).type; }
  DType dtype(ValueId v) const { return type(v).dtype; }
  int rank(ValueId v) const { return type(v).rank(); }
  // Fails where the value has no such dimension.
  Expr dim(ValueId v, int d) const;
  std::optional<std::vector<Expr>> known(ValueId v) const;
  std::optional<std::vector<int64_t>> known_ints(ValueId v) const;

  // --- nodes
  ValueId op(std::string_view name, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return ops(name, std::move(inputs), std::move(attributes), 1)[0];
  }
  ValueId constant(ConstantRef c) { return graph().add_constant("", std::move(c)); }
  ValueId ints(const std::vector<int64_t>& values);  // i64[n]
  // i64[n] of extents that may be symbolic.
  ValueId dims(const std::vector<Expr>& extents);
  ValueId scalar(double value, DType dtype);  // dtype[]
  ValueId scalar_like(double value, ValueId like) { return scalar(value, dtype(like)); }
  ValueId cast(ValueId v, DType to);  // v itself where it has the type
  ValueId reshape(ValueId v, const std::vector<Expr>& dims);
  ValueId reshape(ValueId v, const std::vector<int64_t>& dims);
  ValueId transpose(ValueId v, const std::vector<int64_t>& perm);
  ValueId slice(ValueId v, int axis, int64_t start, int64_t end, int64_t step = 1);
};

}  // namespace tilewright::ir
