#include "ir/text/parser_stmts.h"

#include <algorithm>

#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {

template <typename T>
std::shared_ptr<T> make() {
  auto n = std::make_shared<T>();
  n->kind = T::kKind;
  return n;
}
template <typename T>
Stmt as_stmt(std::shared_ptr<T> n) {
  return std::shared_ptr<const T>(std::move(n));
}

Stmt join(std::vector<Stmt> stmts) {
  if (stmts.size() == 1) return std::move(stmts[0]);
  auto n = make<Seq>();
  n->stmts = std::move(stmts);
  return as_stmt(n);
}

}  // namespace

// A word of an enumeration.
template <typename E, E kLast>
E LoopsParser::one_of(std::string_view what) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i)
    if (c_.accept_word(ir::name(static_cast<E>(i)))) return static_cast<E>(i);
  c_.expected(what);
  return E{};
}

Var LoopsParser::typed_name(std::string_view what) {
  const std::string n = name(what);
  ScalarType type;
  if (c_.at_symbol(":") && at_type(1)) {
    c_.next();
    type = scalar_type();
  }
  return Var(n, type);
}
Expr LoopsParser::condition() {
  const Token at = c_.peek();
  Expr e = expression();
  if (c_.ok() && !(e.type() == ScalarType{DType::kBool, 1}))
    c_.fail(at, "expected a condition of type bool, found " + to_text(e.type()));
  return e;
}

// (n * 64), of a workspace
Expr LoopsParser::bytes() {
  c_.expect_symbol("(");
  Expr e = expression();
  c_.expect_symbol(")");
  return e;
}

LoopsParser::Pending LoopsParser::scoped() {
  Pending p{};
  const Token at = c_.peek();
  if (c_.accept_word("let")) {
    p.var = typed_name("the name of a variable");
    c_.expect_symbol("=");
    p.value = expression();
    if (c_.ok() && !(p.value.type() == p.var.type()))
      c_.fail(at, "'" + p.var.name() + "' is a " + to_text(p.var.type()) + ", its value a " +
                      to_text(p.value.type()));
    define(p.var.name(), p.var);
    p.nest = [](const Pending& x, Stmt body) {
      auto n = make<Let>();
      n->var = x.var;
      n->value = x.value;
      n->body = std::move(body);
      return as_stmt(n);
    };
    return p;
  }
  p.buffer = buffer(one_of<Scope, Scope::kLocal>("a statement"));
  // With an index it is a buffer of that name, of the next statement.
  if (!c_.at_symbol("[", 1) && c_.accept_word("at")) p.offset = expression();
  p.nest = [](const Pending& x, Stmt body) {
    auto n = make<Allocate>();
    n->buffer = x.buffer;
    n->offset = x.offset;
    n->body = std::move(body);
    return as_stmt(n);
  };
  return p;
}

Stmt LoopsParser::list() {
  const size_t mark = open();
  std::vector<Pending> pending;
  std::vector<Stmt> stmts;
  while (c_.ok() && !c_.at_symbol("}") && !c_.at_end()) {
    if (!at_scoped()) {
      stmts.push_back(statement());
      continue;
    }
    if (pending.size() == static_cast<size_t>(Cursor::kMaxChain))
      c_.fail(c_.peek(), "too many definitions in one list");
    pending.push_back(scoped());
    pending.back().before = stmts.size();
  }
  close(mark);
  if (!c_.ok()) return nullptr;
  for (; !pending.empty(); pending.pop_back()) {
    const Pending& p = pending.back();
    const auto first = stmts.begin() + static_cast<std::ptrdiff_t>(p.before);
    Stmt nested = p.nest(p, join({first, stmts.end()}));
    stmts.erase(first, stmts.end());
    stmts.push_back(std::move(nested));
  }
  return join(std::move(stmts));
}

Stmt LoopsParser::braces() {
  c_.expect_symbol("{");
  Stmt s = list();
  c_.expect_symbol("}");
  return s;
}
// Braces that stand alone: around a definition they only bound its scope, otherwise they are a
// nested sequence.
Stmt LoopsParser::read(Of<Seq>) {
  c_.expect_symbol("{");
  Stmt s;
  if (at_scoped()) {
    s = list();
  } else {
    const size_t mark = open();
    auto n = make<Seq>();
    while (c_.ok() && !c_.at_symbol("}") && !c_.at_end()) n->stmts.push_back(statement());
    close(mark);
    s = as_stmt(n);
  }
  c_.expect_symbol("}");
  return s;
}

Stmt LoopsParser::node_here() {
#define TW_STMT(Kind) \
  if (at(Of<Kind>())) return read(Of<Kind>());
#include "ir/loops/nodes.def"
  c_.expected("a statement");
  return nullptr;
}
Stmt LoopsParser::statement() {
  if (!c_.enter()) return nullptr;
  Stmt s = node_here();
  c_.leave();
  return s;
}
Stmt LoopsParser::read(Of<For>) {
  c_.next();
  auto n = make<For>();
  n->var = typed_name("the name of a loop variable");
  c_.expect_word("in");
  const Token zero = c_.peek();
  if (c_.integer("0") != 0) c_.fail(zero, "loops begin at 0");
  c_.expect_symbol("..");
  n->extent = expression();
  if (!c_.at_symbol("{"))
    n->loop_kind = one_of<LoopKind, LoopKind::kDot>("'{' or the kind of a loop");
  const size_t mark = open();
  define(n->var.name(), n->var);
  n->body = braces();
  close(mark);
  return as_stmt(n);
}
Stmt LoopsParser::read(Of<While>) {
  c_.next();
  auto n = make<While>();
  n->condition = condition();
  n->body = braces();
  return as_stmt(n);
}
Stmt LoopsParser::read(Of<If>) {
  c_.next();
  auto n = make<If>();
  n->condition = condition();
  n->then = braces();
  if (c_.accept_word("else")) n->otherwise = braces();
  return as_stmt(n);
}
Stmt LoopsParser::read(Of<Store>) {
  const Token t = c_.peek();
  name("a statement");
  auto n = make<Store>();
  n->buffer = find_buffer(t);
  access(n->indices, n->mask);
  c_.expect_symbol("=");
  n->value = expression();
  if (c_.ok() && n->value.dtype() != n->buffer->dtype)
    c_.fail(t, "store to " + shown(t) + ": expected a value of type " +
                   to_text(ScalarType{n->buffer->dtype}) + ", found " + to_text(n->value.type()));
  // With an index it is a buffer of that name, of the next statement.
  if (!c_.at_symbol("[", 1) && c_.accept_word("streamed")) n->store_kind = StoreKind::kStreamed;
  return as_stmt(n);
}

// acc[first, stride]
TileOperand LoopsParser::tile_operand() {
  const Token t = c_.peek();
  name("the name of a buffer");
  TileOperand x;
  x.buffer = find_buffer(t);
  c_.expect_symbol("[");
  x.index = expression();
  c_.expect_symbol(",");
  x.stride = expression();
  c_.expect_symbol("]");
  return x;
}
Stmt LoopsParser::read(Of<DotTile>) {
  c_.next();
  c_.expect_symbol("(");
  auto n = make<DotTile>();
  n->sum = tile_operand();
  c_.expect_symbol(",");
  n->a = tile_operand();
  c_.expect_symbol(",");
  n->b = tile_operand();
  c_.expect_symbol(",");
  n->rows = c_.integer("the number of rows");
  c_.expect_symbol(",");
  n->columns = c_.integer("the number of columns");
  c_.expect_symbol(",");
  n->groups = c_.integer("the number of groups");
  c_.expect_symbol(")");
  return as_stmt(n);
}

Stmt LoopsParser::read(Of<Prefetch>) {
  c_.next();
  c_.expect_symbol("(");
  auto n = make<Prefetch>();
  const Token t = c_.peek();
  name("the name of a buffer");
  n->buffer = find_buffer(t);
  c_.expect_symbol("[");
  n->offset = expression();
  c_.expect_symbol("]");
  c_.expect_symbol(",");
  n->prefetch_kind = one_of<PrefetchKind, PrefetchKind::kWrite>("'near', 'outer' or 'write'");
  c_.expect_symbol(")");
  return as_stmt(n);
}

// vi: parallel m = i
BlockAxis LoopsParser::axis(Expr& binding) {
  BlockAxis a;
  a.var = typed_name("the name of an axis");
  if (a.var.type() == ScalarType{}) c_.expect_symbol(":");
  a.kind = one_of<AxisKind, AxisKind::kOrdered>("'parallel', 'reduce' or 'ordered'");
  a.extent = expression();
  c_.expect_symbol("=");
  binding = expression();
  return a;
}
Stmt LoopsParser::read(Of<Block>) {
  c_.next();
  auto n = make<Block>();
  const Token t = c_.next();
  if (t.kind != TokenKind::kString)
    c_.fail(t, "expected the name of a block in double quotes, found " + shown(t));
  n->name = t.text;
  c_.expect_symbol("(");
  while (c_.ok() && !c_.at_symbol(")")) {
    if (!n->axes.empty()) c_.expect_symbol(",");
    Expr binding;
    n->axes.push_back(axis(binding));
    n->bindings.push_back(binding);
  }
  c_.expect_symbol(")");
  const size_t mark = open();
  if (c_.ok())
    for (const BlockAxis& a : n->axes) define(a.var.name(), a.var);
  if (c_.accept_word("where")) {
    c_.expect_symbol("(");
    n->predicate = condition();
    c_.expect_symbol(")");
  }
  if (c_.accept_word("init")) {
    n->init = braces();
    c_.expect_word("body");
  }
  n->body = braces();
  close(mark);
  return as_stmt(n);
}

}  // namespace tilewright::ir
