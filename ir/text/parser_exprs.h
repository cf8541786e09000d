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
  std::map<std::string, Var> vars;
  std::map<std::string, Buffer> buffers;
  bool create_symbols = false;
};

class ExprParser {
 public:
  ExprParser(Cursor& cursor, Names& names) : c_(cursor), names_(names) {}

  Expr expression() { return binary_expr(1); }
  std::string name(
      std::string_view what);  // a word that is not reserved, or a name in single quotes
  ScalarType scalar_type();    // f32, i64x8
  DType dtype();
  bool at_type(size_t ahead = 0) const;
  std::vector<Expr> extents();  // [m, 784]
  Layout layout(size_t rank);   // layout(d0/16, d1, d0%16), or nothing
  Buffer buffer(Scope scope);   // name: f32[m, 784] layout(...); defines the name

  // A scope: what is defined until `close` is forgotten there.
  size_t open() const { return undo_.size(); }
  void close(size_t mark);
  void define(const std::string& name, const Var& var);
  void define(const std::string& name, const Buffer& buffer);

 protected:
  Expr binary_expr(int least);
  Expr unary_expr();
  Expr primary();
  Expr number(bool negative);
  Expr call();
  Expr variable(const Token& t);
  Expr combine(const Token& at, BinaryOp op, Expr a, Expr b);
  Expr unary_of(const Token& at, UnaryOp op, Expr value);
  Expr select_of(const Token& at, Expr condition, Expr a, Expr b);
  Expr lanes_of(const Token& at, bool ramp);
  Expr reduce_of(const Token& at);
  Expr every_of(const Token& at);
  Expr interleave_of(const Token& at);
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
