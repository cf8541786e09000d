// From a kernel to the register program of machine.h.
//
// Registers: every statement takes its registers from a stack and gives them back at its end;
// constants lie behind all others and are numbered from kConstants until the height of the stack is
// known. Vectors under a Select run under a mask, so that a side not chosen touches no memory;
// scalar Selects jump.
#pragma once

#include <map>
#include <unordered_map>

#include "ir/interpreter/machine.h"
#include "runtime/core/result.h"

namespace tilewright::ir::interpreter {

// First number of a constant's register while code is generated; see above.
inline constexpr uint32_t kConstants = uint32_t{1} << 30;

// Compiles one kernel, once: compile(), then take().
class Compiler {
 public:
  // Errors (kInternal): an operation that has no meaning for its type, a name that is not defined.
  explicit Compiler(const Kernel& kernel) : flat_(is_flat(kernel)) {}
  Status compile(const Kernel& kernel);
  MachineCode take() { return std::move(program_); }
  // Registers that the code needs beside those of constants.
  uint32_t height() const { return height_; }

 private:
  void fail(std::string message) {
    if (!error_) error_ = internal_error(std::move(message));
  }
  uint32_t reserve(int n) {
    const uint32_t reg = top_;
    top_ += static_cast<uint32_t>(n);
    height_ = std::max(height_, top_);
    return reg;
  }
  size_t emit(Handler h, uint32_t dst, uint32_t a = kNoReg, uint32_t b = kNoReg,
              uint32_t c = kNoReg, int n = 1) {
    program_.code.push_back({h, dst, a, b, c, n});
    return program_.code.size() - 1;
  }
  void land(size_t jump) { program_.code[jump].c = static_cast<uint32_t>(program_.code.size()); }
  uint32_t constant(Slot value);

  // Expressions: the register of the value, computed here unless an enclosing or earlier part of
  // the statement has it.
  uint32_t expr(const Expr& e);
  uint32_t expr(const Expr& e, int lanes);  // broadcast to that many lanes
  uint32_t compile(const IntImm& n, ScalarType t);
  uint32_t compile(const FloatImm& n, ScalarType t);
  uint32_t compile(const VarNode& n, ScalarType t);
  uint32_t compile(const Cast& n, ScalarType t);
  uint32_t compile(const Bitcast& n, ScalarType t);
  uint32_t compile(const Unary& n, ScalarType t);
  uint32_t compile(const Binary& n, ScalarType t);
  uint32_t compile(const Select& n, ScalarType t);
  uint32_t compile(const Load& n, ScalarType t);
  uint32_t compile(const Ramp& n, ScalarType t);
  uint32_t compile(const Broadcast& n, ScalarType t);
  uint32_t compile(const ReduceLanes& n, ScalarType t);
  uint32_t compile(const Dot& n, ScalarType t);
  uint32_t compile(const EveryLane& n, ScalarType t);
  uint32_t compile(const Interleave& n, ScalarType t);
  uint32_t binary_of(BinaryOp op, DType t, uint32_t a, uint32_t b, int lanes);
  uint32_t access(const Buffer& buffer, const std::vector<Expr>& indices, int lanes);
  uint32_t mask_for(int lanes);
  uint32_t masked(const Expr& own, int lanes);
  size_t memo_mark() const { return memo_log_.size(); }
  void memo_forget(size_t mark);

  void stmt(const Stmt& s);
  void compile(const Store& n);
  void compile(const DotTile& n);
  void compile(const Prefetch&) {}  // a hint
  void compile(const Let& n);
  void compile(const For& n);
  void compile(const While& n);
  void compile(const If& n);
  void compile(const Seq& n);
  void compile(const Allocate& n);
  void compile(const Block& n);
  void bring_up(const Buffer& buffer, bool param, const Expr& offset = nullptr);
  void relocate();

  bool flat_;
  int parallel_ = 0;  // loops around
  MachineCode program_;
  std::optional<Error> error_;
  uint32_t top_ = 0, height_ = 0;
  std::unordered_map<const ExprNode*, uint32_t> vars_;
  std::unordered_map<const BufferNode*, uint32_t> buffers_;
  std::vector<std::pair<std::string, uint32_t>> scope_;
  std::map<uint64_t, uint32_t> constants_;
  std::unordered_map<const ExprNode*, uint32_t> memo_;
  std::vector<const ExprNode*> memo_log_;
  std::vector<Stmt> expanded_;  // keeps alive the nodes whose addresses tables hold
  uint32_t mask_ = kNoReg;      // lanes that are on, where a vector Select is around
  int mask_lanes_ = 0;
};

}  // namespace tilewright::ir::interpreter
