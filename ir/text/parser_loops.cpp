#include "ir/text/parser_loops.h"

#include "ir/text/parser_stmts.h"

namespace tilewright::ir {

// Scalars come behind the parameters in the text, but the shapes of parameters use them: they are
// read first.
Kernel LoopsParser::kernel() {
  Kernel k;
  c_.expect_word("kernel");
  k.name = name("the name of a kernel");
  const size_t params = c_.position();
  int nesting = 0;
  while (c_.ok() && !c_.at_end()) {
    nesting += c_.at_symbol("(") - c_.at_symbol(")");
    c_.next();
    if (nesting <= 0) break;
  }
  if (c_.accept_word("scalars")) {
    c_.expect_symbol("(");
    while (c_.ok() && !c_.at_symbol(")")) {
      if (!k.scalars.empty()) c_.expect_symbol(",");
      k.scalars.push_back(typed_name("the name of a scalar"));
      define(k.scalars.back().name(), k.scalars.back());
    }
    c_.expect_symbol(")");
  }
  k.exact = c_.accept_word("exact");
  k.team = c_.accept_word("team");
  if (c_.accept_word("call_workspace")) k.workspace.call = bytes();
  if (c_.accept_word("worker_workspace")) k.workspace.worker = bytes();
  const size_t body = c_.position();
  c_.go_to(params);
  c_.expect_symbol("(");
  while (c_.ok() && !c_.at_symbol(")")) {
    if (!k.params.empty()) c_.expect_symbol(",");
    k.params.push_back(buffer(Scope::kParam));
  }
  c_.expect_symbol(")");
  c_.go_to(body);
  k.body = braces();
  return k;
}

namespace {

template <typename T, typename F>
Result<T> parse(std::string_view text, Names& names, F&& production) {
  TW_ASSIGN(std::vector<Token> tokens, lex(text));
  Cursor cursor(std::move(tokens));
  LoopsParser parser(cursor, names);
  const size_t mark = parser.open();
  T result = production(parser);
  parser.close(mark);
  if (cursor.ok() && !cursor.at_end()) cursor.expected("the end");
  if (!cursor.ok()) return cursor.error();
  return result;
}

}  // namespace

Result<Kernel> parse_kernel(std::string_view text) {
  Names names;
  return parse<Kernel>(text, names, [](LoopsParser& p) { return p.kernel(); });
}
Result<Expr> parse_expr(std::string_view text, Names& names) {
  return parse<Expr>(text, names, [](LoopsParser& p) { return p.expression(); });
}

}  // namespace tilewright::ir
