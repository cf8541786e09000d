// Code for expressions. A value is computed once per statement (common subexpressions by node),
// except under a Select, whose sides are forgotten afterwards since only one of them ran.
#include "ir/interpreter/compiler.h"
#include "ir/loops/rewrite.h"

namespace tilewright::ir::interpreter {

uint32_t Compiler::constant(Slot value) {
  auto [it, fresh] =
      constants_.emplace(value.u, kConstants + static_cast<uint32_t>(program_.constants.size()));
  if (fresh) program_.constants.push_back(value);
  return it->second;
}

void Compiler::memo_forget(size_t mark) {
  for (; memo_log_.size() > mark; memo_log_.pop_back()) memo_.erase(memo_log_.back());
}

uint32_t Compiler::expr(const Expr& e) {
  if (!e) {
    fail("an expression is missing");
    return 0;
  }
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
  const uint32_t reg = dispatch(e, [&](const auto& n) { return compile(n, e.type()); });
  if (memo_.emplace(e.get(), reg).second) memo_log_.push_back(e.get());
  return reg;
}
uint32_t Compiler::expr(const Expr& e, int lanes) {
  const uint32_t reg = expr(e);
  if (!e || e.lanes() == lanes) return reg;
  if (e.lanes() != 1)
    fail("an operand has " + std::to_string(e.lanes()) + " lanes, expected " +
         std::to_string(lanes));
  const uint32_t dst = reserve(lanes);
  emit(broadcast_handler, dst, reg, kNoReg, kNoReg, lanes);
  return dst;
}

uint32_t Compiler::compile(const IntImm& n, ScalarType t) {
  Slot s;
  s.i = n.value;
  if (is_float(t.dtype)) fail("an integer immediate has type " + std::string(name(t.dtype)));
  return constant(s);
}
uint32_t Compiler::compile(const FloatImm& n, ScalarType t) {
  Slot s;
  s.u = 0;
  switch (t.dtype) {
    case DType::kFloat64: s.d = n.value; break;
    case DType::kFloat32: s.f = rounded<DType::kFloat32>(n.value); break;
    case DType::kFloat16: s.f = rounded<DType::kFloat16>(n.value); break;
    case DType::kBFloat16: s.f = rounded<DType::kBFloat16>(n.value); break;
    default: fail("a floating-point immediate has type " + std::string(name(t.dtype)));
  }
  return constant(s);
}
uint32_t Compiler::compile(const VarNode& n, ScalarType) {
  auto it = vars_.find(&n);
  if (it != vars_.end()) return it->second;
  fail("variable '" + n.name + "' is not defined here");
  return 0;
}
uint32_t Compiler::compile(const Cast& n, ScalarType t) {
  const uint32_t a = expr(n.value, t.lanes), dst = reserve(t.lanes);
  emit(cast_handler(n.value.dtype(), t.dtype), dst, a, kNoReg, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Bitcast& n, ScalarType t) {
  const uint32_t a = expr(n.value, t.lanes), dst = reserve(t.lanes);
  Handler h = bitcast_handler(n.value.dtype(), t.dtype);
  if (!h) fail("bitcast between types of different size");
  emit(h, dst, a, kNoReg, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Unary& n, ScalarType t) {
  const uint32_t a = expr(n.value, t.lanes), dst = reserve(t.lanes);
  Handler h = unary_handler(n.op, n.value.dtype(), t.lanes > 1);
  if (!h)
    fail(std::string(name(n.op)) + " has no meaning for " + std::string(name(n.value.dtype())));
  emit(h, dst, a, kNoReg, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::binary_of(BinaryOp op, DType t, uint32_t a, uint32_t b, int lanes) {
  Handler h = binary_handler(op, t, lanes > 1);
  if (!h) fail(std::string(name(op)) + " has no meaning for " + std::string(name(t)));
  const uint32_t mask = is_division(op) && !is_float(t) ? mask_for(lanes) : kNoReg;
  const uint32_t dst = reserve(lanes);
  emit(h, dst, a, b, mask, lanes);
  return dst;
}
uint32_t Compiler::compile(const Binary& n, ScalarType t) {
  const uint32_t a = expr(n.a, t.lanes), b = expr(n.b, t.lanes);
  if (n.a.dtype() != n.b.dtype())
    fail("operands of " + std::string(name(n.op)) + " differ in type");
  return binary_of(n.op, n.a.dtype(), a, b, t.lanes);
}

// The current mask for a value of that many lanes; between different widths: any lane, for all
// lanes.
uint32_t Compiler::mask_for(int lanes) {
  if (mask_ == kNoReg || mask_lanes_ == lanes) return mask_;
  uint32_t any = mask_;
  if (mask_lanes_ > 1) emit(any_handler, any = reserve(1), mask_, kNoReg, kNoReg, mask_lanes_);
  if (lanes == 1) return any;
  const uint32_t dst = reserve(lanes);
  emit(broadcast_handler, dst, any, kNoReg, kNoReg, lanes);
  return dst;
}
// The current mask and the access's own.
uint32_t Compiler::masked(const Expr& own, int lanes) {
  const uint32_t outer = mask_for(lanes);
  if (!own) return outer;
  const uint32_t inner = expr(own, lanes);
  return outer == kNoReg ? inner : binary_of(BinaryOp::kAnd, DType::kBool, inner, outer, lanes);
}

// Scalars branch. Vectors compute both sides, each under the lanes that chose it, and blend.
uint32_t Compiler::compile(const Select& n, ScalarType t) {
  const uint32_t dst = reserve(t.lanes);
  if (n.condition.lanes() == 1 && mask_ == kNoReg) {
    const uint32_t condition = expr(n.condition);
    const size_t to_b = emit(jump_if_false_handler, kNoReg, condition);
    const size_t mark = memo_mark();
    const uint32_t a = expr(n.a, t.lanes);
    emit(copy_handler, dst, a, kNoReg, kNoReg, t.lanes);
    memo_forget(mark);
    const size_t to_end = emit(jump_handler, kNoReg);
    land(to_b);
    const uint32_t b = expr(n.b, t.lanes);
    emit(copy_handler, dst, b, kNoReg, kNoReg, t.lanes);
    memo_forget(mark);
    land(to_end);
    return dst;
  }
  const uint32_t condition = expr(n.condition, t.lanes);
  const uint32_t outer = mask_for(t.lanes);
  const auto saved = std::pair(mask_, mask_lanes_);
  const size_t mark = memo_mark();
  auto side = [&](const Expr& e, uint32_t chosen) {
    mask_ = kNoReg;
    mask_ =
        outer == kNoReg ? chosen : binary_of(BinaryOp::kAnd, DType::kBool, chosen, outer, t.lanes);
    mask_lanes_ = t.lanes;
    const uint32_t value = expr(e, t.lanes);
    memo_forget(mark);
    return value;
  };
  const uint32_t a = side(n.a, condition);
  const uint32_t not_chosen = reserve(t.lanes);
  emit(unary_handler(UnaryOp::kNot, DType::kBool, t.lanes > 1), not_chosen, condition, kNoReg,
       kNoReg, t.lanes);
  const uint32_t b = side(n.b, not_chosen);
  std::tie(mask_, mask_lanes_) = saved;
  emit(select_handler, dst, a, b, condition, t.lanes);
  return dst;
}

uint32_t Compiler::access(const Buffer& buffer, const std::vector<Expr>& indices, int lanes) {
  Access a{0, flat_, {}, scope_};
  auto it = buffers_.find(buffer.get());
  if (it == buffers_.end())
    fail("buffer '" + (buffer ? buffer->name : std::string()) + "' is not allocated here");
  else
    a.buffer = it->second;
  const size_t expected = flat_ ? 1 : buffer ? buffer->shape.size() : 0;
  if (indices.size() != expected || expected > 16)
    fail("buffer '" + (buffer ? buffer->name : std::string()) + "' is accessed with " +
         std::to_string(indices.size()) + " indices, expected " + std::to_string(expected));
  for (const Expr& e : indices) {
    const uint32_t reg = expr(e);
    if (e && e.lanes() != 1 && e.lanes() != lanes)
      fail("lanes of an index disagree with the access");
    if (e && is_float(e.dtype())) fail("an index is not an integer");
    a.indices.push_back({reg, e && e.lanes() > 1 ? 1u : 0u});
  }
  program_.accesses.push_back(std::move(a));
  return static_cast<uint32_t>(program_.accesses.size() - 1);
}
uint32_t Compiler::compile(const Load& n, ScalarType t) {
  const uint32_t mask = masked(n.mask, t.lanes);
  const uint32_t row = access(n.buffer, n.indices, t.lanes), dst = reserve(t.lanes);
  emit(load_handler(t.dtype, t.lanes > 1), dst, row, kNoReg, mask, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Ramp& n, ScalarType t) {
  const uint32_t base = expr(n.base), stride = expr(n.stride);
  if (t.dtype == DType::kInt64) {
    const uint32_t dst = reserve(t.lanes);
    const auto width = static_cast<uint32_t>(n.base.lanes());
    emit(ramp_handler, dst, base, stride, width, t.lanes);
    return dst;
  }
  if (n.base.lanes() != 1) fail("rows of " + std::string(name(t.dtype)));
  // Of any other type: lane numbers, times the stride, plus the base.
  const uint32_t lane = reserve(t.lanes), numbers = reserve(t.lanes), strides = reserve(t.lanes),
                 bases = reserve(t.lanes);
  Slot zero, one;
  zero.i = 0;
  one.i = 1;
  emit(ramp_handler, lane, constant(zero), constant(one), 1, t.lanes);
  emit(cast_handler(DType::kInt64, t.dtype), numbers, lane, kNoReg, kNoReg, t.lanes);
  emit(broadcast_handler, strides, stride, kNoReg, kNoReg, t.lanes);
  emit(broadcast_handler, bases, base, kNoReg, kNoReg, t.lanes);
  return binary_of(BinaryOp::kAdd, t.dtype, bases,
                   binary_of(BinaryOp::kMul, t.dtype, numbers, strides, t.lanes), t.lanes);
}
uint32_t Compiler::compile(const Broadcast& n, ScalarType t) {
  const auto lanes = static_cast<uint32_t>(n.value.lanes());
  if (lanes == 1 || n.value.lanes() == t.lanes) return expr(n.value, t.lanes);
  const uint32_t value = expr(n.value), dst = reserve(t.lanes);
  emit(repeat_handler, dst, value, lanes, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const EveryLane& n, ScalarType t) {
  const uint32_t value = expr(n.value), dst = reserve(t.lanes);
  if (n.step < 1 || n.first < 0 || n.first + n.step * (t.lanes - 1) >= n.value.lanes())
    fail("every takes lanes that there are not");
  emit(every_handler, dst, value, static_cast<uint32_t>(n.first), static_cast<uint32_t>(n.step),
       t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Interleave& n, ScalarType t) {
  const auto count = static_cast<uint32_t>(n.parts.size());
  const int lanes = t.lanes / static_cast<int>(count);
  std::vector<uint32_t> parts;
  for (const Expr& p : n.parts) parts.push_back(expr(p, lanes));
  const uint32_t dst = reserve(t.lanes);
  for (uint32_t k = 0; k < count; ++k)
    emit(spread_handler, dst + k, parts[k], count, kNoReg, lanes);
  return dst;
}
uint32_t Compiler::compile(const Dot& n, ScalarType t) {
  const int terms = dot_terms(n.a.dtype()) * t.lanes;
  const uint32_t sum = expr(n.sum, t.lanes), a = expr(n.a, terms), b = expr(n.b, terms),
                 dst = reserve(t.lanes);
  const Handler of_integers = terms == 4 * t.lanes ? dot_handler<4> : dot_handler<2>;
  emit(is_float(t.dtype) ? float_dot_handler : of_integers, dst, a, b, sum, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const ReduceLanes& n, ScalarType t) {
  uint32_t value = expr(n.value);
  if (n.op == BinaryOp::kMaxNumber)
    value = binary_of(n.op, t.dtype, expr(broadcast(lowest(t.dtype), n.value.lanes())), value,
                      n.value.lanes());
  for (int lanes = n.value.lanes();
       lanes > 1;) {  // the upper half onto the lower one; an odd lane in the middle stays
    const int half = (lanes + 1) / 2;
    const uint32_t dst = reserve(half);
    Handler h = binary_handler(n.op, t.dtype, true);
    if (!h || is_comparison(n.op))
      fail(std::string(name(n.op)) + " cannot combine lanes of " + std::string(name(t.dtype)));
    emit(copy_handler, dst, value, kNoReg, kNoReg, half);
    emit(h, dst, value, value + static_cast<uint32_t>(half), kNoReg, lanes - half);
    value = dst;
    lanes = half;
  }
  return value;
}

}  // namespace tilewright::ir::interpreter
