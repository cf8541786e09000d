// Names and their scopes, types, buffers.
#include <charconv>

#include "ir/text/parser_exprs.h"
#include "ir/text/printer_loops.h"
#include "ir/text/vocabulary.h"

namespace tilewright::ir {

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
      if (c_.accept_symbol(":")) {
        axis.padded = c_.integer("an extent");
        if (axis.padded <= axis.modulus)
          c_.fail(at, "a layout's padded extent must be more than its modulus");
      }
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

}  // namespace tilewright::ir
