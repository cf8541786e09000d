// The rules of expressions: each node's type is the one that its operands give it. Shared
// expressions are checked once per statement, or inlined ones would take exponential time.
#include <algorithm>

#include "ir/interpreter/scalar_ops.h"
#include "ir/loops/rewrite.h"
#include "ir/loops_verifier.h"

namespace tilewright::ir {

using interpreter::has_meaning;
using interpreter::is_comparison;

void LoopsVerifier::expr(const Expr& e) {
  if (!e) return report("an expression is missing");
  if (!checked_.insert(e.get()).second) return;
  TW_REQUIRE(e.lanes() >= 1, "'" + text(e) + "' has " + std::to_string(e.lanes()) + " lanes");
  if (!flat_) TW_REQUIRE(e.lanes() == 1, "'" + text(e) + "' is a vector before the flat stage");
  dispatch(e, [&](const auto& n) { check(n, e); });
}
void LoopsVerifier::check(const IntImm& n, const Expr& e) {
  TW_REQUIRE(!is_float(e.dtype()), "an integer immediate has type " + to_text(e.type()));
  if (!is_float(e.dtype()))
    TW_REQUIRE(
        as_int(int_imm(n.value, e.dtype())) == n.value,
        "immediate " + std::to_string(n.value) + " is outside the range of " + to_text(e.type()));
  TW_REQUIRE(e.lanes() == 1, "an immediate has several lanes");
}
void LoopsVerifier::check(const FloatImm&, const Expr& e) {
  TW_REQUIRE(is_float(e.dtype()) && e.lanes() == 1,
             "a floating-point immediate has type " + to_text(e.type()));
}
void LoopsVerifier::check(const VarNode&, const Expr& e) {
  auto it = visible_.find(e.get());
  if (!TW_REQUIRE(it != visible_.end(),
                  "variable '" + text(e) + "' is used outside of its definition"))
    return;
  const Definition& d = it->second;
  const bool outside = d.depth < depth_ && (d.origin == Origin::kLoop || d.origin == Origin::kLet);
  TW_REQUIRE(!outside || !hide_loops_,
             "variable '" + text(e) + "' of a loop or let around the block is named inside of it");
  TW_REQUIRE(
      !in_init_ || d.origin != Origin::kAxis || d.axis != AxisKind::kReduce || d.depth < depth_,
      "an init names the reduce axis '" + text(e) + "'");
}
void LoopsVerifier::check(const Cast& n, const Expr& e) {
  expr(n.value);
  if (n.value) stated(e, {e.dtype(), n.value.lanes()});
}
void LoopsVerifier::check(const Bitcast& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  stated(e, {e.dtype(), n.value.lanes()});
  TW_REQUIRE(byte_size(e.dtype()) == byte_size(n.value.dtype()),
             "'" + text(e) + "': bitcast from " + to_text(n.value.type()) + ", the sizes differ");
}
void LoopsVerifier::check(const Unary& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  const bool test = n.op == UnaryOp::kIsNan || n.op == UnaryOp::kIsInf;
  stated(e, {test ? DType::kBool : n.value.dtype(), n.value.lanes()});
  TW_REQUIRE(has_meaning(n.op, n.value.dtype()), std::string(name(n.op)) + " has no meaning for " +
                                                     to_text(n.value.type()) + " in '" + text(e) +
                                                     "'");
}
void LoopsVerifier::check(const Binary& n, const Expr& e) {
  expr(n.a);
  expr(n.b);
  if (!n.a || !n.b) return;
  if (!TW_REQUIRE(n.a.type() == n.b.type(), "operands of " + std::string(name(n.op)) +
                                                " differ in type: " + to_text(n.a.type()) +
                                                " and " + to_text(n.b.type()) + " in '" + text(e) +
                                                "'"))
    return;
  stated(e, {is_comparison(n.op) ? DType::kBool : n.a.dtype(), n.a.lanes()});
  TW_REQUIRE(has_meaning(n.op, n.a.dtype()), std::string(name(n.op)) + " has no meaning for " +
                                                 to_text(n.a.type()) + " in '" + text(e) + "'");
}
void LoopsVerifier::check(const Select& n, const Expr& e) {
  expr(n.condition);
  expr(n.a);
  expr(n.b);
  if (!n.condition || !n.a || !n.b) return;
  TW_REQUIRE(n.a.type() == n.b.type(), "sides of select differ in type: " + to_text(n.a.type()) +
                                           " and " + to_text(n.b.type()));
  TW_REQUIRE((n.condition.type() == ScalarType{DType::kBool, n.a.lanes()}),
             "condition of select has type " + to_text(n.condition.type()) +
                 ", expected bool of as many lanes as " + to_text(n.a.type()));
  stated(e, n.a.type());
}
void LoopsVerifier::check(const Load& n, const Expr& e) {
  const int lanes = access(n.buffer, n.indices, n.mask);
  if (n.buffer) stated(e, {n.buffer->dtype, lanes});
}
void LoopsVerifier::check(const Ramp& n, const Expr& e) {
  expr(n.base);
  expr(n.stride);
  if (!n.base || !n.stride) return;
  const bool of_rows = flat_ && n.base.type() != ScalarType{n.base.dtype(), 1} &&
                       n.base.dtype() == DType::kInt64 && e.lanes() % n.base.lanes() == 0;
  TW_REQUIRE(
      (n.stride.type() == ScalarType{n.base.dtype(), 1} && (n.base.lanes() == 1 || of_rows)),
      "base and stride of a ramp must be scalars of one type, or the base i64 of so many lanes "
      "that a number of rows has those of the ramp: '" +
          text(e) + "'");
  stated(e, {n.base.dtype(), e.lanes()});
}
void LoopsVerifier::check(const Broadcast& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  TW_REQUIRE(e.lanes() % n.value.lanes() == 0,
             "a broadcast to lanes that no number of copies gives: '" + text(e) + "'");
  stated(e, {n.value.dtype(), e.lanes()});
}
void LoopsVerifier::check(const Dot& n, const Expr& e) {
  for (const Expr& x : {n.sum, n.a, n.b}) expr(x);
  if (!n.sum || !n.a || !n.b) return;
  const int terms = dot_terms(n.a.dtype());
  TW_REQUIRE(
      (terms > 0 && n.sum.dtype() == dot_sum(n.a.dtype()) && n.a.lanes() == terms * n.sum.lanes() &&
       n.b.type() == ScalarType{dot_partner(n.a.dtype()), n.a.lanes()}),
      "dot takes i32 and four times as many lanes of u8 and of i8 or twice as many of i16, or "
      "f32 and twice as many of bf16: '" +
          text(e) + "'");
  stated(e, n.sum.type());
}
void LoopsVerifier::check(const EveryLane& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  const bool fits = n.step >= 1 && n.first >= 0 && n.first < n.step &&
                    n.value.lanes() % n.step == 0 && n.value.lanes() / n.step > 1;
  if (TW_REQUIRE(fits, "'" + text(e) + "' is not one lane of each step of a vector"))
    stated(e, {n.value.dtype(), static_cast<int>(n.value.lanes() / n.step)});
}
void LoopsVerifier::check(const Interleave& n, const Expr& e) {
  bool alike = n.parts.size() > 1;
  for (const Expr& p : n.parts) {
    expr(p);
    if (!p) return;
    alike &= p.type() == n.parts[0].type() && p.lanes() > 1;
  }
  if (TW_REQUIRE(alike, "'" + text(e) + "' does not interleave vectors of one type"))
    stated(e, {n.parts[0].dtype(), n.parts[0].lanes() * static_cast<int>(n.parts.size())});
}
void LoopsVerifier::check(const ReduceLanes& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  TW_REQUIRE(!is_comparison(n.op) && has_meaning(n.op, n.value.dtype()),
             std::string(name(n.op)) + " cannot combine the lanes of " + to_text(n.value.type()));
  stated(e, {n.value.dtype(), 1});
}

void LoopsVerifier::scalar_index(const Expr& e, const std::string& what) {
  expr(e);
  if (e)
    TW_REQUIRE(e.type() == ScalarType{},
               what + " has type " + to_text(e.type()) + ", expected a scalar i64");
}
void LoopsVerifier::condition(const Expr& e) {
  expr(e);
  if (e)
    TW_REQUIRE(
        (e.type() == ScalarType{DType::kBool, 1}),
        "condition '" + text(e) + "' has type " + to_text(e.type()) + ", expected a scalar bool");
}

// Checks a load or store; the number of lanes it works on.
int LoopsVerifier::access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask) {
  if (!TW_REQUIRE(b != nullptr, "a buffer is missing")) return 1;
  const std::string who = "'" + names_.of(b) + "'";
  TW_REQUIRE(live_.count(b.get()) != 0,
             "buffer " + who + " is neither a parameter nor allocated around its use");
  of_team(b);
  const size_t expected = flat_ ? 1 : b->shape.size();
  TW_REQUIRE(indices.size() == expected, who + " is accessed with " +
                                             std::to_string(indices.size()) +
                                             " indices, expected " + std::to_string(expected));
  int lanes = 1;
  for (const Expr& i : indices) {
    expr(i);
    if (!i) continue;
    TW_REQUIRE(i.dtype() == DType::kInt64, "index '" + text(i) + "' of " + who + " has type " +
                                               to_text(i.type()) + ", expected i64");
    lanes = std::max(lanes, i.lanes());
  }
  for (const Expr& i : indices)
    if (i) inside(b, i);
  if (!mask) return lanes;
  expr(mask);
  TW_REQUIRE(flat_, "a mask on " + who + " before the flat stage");
  TW_REQUIRE((mask.type() == ScalarType{DType::kBool, lanes} || is_one(mask)),
             "mask on " + who + " has type " + to_text(mask.type()) + ", expected bool of " +
                 std::to_string(lanes) + " lanes");
  return lanes;
}

}  // namespace tilewright::ir
