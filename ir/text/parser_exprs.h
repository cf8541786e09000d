// Parsing of expressions, types and buffers; the parsers of kernels and graphs build on it.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/text/cursor.h"

namespace tilewright::ir {

// Names that a text may use. With create_symbols an unknown variable becomes a new int64 symbol,
// kept here.
struct Names {
  // By name as written; a name is a variable's or a buffer's.
  std::map<std::string, Var> vars;
  std::map<std::string, Buffer> buffers;
  bool create_symbols = false;
};

// Names the struct of a node among overloads.
template <typename Node>
struct Of {};

// A recursive-descent parser with precedence climbing for infix operators (precedence.h).
class ExprParser {
 public:
  // Borrows both. Errors stay in the cursor; after one, null expressions are returned.
  ExprParser(Cursor& cursor, Names& names) : c_(cursor), names_(names) {}

  // As far as it goes; what follows is left to the caller.
  Expr expression() { return binary_expr(1); }
  std::string name(
      std::string_view what);  // a word that is not reserved, or a name in single quotes
  ScalarType scalar_type();    // f32, i64x8
  // A type without lanes; at_type: does one stand there?
  DType dtype();
  bool at_type(size_t ahead = 0) const;
  std::vector<Expr> extents();  // [m, 784]
  Layout layout(size_t rank);   // layout(d0/16, d1, d0%16), or nothing
  Buffer buffer(Scope scope);   // name: f32[m, 784] layout(...); defines the name

  // A scope: what is defined until `close` is forgotten there.
  size_t open() const { return undo_.size(); }
  void close(size_t mark);
  // Shadows what has the name until the scope closes.
  void define(const std::string& name, const Var& var);
  void define(const std::string& name, const Buffer& buffer);

 protected:
  Expr binary_expr(int least);
  Expr unary_expr();
  Expr primary();
  // For each expression of nodes.def: whether the text goes on with one, as it is written by the
  // printer, and reading it. `primary` asks for all of them, so a node without its two overloads
  // does not compile. -x and infix operators are read by unary_expr and binary_expr.
  bool at(Of<IntImm>) const;
  bool at(Of<FloatImm>) const;
  bool at(Of<VarNode>) const { return at_name() && !c_.at_symbol("[", 1); }
  bool at(Of<Cast>) const;
  bool at(Of<Bitcast>) const { return at_call("bitcast"); }
  bool at(Of<Unary>) const;
  bool at(Of<Binary>) const;
  bool at(Of<Select>) const { return at_call("select"); }
  bool at(Of<Load>) const { return at_name() && c_.at_symbol("[", 1); }
  bool at(Of<Ramp>) const { return at_call("ramp"); }
  bool at(Of<Broadcast>) const { return at_call("broadcast"); }
  bool at(Of<ReduceLanes>) const { return at_call("reduce_lanes"); }
  bool at(Of<Dot>) const { return at_call("dot"); }
  bool at(Of<EveryLane>) const { return at_call("every"); }
  bool at(Of<Interleave>) const { return at_call("interleave"); }
  Expr read(Of<IntImm>);
  Expr read(Of<FloatImm>) { return number(false); }
  Expr read(Of<VarNode>) { return variable(c_.next()); }
  Expr read(Of<Cast>);
  Expr read(Of<Bitcast>);
  Expr read(Of<Unary>);
  Expr read(Of<Binary>);
  Expr read(Of<Select>);
  Expr read(Of<Load>);
  Expr read(Of<Ramp>);
  Expr read(Of<Broadcast>);
  Expr read(Of<ReduceLanes>);
  Expr read(Of<Dot>);
  Expr read(Of<EveryLane>);
  Expr read(Of<Interleave>);

  bool at_name() const;  // of a variable or buffer
  bool at_call() const { return c_.peek().kind == TokenKind::kWord && c_.at_symbol("(", 1); }
  bool at_call(std::string_view function) const { return at_call() && c_.at_word(function); }
  // The name of a function and its parenthesis; its arguments; the closing parenthesis.
  Token begin_call();
  Expr argument(bool first = false);
  Expr end_call(Expr result);

  Expr number(bool negative);
  Expr variable(const Token& t);
  Expr combine(const Token& at, BinaryOp op, Expr a, Expr b);
  Expr unary_of(UnaryOp op, Expr value);
  // [i, j where mask] of a buffer already named; false after an error.
  bool access(std::vector<Expr>& indices, Expr& mask);
  Buffer find_buffer(const Token& t);
  int lanes();

  Cursor& c_;
  Names& names_;

 private:
  struct Undo {
    std::string name;
    Var var;
    Buffer buffer;
    bool is_buffer;
  };
  std::vector<Undo> undo_;
};

}  // namespace tilewright::ir
