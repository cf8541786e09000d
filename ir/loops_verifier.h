// The rules of the loop IR, one check for each kind of node (verify_loops.h).
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/loops/nodes.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_loops.h"

// Whether a rule holds; it is reported where not. The message is put together only then: written
// out, an expression that is shared can be far longer than it has nodes.
#define TW_REQUIRE(condition, message) ((condition) || broken(message))

namespace tilewright::ir {

// One walk over a kernel. `check` has an overload for each node of nodes.def, so a forgotten one
// does not compile; violations are collected, not thrown.
class LoopsVerifier {
 public:
  // Borrows the kernel; `stage` says which rules hold.
  LoopsVerifier(const Kernel& kernel, Stage stage)
      : kernel_(kernel), flat_(stage >= Stage::kFlat), stage_(stage) {}
  // Once for each verifier.
  Status run();

 private:
  enum class Origin : uint8_t { kScalar, kLoop, kLet, kAxis };
  struct Definition {
    Origin origin;
    int depth;
    bool parallel;
    AxisKind axis;
  };

  void report(std::string text);
  bool broken(std::string text) {
    report(std::move(text));
    return false;
  }
  std::string text(const Expr& e);

  // Expressions.
  void expr(const Expr& e);
  void check(const IntImm& n, const Expr& e);
  void check(const FloatImm& n, const Expr& e);
  void check(const VarNode& n, const Expr& e);
  void check(const Cast& n, const Expr& e);
  void check(const Bitcast& n, const Expr& e);
  void check(const Unary& n, const Expr& e);
  void check(const Binary& n, const Expr& e);
  void check(const Select& n, const Expr& e);
  void check(const Load& n, const Expr& e);
  void check(const Ramp& n, const Expr& e);
  void check(const Broadcast& n, const Expr& e);
  void check(const ReduceLanes& n, const Expr& e);
  void check(const Dot& n, const Expr& e);
  void check(const EveryLane& n, const Expr& e);
  void check(const Interleave& n, const Expr& e);
  void stated(const Expr& e, ScalarType expected) {
    TW_REQUIRE(e.type() == expected, "'" + text(e) + "' states type " + to_text(e.type()) +
                                         ", its operands give " + to_text(expected));
  }
  void scalar_index(const Expr& e, const std::string& what);
  void condition(const Expr& e);
  int access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask);

  // verify_local_accesses.cpp: an access of a local buffer, and of `reach` elements behind it; of a
  // tile's operand; what a let says of its variable.
  void inside(const Buffer& b, const Expr& index, const Expr& reach = 0);
  void inside(const TileOperand& x, int64_t rows, int64_t elements_a_row);

  // Statements.
  void stmt(const Stmt& s);
  void check(const Store& n);
  void check(const DotTile& n);
  void check(const Prefetch& n);
  void check(const Let& n);
  void check(const For& n);
  void check(const While& n);
  void check(const If& n);
  void check(const Seq& n);
  void check(const Allocate& n);
  void check(const Block& n);
  void block_axes(const Block& n);

  void define(const Var& v, Definition d);
  void forget(const Var& v) { visible_.erase(v.get()); }
  void buffer_shape(const Buffer& b);
  void workspace();
  void place(const Allocate& n);
  void apart(const Allocate& n, const Expr& end);
  void of_team(const Buffer& b);

  const Kernel& kernel_;
  bool flat_;
  Stage stage_;
  NameTable names_;
  std::vector<std::string> violations_;
  size_t found_ = 0;
  std::unordered_map<const ExprNode*, Definition> visible_;
  std::unordered_set<const ExprNode*> defined_;
  std::unordered_map<const BufferNode*, int> live_;  // block depth at which a buffer was allocated
  std::unordered_set<const BufferNode*> allocated_;
  std::unordered_set<const ExprNode*> checked_;  // within one statement
  std::vector<std::string> place_;
  int depth_ = 0;                                   // of blocks
  int vectorized_ = 0, parallel_ = 0, shared_ = 0;  // shared_: parallel, of more than one iteration
  struct Placed {
    const BufferNode* buffer;
    Expr begin, end;
    bool of_worker;
  };
  std::vector<Placed> placed_;                        // around the statement
  std::unordered_set<const BufferNode*> of_walkers_;  // allocated outside of parallel loops
  Ranges ranges_;                                     // of loops of constant extents
  bool in_init_ = false, hide_loops_ = true;
};

}  // namespace tilewright::ir
