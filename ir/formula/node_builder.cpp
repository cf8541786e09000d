#include "ir/formula/node_builder.h"

#include <cmath>
#include <cstring>

#include "ir/graph/op.h"
#include "ir/loops/make.h"

namespace tilewright::ir {

std::optional<std::vector<Expr>> NodeBuilder::known(ValueId v) const {
  Node probe;
  probe.inputs = {v};
  return NodeView(graph(), probe).known(0);
}
std::optional<std::vector<int64_t>> NodeBuilder::known_ints(ValueId v) const {
  Node probe;
  probe.inputs = {v};
  return NodeView(graph(), probe).known_ints(0);
}

Expr NodeBuilder::dim(ValueId v, int d) const {
  if (d < 0 || d >= rank(v))
    fail("an operand is " + to_string(type(v)) + ", which has no dimension " + std::to_string(d));
  return type(v).dims[static_cast<size_t>(d)];
}

ValueId NodeBuilder::ints(const std::vector<int64_t>& values) {
  return constant(make_constant_of(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
}
ValueId NodeBuilder::dims(const std::vector<Expr>& extents) {
  std::vector<int64_t> numbers;
  for (const Expr& e : extents)
    if (auto n = as_int(e)) numbers.push_back(*n);
  return numbers.size() == extents.size() ? ints(numbers)
                                          : op("extents", {}, {{"extents", Extents{extents}}});
}
namespace {
// Returns the nearest integer, as casts of floats out of range do; 0 for NaN.
int64_t nearest(double value) {
  if (std::isnan(value)) return 0;
  return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : static_cast<int64_t>(value);
}
}  // namespace

ValueId NodeBuilder::scalar(double value, DType dtype) {
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype)));
  auto put = [&](auto v) { std::memcpy(bytes.data(), &v, bytes.size()); };
  switch (dtype) {
    case DType::kFloat32: put(static_cast<float>(value)); break;
    case DType::kFloat64: put(value); break;
    case DType::kFloat16:
    case DType::kBFloat16: return cast(scalar(value, DType::kFloat32), dtype);
    default: put(nearest(value)); break;  // little-endian: the low bytes
  }
  return constant(make_constant(dtype, {}, std::move(bytes)));
}
ValueId NodeBuilder::cast(ValueId v, DType to) {
  if (dtype(v) == to) return v;
  return op("cast", {v}, {{"to", std::string(name(to))}});
}
ValueId NodeBuilder::reshape(ValueId v, const std::vector<Expr>& shape) {
  return op("reshape", {v, dims(shape)}, {{"allowzero", int64_t{1}}});
}
ValueId NodeBuilder::reshape(ValueId v, const std::vector<int64_t>& dims) {
  return op("reshape", {v, ints(dims)}, {{"allowzero", int64_t{1}}});
}
ValueId NodeBuilder::transpose(ValueId v, const std::vector<int64_t>& perm) {
  return op("transpose", {v}, {{"perm", perm}});
}
ValueId NodeBuilder::slice(ValueId v, int axis, int64_t start, int64_t end, int64_t step) {
  return op("slice", {v, ints({start}), ints({end}), ints({axis}), ints({step})});
}

}  // namespace tilewright::ir
