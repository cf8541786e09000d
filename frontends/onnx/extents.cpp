// Extents as graph values: constants, elements of the shape of some value, and arithmetic on these.
#include <string_view>

#include "frontends/onnx/node_import.h"
#include "ir/loops/linear.h"

namespace tilewright::onnx {

using ir::BinaryOp;
using ir::Expr;
using ir::ValueId;

namespace {

class Extents {
 public:
  Extents(NodeImport& n, ValueId near) : n_(n), near_(near) {}

  // i64[1] (bool[1] for a comparison)
  ValueId make(const Expr& e) {
    if (auto i = ir::as_int(e)) return n_.ints({*i});
    if (ValueId v = found(e); v != kNone) return v;
    if (const auto* c = e.as<ir::Cast>(); c && is_integer(c->value.dtype())) return make(c->value);
    if (const auto* s = e.as<ir::Select>())
      return n_.op("where", {make(s->condition), make(s->a), make(s->b)});
    if (const auto* b = e.as<ir::Binary>()) return n_.op(op_of(b->op, e), {make(b->a), make(b->b)});
    n_.unsupported("the extent " + to_string(e) + " is not known at compile time");
  }

 private:
  ValueId element(ValueId v, size_t d) {
    return n_.slice(n_.op("shape", {v}), 0, static_cast<int64_t>(d), static_cast<int64_t>(d) + 1);
  }
  std::optional<size_t> dimension(ValueId v, const Expr& e) const {
    const auto& dims = n_.type(v).dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (ir::same_expr(dims[d], e)) return d;
    return std::nullopt;
  }
  ValueId found(const Expr& e) {
    if (near_ != kNone)
      if (auto d = dimension(near_, e)) return element(near_, *d);
    const ir::Graph& g = n_.graph();
    for (ValueId v : g.inputs)
      if (auto d = dimension(v, e)) return element(v, *d);
    for (size_t v = g.values.size(); v-- > 0;) {
      if (g.values[v].producer < 0) continue;
      if (auto d = dimension(static_cast<ValueId>(v), e))
        return element(static_cast<ValueId>(v), *d);
    }
    return kNone;
  }
  std::string_view op_of(BinaryOp op, const Expr& e) const {
    switch (op) {
      case BinaryOp::kAdd: return "add";
      case BinaryOp::kSub: return "sub";
      case BinaryOp::kMul: return "mul";
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv: return "div";  // extents are not negative
      case BinaryOp::kFloorMod:
      case BinaryOp::kTruncMod: return "mod";
      case BinaryOp::kMin: return "min";
      case BinaryOp::kMax: return "max";
      case BinaryOp::kEq: return "equal";
      case BinaryOp::kNe: return "not_equal";
      case BinaryOp::kLt: return "less";
      case BinaryOp::kLe: return "less_equal";
      case BinaryOp::kGt: return "greater";
      case BinaryOp::kGe: return "greater_equal";
      case BinaryOp::kAnd: return "and";
      case BinaryOp::kOr: return "or";
      case BinaryOp::kXor: return "xor";
      case BinaryOp::kPow:
      case BinaryOp::kShl:
      case BinaryOp::kShr: break;
    }
    n_.unsupported("the extent " + to_string(e) + " is not known at compile time");
  }

  NodeImport& n_;
  ValueId near_;
};

}  // namespace

ValueId NodeImport::dims(const std::vector<Expr>& values, ValueId near) {
  std::vector<int64_t> numbers;
  for (const Expr& d : values)
    if (auto i = ir::as_int(d)) numbers.push_back(*i);
  if (numbers.size() == values.size()) return ints(numbers);
  std::vector<ValueId> parts;
  for (const Expr& d : values) parts.push_back(Extents(*this, near).make(d));
  return parts.size() == 1 ? parts[0] : op("concat", parts, {{"axis", int64_t{0}}});
}

}  // namespace tilewright::onnx
