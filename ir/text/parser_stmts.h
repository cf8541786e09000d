// Parsing of statements and kernels; the parser of programs builds on it.
#pragma once

#include "ir/text/parser_exprs.h"

namespace tilewright::ir {

// Statements over the expressions; programs embed kernels in their text (parser_program.h).
class LoopsParser : public ExprParser {
 public:
  using ExprParser::ExprParser;
  // From the word `kernel` to its closing brace.
  Kernel kernel();
  Stmt list();  // statements up to '}' or the end
  // "x: f32": a new variable, not yet in scope.
  Var typed_name(std::string_view what);

 private:
  // `let` and allocations hold for the rest of the list; they are read one after the other and
  // nested afterwards.
  struct Pending {
    Stmt (*nest)(const Pending&, Stmt body);
    Var var;
    Expr value;
    Buffer buffer;
    Expr offset;
    size_t before;
  };

  Stmt braces();
  Stmt statement();
  Stmt node_here();
  // For each statement of nodes.def, as for expressions; `statement` asks for all of them.
  bool at(Of<Store>) const { return c_.at_symbol("[", 1); }
  bool at(Of<Let>) const { return c_.at_word("let"); }
  bool at(Of<For>) const { return c_.at_word("for"); }
  bool at(Of<While>) const { return c_.at_word("while"); }
  bool at(Of<If>) const { return c_.at_word("if"); }
  bool at(Of<Seq>) const { return c_.at_symbol("{"); }
  bool at(Of<Allocate>) const {
    return c_.at_word("local") || c_.at_word("workspace") || c_.at_word("param");
  }
  bool at(Of<Block>) const { return c_.at_word("block"); }
  bool at(Of<DotTile>) const { return c_.at_word("dot_tile") && c_.at_symbol("(", 1); }
  bool at(Of<Prefetch>) const { return c_.at_word("prefetch") && c_.at_symbol("(", 1); }
  Stmt read(Of<Store>);
  Stmt read(Of<Let>) { return list(); }  // with the statements behind it
  Stmt read(Of<For>);
  Stmt read(Of<While>);
  Stmt read(Of<If>);
  Stmt read(Of<Seq>);
  Stmt read(Of<Allocate>) { return list(); }
  Stmt read(Of<Block>);
  Stmt read(Of<DotTile>);
  Stmt read(Of<Prefetch>);

  bool at_scoped() const { return at(Of<Let>()) || at(Of<Allocate>()); }
  Pending scoped();
  BlockAxis axis(Expr& binding);
  TileOperand tile_operand();
  Expr condition();
  Expr bytes();
  template <typename E, E kLast>
  E one_of(std::string_view what);
};

}  // namespace tilewright::ir
