#include "ir/graph/graph.h"

#include <cstring>

#include "ir/graph/broadcast.h"
#include "ir/graph/op.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

ConstantRef make_constant(DType dtype, Shape shape, std::vector<uint8_t> bytes) {
  auto storage = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  return std::make_shared<const Constant>(
      Constant{dtype, std::move(shape), storage->data(), storage->size(), storage});
}

namespace {
template <typename T>
T element(const Constant& c, int64_t i) {
  T v;
  std::memcpy(&v, c.data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return v;
}
float half_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  float f;
  uint32_t bits;
  if (exponent == 31)
    bits = sign | 0x7f800000u | (mantissa << 13);
  else if (exponent)
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  else {
    f = static_cast<float>(mantissa) / 16777216.0f;
    std::memcpy(&bits, &f, 4);
    bits |= sign;
  }
  std::memcpy(&f, &bits, 4);
  return f;
}
}  // namespace

int64_t integer_at(const Constant& c, int64_t i) {
  switch (c.dtype) {
    case DType::kInt8: return element<int8_t>(c, i);
    case DType::kInt16: return element<int16_t>(c, i);
    case DType::kInt32: return element<int32_t>(c, i);
    case DType::kInt64: return element<int64_t>(c, i);
    case DType::kUInt8: return element<uint8_t>(c, i);
    case DType::kUInt16: return element<uint16_t>(c, i);
    case DType::kUInt32: return element<uint32_t>(c, i);
    case DType::kUInt64: return static_cast<int64_t>(element<uint64_t>(c, i));
    case DType::kBool: return element<uint8_t>(c, i) != 0;
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBFloat16: return static_cast<int64_t>(number_at(c, i));
  }
  return 0;
}
double number_at(const Constant& c, int64_t i) {
  switch (c.dtype) {
    case DType::kFloat32: return element<float>(c, i);
    case DType::kFloat64: return element<double>(c, i);
    case DType::kFloat16: return half_to_float(element<uint16_t>(c, i));
    case DType::kBFloat16: {
      const uint32_t bits = static_cast<uint32_t>(element<uint16_t>(c, i)) << 16;
      float f;
      std::memcpy(&f, &bits, 4);
      return f;
    }
    case DType::kUInt64: return static_cast<double>(element<uint64_t>(c, i));
    default: return static_cast<double>(integer_at(c, i));
  }
}

std::string to_string(const TensorType& type) {
  std::string s = std::string(name(type.dtype)) + "[";
  for (size_t i = 0; i < type.dims.size(); ++i) s += (i ? ", " : "") + to_text(type.dims[i]);
  return s + "]";
}
std::optional<Shape> constant_shape(const TensorType& type) {
  Shape shape;
  for (const Expr& d : type.dims) {
    auto i = as_int(d);
    if (!i) return std::nullopt;
    shape.push_back(*i);
  }
  return shape;
}
Expr element_count(const TensorType& type) {
  Expr n = 1;
  for (const Expr& d : type.dims) n = n * d;
  return simplify(n);
}

bool Extents::operator==(const Extents& other) const {
  return !(*this < other) && !(other < *this);
}
bool Extents::operator<(const Extents& other) const {
  auto text = [](const Extents& e) {
    std::string s;
    for (const Expr& d : e.dims) s += to_text(d) + ";";
    return s;
  };
  return text(*this) < text(other);
}

ValueId Graph::add_value(std::string value_name, TensorType type) {
  Value v;
  v.name = std::move(value_name);
  v.type = std::move(type);
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}
ValueId Graph::add_constant(std::string value_name, ConstantRef constant) {
  TensorType type{constant->dtype, {}};
  for (int64_t d : constant->shape) type.dims.push_back(Expr(d));
  ValueId id = add_value(std::move(value_name), std::move(type));
  value(id).constant = std::move(constant);
  return id;
}
std::vector<int> Graph::use_counts() const {
  std::vector<int> uses(values.size(), 0);
  for (const Node& n : nodes)
    for (ValueId v : n.inputs)
      if (v != kNone) ++uses[static_cast<size_t>(v)];
  for (ValueId v : outputs) ++uses[static_cast<size_t>(v)];
  return uses;
}

namespace {
constexpr std::pair<Relation, std::string_view> kRelations[] = {
    {Relation::kEqual, "equals"},
    {Relation::kAtMost, "at_most"},
    {Relation::kBroadcast, "broadcast"}};
}  // namespace
std::string_view name(Relation relation) {
  for (const auto& [r, word] : kRelations)
    if (r == relation) return word;
  return "";
}
std::optional<Relation> relation_from_name(std::string_view name) {
  for (const auto& [r, word] : kRelations)
    if (word == name) return r;
  return std::nullopt;
}
std::string to_string(const Requirement& r) {
  std::string b = to_text(r.b);
  if (r.relation == Relation::kBroadcast) {  // those that it is joined of, but for a itself
    b.clear();
    for (const Expr& e : joined_extents(r.b))
      if (!same_expr(e, r.a)) b += (b.empty() ? "" : " or ") + to_text(e);
  }
  return r.what + ": extents " + to_text(r.a) + " and " + b;
}

std::string describe(const Node& node) {
  std::string s = node.op ? std::string(node.op->name) : "node";
  if (!node.sources.empty()) s += " '" + node.sources.front() + "'";
  return s;
}

}  // namespace tilewright::ir
