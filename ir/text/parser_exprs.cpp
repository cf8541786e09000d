#include "ir/text/parser_exprs.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "ir/text/precedence.h"
#include "ir/text/printer_loops.h"
#include "ir/text/vocabulary.h"

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
  if (c_.accept_symbol("-")) {
    const Token& n = c_.peek();
    const bool immediate = n.kind == TokenKind::kInteger || n.kind == TokenKind::kFloat ||
                           c_.at_word("inf") || c_.at_word("nan");
    result = immediate ? number(true) : unary_of(UnaryOp::kNeg, unary_expr());
  } else {
    result = primary();
  }
  c_.leave();
  return result;
}

// What stands between operators: an expression in parentheses, or one node by its own syntax.
Expr ExprParser::primary() {
  using Var = VarNode;
  if (c_.accept_symbol("(")) {
    Expr e = expression();
    c_.expect_symbol(")");
    return e;
  }
#define TW_EXPR(Kind) \
  if (at(Of<Kind>())) return read(Of<Kind>());
#include "ir/loops/nodes.def"
  if (at_call())
    c_.fail(c_.peek(), "unknown function " + shown(c_.peek()));
  else
    c_.expected("an expression");
  return nullptr;
}

bool ExprParser::at_name() const {
  const Token& t = c_.peek();
  return t.kind == TokenKind::kName ||
         (t.kind == TokenKind::kWord && !c_.at_symbol("(", 1) && !is_reserved(t.text));
}

bool ExprParser::at(Of<IntImm>) const {
  return c_.peek().kind == TokenKind::kInteger || c_.at_word("true") || c_.at_word("false");
}
Expr ExprParser::read(Of<IntImm>) {
  if (c_.accept_word("true")) return bool_imm(true);
  if (c_.accept_word("false")) return bool_imm(false);
  return number(false);
}
bool ExprParser::at(Of<FloatImm>) const {
  return c_.peek().kind == TokenKind::kFloat || c_.at_word("inf") || c_.at_word("nan");
}

// A[i, j where mask] ahead(64)
Expr ExprParser::read(Of<Load>) {
  Buffer b = find_buffer(c_.next());
  std::vector<Expr> indices;
  Expr mask;
  if (!access(indices, mask) || !b) return nullptr;
  int64_t ahead = 0;
  if (c_.at_symbol("(", 1) && c_.accept_word("ahead")) {
    c_.next();
    ahead = c_.integer("a number of elements");
    c_.expect_symbol(")");
  }
  return load(b, std::move(indices), std::move(mask), ahead);
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

}  // namespace tilewright::ir
