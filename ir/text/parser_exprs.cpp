#include "ir/text/parser_exprs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/text/precedence.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

int64_t Cursor::integer(std::string_view what) {
  const Token t = peek();
  int64_t value = 0;
  if (t.kind != TokenKind::kInteger) {
    expected(what);
    return 0;
  }
  next();
  if (std::from_chars(t.text.data(), t.text.data() + t.text.size(), value).ec != std::errc())
    fail(t, "the number is too large: " + t.text);
  return value;
}

namespace {

constexpr int kMaxLanes = 4096;

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

template <typename Op, Op kLast>
std::optional<Op> op_named(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i)
    if (name(static_cast<Op>(i)) == text) return static_cast<Op>(i);
  return std::nullopt;
}
std::optional<BinaryOp> binary_named(std::string_view text) {
  return op_named<BinaryOp, BinaryOp::kGe>(text);
}
std::optional<UnaryOp> unary_named(std::string_view text) {
  return op_named<UnaryOp, UnaryOp::kIsInf>(text);
}

std::optional<ScalarType> type_named(std::string_view text) {
  if (auto t = dtype_from_name(text)) return ScalarType{*t, 1};
  const size_t x = text.rfind('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto t = dtype_from_name(text.substr(0, x));
  int lanes = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + x + 1, end, lanes);
  if (!t || error != std::errc() || stop != end || lanes < 2 || lanes > kMaxLanes)
    return std::nullopt;
  return ScalarType{*t, lanes};
}

}  // namespace

std::string ExprParser::name(std::string_view what) {
  const Token t = c_.peek();
  const bool word = t.kind == TokenKind::kWord && !is_reserved(t.text);
  if (!word && t.kind != TokenKind::kName)
    c_.expected(what);
  else
    c_.next();
  return t.text;
}

bool ExprParser::at_type(size_t ahead) const {
  return c_.peek(ahead).kind == TokenKind::kWord && type_named(c_.peek(ahead).text);
}
ScalarType ExprParser::scalar_type() {
  const auto t = at_type() ? type_named(c_.peek().text) : std::nullopt;
  if (!t)
    c_.expected("a type such as f32 or i64x8");
  else
    c_.next();
  return t.value_or(ScalarType{});
}
DType ExprParser::dtype() {
  const Token at = c_.peek();
  const ScalarType t = scalar_type();
  if (t.lanes != 1) c_.fail(at, "expected an element type, found the vector type " + at.text);
  return t.dtype;
}

std::vector<Expr> ExprParser::extents() {
  std::vector<Expr> dims;
  c_.expect_symbol("[");
  while (c_.ok() && !c_.at_symbol("]")) {
    if (!dims.empty()) c_.expect_symbol(",");
    dims.push_back(expression());
  }
  c_.expect_symbol("]");
  return dims;
}
Layout ExprParser::layout(size_t rank) {
  Layout layout;
  if (!c_.accept_word("layout")) return layout;
  c_.expect_symbol("(");
  while (c_.ok() && !c_.at_symbol(")")) {
    if (!layout.empty()) c_.expect_symbol(",");
    const Token t = c_.next();
    LayoutAxis axis;
    const char* end = t.text.data() + t.text.size();
    if (t.kind != TokenKind::kWord || t.text[0] != 'd' ||
        std::from_chars(t.text.data() + 1, end, axis.dim).ptr != end || t.text.size() < 2 ||
        axis.dim < 0 || static_cast<size_t>(axis.dim) >= rank)
      c_.fail(t, "expected a dimension of the buffer, d0 to d" +
                     std::to_string(static_cast<int64_t>(rank) - 1) + ", found " + shown(t));
    const Token at = c_.peek();
    if (c_.accept_symbol("/")) axis.divisor = c_.integer("a divisor");
    if (c_.accept_symbol("%")) {
      axis.modulus = c_.integer("a modulus");
      if (axis.modulus < 1) c_.fail(at, "a layout's modulus must be at least 1");
    }
    if (axis.divisor < 1) c_.fail(at, "a layout's divisor must be at least 1");
    layout.push_back(axis);
  }
  c_.expect_symbol(")");
  return layout;
}
Buffer ExprParser::buffer(Scope scope) {
  const std::string buffer_name = name("the name of a buffer");
  c_.expect_symbol(":");
  const DType t = dtype();
  std::vector<Expr> shape = extents();
  Layout l = layout(shape.size());
  Buffer b = make_buffer(buffer_name, t, std::move(shape), scope, std::move(l));
  define(buffer_name, b);
  return b;
}

void ExprParser::define(const std::string& name, const Var& var) {
  Var& slot = names_.vars[name];
  undo_.push_back({name, slot, nullptr, false});
  slot = var;
}
void ExprParser::define(const std::string& name, const Buffer& buffer) {
  Buffer& slot = names_.buffers[name];
  undo_.push_back({name, Var(), slot, true});
  slot = buffer;
}
void ExprParser::close(size_t mark) {
  for (; undo_.size() > mark; undo_.pop_back()) {
    const Undo& u = undo_.back();
    if (u.is_buffer)
      names_.buffers[u.name] = u.buffer;
    else
      names_.vars[u.name] = u.var;
  }
}

// Operands joined by operators that bind at least as tightly as `least`.
Expr ExprParser::binary_expr(int least) {
  Expr left = unary_expr();
  for (int chain = 0; c_.ok(); ++chain) {
    const Token t = c_.peek();
    const auto op = t.kind == TokenKind::kSymbol || t.kind == TokenKind::kWord
                        ? binary_named(t.text)
                        : std::nullopt;
    const int p = op ? precedence(*op) : 0;
    if (p == 0 || p < least) return left;
    if (chain == Cursor::kMaxChain)
      c_.fail(t, "more than " + std::to_string(chain) + " operands in a row");
    c_.next();
    left = combine(t, *op, std::move(left), binary_expr(p + 1));
    if (p == kComparisonPrecedence) {
      const Token& after = c_.peek();
      const auto next = after.kind == TokenKind::kSymbol ? binary_named(after.text) : std::nullopt;
      if (next && precedence(*next) == p)
        c_.fail(after, "comparisons do not chain: parentheses are needed");
    }
  }
  return left;
}

Expr ExprParser::unary_expr() {
  if (!c_.enter()) return nullptr;
  Expr result;
  const Token t = c_.peek();
  if (c_.accept_symbol("-")) {
    const Token& n = c_.peek();
    const bool immediate = n.kind == TokenKind::kInteger || n.kind == TokenKind::kFloat ||
                           c_.at_word("inf") || c_.at_word("nan");
    result = immediate ? number(true) : unary_of(t, UnaryOp::kNeg, unary_expr());
  } else {
    result = primary();
  }
  c_.leave();
  return result;
}

Expr ExprParser::primary() {
  const Token t = c_.peek();
  switch (t.kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat: return number(false);
    case TokenKind::kName: break;
    case TokenKind::kWord:
      if (t.text == "inf" || t.text == "nan") return number(false);
      if (c_.accept_word("true")) return bool_imm(true);
      if (c_.accept_word("false")) return bool_imm(false);
      if (c_.at_symbol("(", 1)) return call();
      if (is_reserved(t.text)) {
        c_.expected("an expression");
        return nullptr;
      }
      break;
    case TokenKind::kSymbol:
      if (c_.accept_symbol("(")) {
        Expr e = expression();
        c_.expect_symbol(")");
        return e;
      }
      [[fallthrough]];
    case TokenKind::kString:
    case TokenKind::kEnd: c_.expected("an expression"); return nullptr;
  }
  c_.next();
  if (!c_.at_symbol("[")) return variable(t);
  Buffer b = find_buffer(t);
  std::vector<Expr> indices;
  Expr mask;
  if (!access(indices, mask) || !b) return nullptr;
  return load(b, std::move(indices), std::move(mask));
}

// An immediate: digits, inf or nan, then its type unless that is i64 (with a fraction: f32).
Expr ExprParser::number(bool negative) {
  const Token t = c_.next();
  const bool integer = t.kind == TokenKind::kInteger;
  DType type = integer ? DType::kInt64 : DType::kFloat32;
  if (c_.at_symbol(":") && at_type(1)) {
    c_.next();
    type = dtype();
  }
  const std::string text = (negative ? "-" : "") + t.text;
  const char *begin = text.data(), *end = begin + text.size();
  if (!c_.ok()) return nullptr;
  if (integer) {
    if (is_float(type)) {
      c_.fail(t, "expected a number with a fraction for " + to_text(ScalarType{type}) + ", found " +
                     text);
      return nullptr;
    }
    int64_t value = 0;
    uint64_t large = 0;
    const bool fits = type == DType::kUInt64
                          ? std::from_chars(begin, end, large).ptr == end &&
                                std::from_chars(begin, end, large).ec == std::errc()
                          : std::from_chars(begin, end, value).ec == std::errc();
    if (type == DType::kUInt64) value = static_cast<int64_t>(large);
    Expr imm = int_imm(value, type);
    if (!fits || as_int(imm) != value) {
      c_.fail(t, text + " is outside the range of " + to_text(ScalarType{type}));
      return nullptr;
    }
    return imm;
  }
  if (!is_float(type)) {
    c_.fail(t, "expected an integer for " + to_text(ScalarType{type}) + ", found " + text);
    return nullptr;
  }
  if (t.text == "nan") return float_imm(std::numeric_limits<double>::quiet_NaN(), type);
  if (t.text == "inf") return float_imm(negative ? -HUGE_VAL : HUGE_VAL, type);
  double value = 0;
  float single = 0;
  const auto error = type == DType::kFloat32 ? std::from_chars(begin, end, single).ec
                                             : std::from_chars(begin, end, value).ec;
  if (error != std::errc()) {
    c_.fail(t, text + " is outside the range of " + to_text(ScalarType{type}));
    return nullptr;
  }
  return float_imm(type == DType::kFloat32 ? single : value, type);
}

Expr ExprParser::variable(const Token& t) {
  auto it = names_.vars.find(t.text);
  if (it != names_.vars.end() && it->second) return it->second;
  if (names_.create_symbols) return names_.vars[t.text] = Var(t.text);
  c_.fail(t, "variable " + shown(t) + " is not defined");
  return nullptr;
}
Buffer ExprParser::find_buffer(const Token& t) {
  auto it = names_.buffers.find(t.text);
  if (it != names_.buffers.end() && it->second) return it->second;
  c_.fail(t, "buffer " + shown(t) + " is not defined");
  return nullptr;
}
bool ExprParser::access(std::vector<Expr>& indices, Expr& mask) {
  c_.expect_symbol("[");
  while (c_.ok() && !c_.at_symbol("]") && !c_.at_word("where")) {
    if (!indices.empty()) c_.expect_symbol(",");
    indices.push_back(expression());
  }
  if (c_.accept_word("where")) mask = expression();
  c_.expect_symbol("]");
  return c_.ok();
}

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
  if (ramp ? base.lanes() != 1 || !(base.type() == stride.type()) : count % base.lanes() != 0) {
    c_.fail(at, ramp ? "ramp: base and stride must be scalars of one type"
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
      auto n = make<Dot>({DType::kInt32, sum.lanes()});
      n->sum = std::move(sum);
      n->a = std::move(a);
      n->b = std::move(b);
      result = done(n);
    }
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
