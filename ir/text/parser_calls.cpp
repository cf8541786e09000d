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
Expr ExprParser::unary_of(UnaryOp op, Expr value) {
  if (!c_.ok()) return nullptr;
  const bool test = op == UnaryOp::kIsNan || op == UnaryOp::kIsInf;
  auto n = make<Unary>({test ? DType::kBool : value.dtype(), value.lanes()});
  n->op = op;
  n->value = std::move(value);
  return done(n);
}

Token ExprParser::begin_call() {
  Token t = c_.next();
  c_.next();
  return t;
}
Expr ExprParser::argument(bool first) {
  if (!first) c_.expect_symbol(",");
  return expression();
}
Expr ExprParser::end_call(Expr result) {
  c_.expect_symbol(")");
  return result;
}
int ExprParser::lanes() {
  c_.expect_symbol(",");
  const Token at = c_.peek();
  const int64_t n = c_.integer("a number of lanes");
  if (n < 1 || n > kMaxLanes)
    c_.fail(at, "the number of lanes must be in 1.." + std::to_string(kMaxLanes));
  return static_cast<int>(n);
}

bool ExprParser::at(Of<Cast>) const { return at_call() && type_named(c_.peek().text); }
Expr ExprParser::read(Of<Cast>) {
  const Token t = begin_call();
  const auto type = type_named(t.text);
  if (type->lanes != 1) c_.fail(t, "a conversion names an element type, found " + t.text);
  Expr value = argument(true);
  if (!c_.ok()) return nullptr;
  auto n = make<Cast>({type->dtype, value.lanes()});
  n->value = std::move(value);
  return end_call(done(n));
}
Expr ExprParser::read(Of<Bitcast>) {
  const Token t = begin_call();
  const DType type = dtype();
  Expr value = argument();
  if (c_.ok() && byte_size(type) != byte_size(value.dtype()))
    c_.fail(t, "bitcast from " + to_text(value.type()) + ": the sizes differ");
  if (!c_.ok()) return nullptr;
  auto n = make<Bitcast>({type, value.lanes()});
  n->value = std::move(value);
  return end_call(done(n));
}
bool ExprParser::at(Of<Unary>) const { return at_call() && unary_named(c_.peek().text); }
Expr ExprParser::read(Of<Unary>) {
  const auto op = unary_named(begin_call().text);
  return end_call(unary_of(*op, argument(true)));
}
bool ExprParser::at(Of<Binary>) const {
  const auto op = at_call() ? binary_named(c_.peek().text) : std::nullopt;
  return op && precedence(*op) == 0;
}
Expr ExprParser::read(Of<Binary>) {
  const Token t = begin_call();
  Expr a = argument(true), b = argument();
  return end_call(combine(t, *binary_named(t.text), std::move(a), std::move(b)));
}
Expr ExprParser::read(Of<Select>) {
  const Token t = begin_call();
  Expr condition = argument(true), a = argument(), b = argument();
  if (!c_.ok()) return nullptr;
  if (!(a.type() == b.type()) || !(condition.type() == ScalarType{DType::kBool, a.lanes()})) {
    c_.fail(t, "select: expected (bool, t, t) of equal lanes, found (" + to_text(condition.type()) +
                   ", " + to_text(a.type()) + ", " + to_text(b.type()) + ")");
    return nullptr;
  }
  auto n = make<Select>(a.type());
  n->condition = std::move(condition);
  n->a = std::move(a);
  n->b = std::move(b);
  return end_call(done(n));
}
Expr ExprParser::read(Of<Ramp>) {
  const Token t = begin_call();
  Expr base = argument(true), stride = argument();
  const int count = lanes();
  if (!c_.ok()) return nullptr;
  if (count % base.lanes() != 0 || !(stride.type() == ScalarType{base.dtype(), 1})) {
    c_.fail(t,
            "ramp: the stride must be a scalar of the type of the base, whose lanes divide those "
            "of the ramp");
    return nullptr;
  }
  auto n = make<Ramp>({base.dtype(), count});
  n->base = std::move(base);
  n->stride = std::move(stride);
  return end_call(done(n));
}
Expr ExprParser::read(Of<Broadcast>) {
  const Token t = begin_call();
  Expr value = argument(true);
  const int count = lanes();
  if (!c_.ok()) return nullptr;
  if (count % value.lanes() != 0) {
    c_.fail(t, "broadcast: " + std::to_string(count) + " lanes of " + to_text(value.type()));
    return nullptr;
  }
  auto n = make<Broadcast>({value.dtype(), count});
  n->value = std::move(value);
  return end_call(done(n));
}
Expr ExprParser::read(Of<ReduceLanes>) {
  begin_call();
  const Token t = c_.next();
  const auto op = binary_named(t.text);
  if (!op) c_.fail(t, "expected a binary operator, found " + shown(t));
  Expr value = argument();
  if (!c_.ok()) return nullptr;
  auto n = make<ReduceLanes>({value.dtype(), 1});
  n->op = *op;
  n->value = std::move(value);
  return end_call(done(n));
}
Expr ExprParser::read(Of<Dot>) {
  begin_call();
  Expr sum = argument(true), a = argument(), b = argument();
  if (!c_.ok()) return nullptr;
  auto n = make<Dot>(sum.type());
  n->sum = std::move(sum);
  n->a = std::move(a);
  n->b = std::move(b);
  return end_call(done(n));
}

// every(value, first, step)
Expr ExprParser::read(Of<EveryLane>) {
  const Token t = begin_call();
  Expr value = argument(true);
  c_.expect_symbol(",");
  const int64_t first = c_.integer("the first lane");
  c_.expect_symbol(",");
  const int64_t step = c_.integer("the step between lanes");
  if (!c_.ok()) return nullptr;
  if (step < 1 || first < 0 || first >= step || value.lanes() % step != 0) {
    c_.fail(t, "every: lane " + std::to_string(first) + " of each " + std::to_string(step) +
                   " of a " + to_text(value.type()));
    return nullptr;
  }
  return end_call(every_lane(std::move(value), first, step));
}
// interleave(part, part, ...)
Expr ExprParser::read(Of<Interleave>) {
  const Token t = begin_call();
  std::vector<Expr> parts{argument(true)};
  while (c_.ok() && c_.at_symbol(",")) parts.push_back(argument());
  if (!c_.ok()) return nullptr;
  bool alike = parts.size() * static_cast<size_t>(parts[0].lanes()) <= kMaxLanes;
  for (const Expr& e : parts) alike &= e.type() == parts[0].type();
  if (alike) return end_call(interleave(std::move(parts)));
  c_.fail(t, "interleave: parts of different types, or more than " + std::to_string(kMaxLanes) +
                 " lanes");
  return nullptr;
}

}  // namespace tilewright::ir
