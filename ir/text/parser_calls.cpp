// Operators, functions and conversions: their operands are checked and become nodes.
#include "ir/text/parser_exprs.h"
#include "ir/text/precedence.h"
#include "ir/text/printer_loops.h"
#include "ir/text/vocabulary.h"

namespace tilewright::ir {

namespace {

// Nodes exactly as written: unlike the makers of nodes.h these fold nothing, so that every tree
// round-trips.
template <typename T>
std::shared_ptr<T> make(ScalarType type) {
  auto n = std::make_shared<T>();
  n->kind = T::kKind;
  n->type = type;
  return n;
}
template <typename T>
Expr done(std::shared_ptr<T> n) {
  return std::shared_ptr<const T>(std::move(n));
}

constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq; }

}  // namespace

Expr ExprParser::combine(const Token& at, BinaryOp op, Expr a, Expr b) {
  if (!c_.ok()) return nullptr;
  if (!(a.type() == b.type())) {
    c_.fail(at, "operands of " + std::string(ir::name(op)) +
                    " differ in type: " + to_text(a.type()) + " and " + to_text(b.type()));
    return nullptr;
  }
  auto n = make<Binary>({is_comparison(op) ? DType::kBool : a.dtype(), a.lanes()});
  n->op = op;
  n->a = std::move(a);
  n->b = std::move(b);
  return done(n);
}
Expr ExprParser::unary_of(const Token&, UnaryOp op, Expr value) {
  if (!c_.ok()) return nullptr;
  const bool test = op == UnaryOp::kIsNan || op == UnaryOp::kIsInf;
  auto n = make<Unary>({test ? DType::kBool : value.dtype(), value.lanes()});
  n->op = op;
  n->value = std::move(value);
  return done(n);
}
Expr ExprParser::select_of(const Token& at, Expr condition, Expr a, Expr b) {
  if (!c_.ok()) return nullptr;
  if (!(a.type() == b.type()) || !(condition.type() == ScalarType{DType::kBool, a.lanes()})) {
    c_.fail(at, "select: expected (bool, t, t) of equal lanes, found (" +
                    to_text(condition.type()) + ", " + to_text(a.type()) + ", " +
                    to_text(b.type()) + ")");
    return nullptr;
  }
  auto n = make<Select>(a.type());
  n->condition = std::move(condition);
  n->a = std::move(a);
  n->b = std::move(b);
  return done(n);
}
int ExprParser::lanes() {
  const Token at = c_.peek();
  const int64_t n = c_.integer("a number of lanes");
  if (n < 1 || n > kMaxLanes)
    c_.fail(at, "the number of lanes must be in 1.." + std::to_string(kMaxLanes));
  return static_cast<int>(n);
}
// base, stride, lanes) or value, lanes)
Expr ExprParser::lanes_of(const Token& at, bool ramp) {
  Expr base = expression(), stride;
  c_.expect_symbol(",");
  if (ramp) {
    stride = expression();
    c_.expect_symbol(",");
  }
  const int count = lanes();
  if (!c_.ok()) return nullptr;
  if (count % base.lanes() != 0 || (ramp && !(stride.type() == ScalarType{base.dtype(), 1}))) {
    c_.fail(at,
            ramp ? "ramp: the stride must be a scalar of the type of the base, whose lanes divide "
                   "those of the ramp"
                 : "broadcast: " + std::to_string(count) + " lanes of " + to_text(base.type()));
    return nullptr;
  }
  const ScalarType type{base.dtype(), count};
  if (!ramp) {
    auto n = make<Broadcast>(type);
    n->value = std::move(base);
    return done(n);
  }
  auto n = make<Ramp>(type);
  n->base = std::move(base);
  n->stride = std::move(stride);
  return done(n);
}
// value, first, step)
Expr ExprParser::every_of(const Token& at) {
  Expr value = expression();
  c_.expect_symbol(",");
  const int64_t first = c_.integer("the first lane");
  c_.expect_symbol(",");
  const int64_t step = c_.integer("the step between lanes");
  if (!c_.ok()) return nullptr;
  if (step < 1 || first < 0 || first >= step || value.lanes() % step != 0) {
    c_.fail(at, "every: lane " + std::to_string(first) + " of each " + std::to_string(step) +
                    " of a " + to_text(value.type()));
    return nullptr;
  }
  return every_lane(std::move(value), first, step);
}
// part, part, ...)
Expr ExprParser::interleave_of(const Token& at) {
  std::vector<Expr> parts{expression()};
  while (c_.ok() && c_.accept_symbol(",")) parts.push_back(expression());
  if (!c_.ok()) return nullptr;
  bool alike = parts.size() * static_cast<size_t>(parts[0].lanes()) <= kMaxLanes;
  for (const Expr& e : parts) alike &= e.type() == parts[0].type();
  if (alike) return interleave(std::move(parts));
  c_.fail(at, "interleave: parts of different types, or more than " + std::to_string(kMaxLanes) +
                  " lanes");
  return nullptr;
}
// op, value)
Expr ExprParser::reduce_of(const Token&) {
  const Token t = c_.next();
  const auto op = binary_named(t.text);
  if (!op) c_.fail(t, "expected a binary operator, found " + shown(t));
  c_.expect_symbol(",");
  Expr value = expression();
  if (!c_.ok()) return nullptr;
  auto n = make<ReduceLanes>({value.dtype(), 1});
  n->op = *op;
  n->value = std::move(value);
  return done(n);
}

// function(arguments)
Expr ExprParser::call() {
  const Token t = c_.next();
  c_.next();
  Expr result;
  auto argument = [&](bool first = false) {
    if (!first) c_.expect_symbol(",");
    return expression();
  };
  if (auto type = type_named(t.text)) {
    if (type->lanes != 1) c_.fail(t, "a conversion names an element type, found " + t.text);
    Expr value = argument(true);
    if (c_.ok()) {
      auto n = make<Cast>({type->dtype, value.lanes()});
      n->value = std::move(value);
      result = done(n);
    }
  } else if (t.text == "bitcast") {
    const DType type = dtype();
    Expr value = argument();
    if (c_.ok() && byte_size(type) != byte_size(value.dtype()))
      c_.fail(t, "bitcast from " + to_text(value.type()) + ": the sizes differ");
    if (c_.ok()) {
      auto n = make<Bitcast>({type, value.lanes()});
      n->value = std::move(value);
      result = done(n);
    }
  } else if (t.text == "select") {
    Expr condition = argument(true), a = argument(), b = argument();
    result = select_of(t, std::move(condition), std::move(a), std::move(b));
  } else if (t.text == "ramp" || t.text == "broadcast") {
    result = lanes_of(t, t.text == "ramp");
  } else if (t.text == "dot") {
    Expr sum = argument(true), a = argument(), b = argument();
    if (c_.ok()) {
      auto n = make<Dot>(sum.type());
      n->sum = std::move(sum);
      n->a = std::move(a);
      n->b = std::move(b);
      result = done(n);
    }
  } else if (t.text == "every") {
    result = every_of(t);
  } else if (t.text == "interleave") {
    result = interleave_of(t);
  } else if (t.text == "reduce_lanes") {
    result = reduce_of(t);
  } else if (auto u = unary_named(t.text)) {
    result = unary_of(t, *u, argument(true));
  } else if (auto b = binary_named(t.text); b && precedence(*b) == 0) {
    Expr x = argument(true), y = argument();
    result = combine(t, *b, std::move(x), std::move(y));
  } else {
    c_.fail(t, "unknown function " + shown(t));
  }
  c_.expect_symbol(")");
  return result;
}

}  // namespace tilewright::ir
