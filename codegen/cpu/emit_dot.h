// Dot products to LLVM IR: of vectors (Dot), and of matrices in tile registers (DotTile).
#pragma once

#include <functional>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace llvm {
class BasicBlock;
class IRBuilderBase;
class PHINode;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

// sum: <n x i32>, a: <4n x i8> unsigned, b: <4n x i8> signed. One instruction per register where
// the machine has one (VNNI); elsewhere products of 16-bit pairs, which are exact as well.
llvm::Value* emit_dot(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
                      llvm::Value* sum, llvm::Value* a, llvm::Value* b_operand);

// Has the machine instructions for the tile (AMX)? Elsewhere it runs as loops of Dots.
bool has_matrix_unit(const ir::MachineDescription& machine, const ir::DotTile& tile);

// DotTiles in instructions of the matrix unit. The sums of a loop that holds nothing else stay in
// tile registers from its beginning to its end; operands are read once by statements that follow
// each other.
class MatrixUnit {
 public:
  // address: of an element of a buffer; value: of an expression, both at the place of `b`. Values
  // may be remembered by node: both are given nodes of the kernel alone.
  MatrixUnit(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
             std::function<llvm::Value*(const ir::Buffer&, const ir::Expr&)> address,
             std::function<llvm::Value*(const ir::Expr&)> value)
      : b_(b), machine_(machine), address_(std::move(address)), value_(std::move(value)) {}

  // One TDPBUSD or TDPBF16PS, with loads of its operands and its sum where they are not in
  // registers yet.
  void emit(const ir::DotTile& tile);
  // To be called where other statements stand between.
  void forget_operands() { operands_.clear(); }

  // Do the first two statements below the allocation of `sums` set all of it to zero and add to all
  // of it in tiles? The next loop then begins with empty tiles, and the first statement is not
  // needed.
  bool starts_from_zero(const ir::Buffer& sums, const std::vector<ir::Stmt>& stmts);
  // Before a loop: reads its sums when they can stay in registers, and says whether.
  bool hold_sums(const ir::For& loop);
  // After that loop.
  void store_sums();
  // At the head of any loop, behind its other phis, and at its end. `skip` (may be null): the block
  // from which `exit` is reached past the loop.
  void enter_loop(llvm::BasicBlock* before);
  void leave_loop(llvm::BasicBlock* latch, llvm::BasicBlock* exit, llvm::BasicBlock* skip);

 private:
  struct Held {
    ir::DotTile tile;
    llvm::Value* sum = nullptr;
    std::vector<llvm::PHINode*> phis;  // of the loops around, outermost first
  };
  struct Operand {
    ir::TileOperand from;
    llvm::Value* tile;
  };
  std::vector<Held> sums_of(const ir::For& loop) const;  // empty when they cannot be held
  bool collect(const ir::Stmt& s, std::vector<ir::Var>& inside, std::vector<Held>& found) const;
  llvm::Value* stride_in_bytes(const ir::TileOperand& x);
  llvm::Value* load(const ir::TileOperand& from, int64_t rows, int64_t columns);
  llvm::Value* operand(const ir::TileOperand& from, int64_t rows, int64_t columns);
  void store(const ir::DotTile& tile, llvm::Value* sum);
  Held* held(const ir::DotTile& tile);

  llvm::IRBuilderBase& b_;
  const ir::MachineDescription& machine_;
  std::function<llvm::Value*(const ir::Buffer&, const ir::Expr&)> address_;
  std::function<llvm::Value*(const ir::Expr&)> value_;
  std::vector<Held> held_;
  bool from_zero_ = false;  // the sums of the next loop
  std::vector<Operand> operands_;
};

}  // namespace tilewright::cpu
