// Arithmetic on graph values, so that the formulas of importers and gradients read as formulas.
#pragma once

#include <utility>
#include <vector>

#include "ir/formula/node_builder.h"

namespace tilewright::ir {

// A graph value with operators: `a * x + b` adds three nodes to the graph and computes nothing now.
// Values of one expression belong to one builder.
struct V {
  // Where nodes are added, and the value that stands for the expression so far.
  NodeBuilder& n;
  ValueId id;
  V(NodeBuilder& builder, ValueId value) : n(builder), id(value) {}
  V(const V&) = default;
  V& operator=(const V& other) {  // both of the same builder
    id = other.id;
    return *this;
  }
  // One operator of the graph with one result.
  V make(std::string_view op, std::vector<ValueId> in, Attributes a = {}) const {
    return {n, n.op(op, std::move(in), std::move(a))};
  }
  // A constant of this value's element type.
  V number(double v) const { return {n, n.scalar_like(v, id)}; }
  // Cast; the same value where it has the type.
  V to(DType t) const { return {n, n.cast(id, t)}; }
  // What is known of the value.
  DType dtype() const { return n.dtype(id); }
  int rank() const { return n.rank(id); }
};
// Element by element, broadcast as ONNX does (numpy's rule).
inline V operator+(V a, V b) { return a.make("add", {a.id, b.id}); }
inline V operator-(V a, V b) { return a.make("sub", {a.id, b.id}); }
inline V operator*(V a, V b) { return a.make("mul", {a.id, b.id}); }
inline V operator/(V a, V b) { return a.make("div", {a.id, b.id}); }
inline V operator+(V a, double b) { return a + a.number(b); }
inline V operator-(V a, double b) { return a - a.number(b); }
inline V operator*(V a, double b) { return a * a.number(b); }
inline V operator/(V a, double b) { return a / a.number(b); }
inline V operator+(double a, V b) { return b.number(a) + b; }
inline V operator-(double a, V b) { return b.number(a) - b; }
inline V operator/(double a, V b) { return b.number(a) / b; }
// A graph operator by its name, where C++ has no sign for it.
inline V apply(std::string_view op, V x) { return x.make(op, {x.id}); }
inline V apply(std::string_view op, V a, V b) { return a.make(op, {a.id, b.id}); }
inline V less(V a, double b) { return a.make("less", {a.id, a.number(b).id}); }
inline V where(V c, V a, V b) { return a.make("where", {c.id, a.id, b.id}); }
inline V limit(V x, double low, double high) {
  return x.make("clip", {x.id, x.number(low).id, x.number(high).id});
}
// A reduction over the axes; with keepdims they stay as extents of 1, so that the result broadcasts
// against x.
inline V reduce(std::string_view op, V x, std::vector<int64_t> axes, bool keepdims = true) {
  return x.make(op, {x.id},
                {{"axes", std::move(axes)}, {"keepdims", static_cast<int64_t>(keepdims)}});
}

}  // namespace tilewright::ir
