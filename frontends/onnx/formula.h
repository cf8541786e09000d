// Arithmetic on graph values, so that the formulas of importers read as formulas.
#pragma once

#include <utility>
#include <vector>

#include "frontends/onnx/node_import.h"

namespace tilewright::onnx {

struct V {
  NodeImport& n;
  ir::ValueId id;
  V(NodeImport& node, ir::ValueId value) : n(node), id(value) {}
  V(const V&) = default;
  V& operator=(const V& other) {  // both of the same node
    id = other.id;
    return *this;
  }
  V make(std::string_view op, std::vector<ir::ValueId> in, ir::Attributes a = {}) const {
    return {n, n.op(op, std::move(in), std::move(a))};
  }
  V number(double v) const { return {n, n.scalar_like(v, id)}; }
  V to(DType t) const { return {n, n.cast(id, t)}; }
  DType dtype() const { return n.dtype(id); }
  int rank() const { return n.rank(id); }
};
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
inline V apply(std::string_view op, V x) { return x.make(op, {x.id}); }
inline V apply(std::string_view op, V a, V b) { return a.make(op, {a.id, b.id}); }
inline V less(V a, double b) { return a.make("less", {a.id, a.number(b).id}); }
inline V where(V c, V a, V b) { return a.make("where", {c.id, a.id, b.id}); }
inline V limit(V x, double low, double high) {
  return x.make("clip", {x.id, x.number(low).id, x.number(high).id});
}
inline V reduce(std::string_view op, V x, std::vector<int64_t> axes, bool keepdims = true) {
  return x.make(op, {x.id},
                {{"axes", std::move(axes)}, {"keepdims", static_cast<int64_t>(keepdims)}});
}

}  // namespace tilewright::onnx
