// Expressions and accesses to memory of flat loops to LLVM IR, at the place where a builder stands.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace llvm {
struct Align;
class Function;
class IRBuilderBase;
class Instruction;
class Type;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

// One function being written: the values its code can name.
struct Frame {
  llvm::Function* function = nullptr;
  llvm::Value* context = nullptr;      // the TwKernelContext at hand
  llvm::Value* worker_base = nullptr;  // this worker's workspace, inside a parallel body
  bool streams = false;                // some of its stores go past the caches
  // Maps a number of lanes to the memory of the largest magnitude bits seen (UnaryOp::kWatched).
  std::map<int, llvm::Value*> watched;
  // By node: variables in scope, and where each buffer that can be named begins.
  std::unordered_map<const ir::ExprNode*, llvm::Value*> vars;
  std::unordered_map<const ir::BufferNode*, llvm::Value*> buffers;
};

// Values are remembered by node until forget(): to be called where another place begins, which
// those computed before do not reach, or where memory may have changed.
class ValueEmitter {
 public:
  // `frame`: of the function in which `b` stands, now and later.
  ValueEmitter(llvm::IRBuilderBase& b, const ir::MachineDescription& machine, Frame& frame)
      : b_(b), machine_(machine), f_(frame) {}

  // An expression's value, an element's address (of `index` elements from the buffer's begin), a
  // store with its mask: emitted where the builder stands.
  llvm::Value* value(const ir::Expr& e);
  llvm::Value* address(const ir::Buffer& x, const ir::Expr& index);
  void store(const ir::Store& s);
  void prefetch(const ir::Prefetch& p);
  void forget() { memo_.clear(); }
  // Emits, before a return, the store to the context that reports an infinity or NaN.
  void note_watched();

  // Where the let binds rows of memory (a load by a ramp of ramps), its columns are read as whole
  // vectors with shuffles, for the EveryLane nodes that take them; false where it binds else.
  bool bind_columns(const ir::Let& l);

 private:
  llvm::Value* make(const ir::Expr& e);
  llvm::Value* watch(const ir::Unary& e);
  llvm::Value* exact_sum(const ir::Binary& e);
  llvm::Value* long_fixed_sum(const ir::Expr& e);
  llvm::Value* make_ramp(const ir::Ramp& r);
  llvm::Value* make_select(const ir::Select& s);
  llvm::Value* guarded(llvm::Value* condition, const ir::Expr& e);
  llvm::Value* load(const ir::Load& l);
  llvm::Value* load_mask(const ir::Load& l);
  llvm::Value* addresses(const ir::Buffer& x, const ir::Expr& index);
  llvm::Value* read_shuffled(const ir::Load& l);
  std::vector<llvm::Value*> columns_of(const ir::Load& l, const ir::Ramp& rows, int n);
  std::vector<llvm::Value*> turned(const ir::Load& l, const ir::Ramp& rows, int n);
  std::vector<llvm::Value*> deinterleaved(const ir::Load& l, const ir::Ramp& rows, int n);
  llvm::Value* every_lane(const ir::EveryLane& e);
  llvm::Value* interleaved(const ir::Interleave& e);
  bool store_interleaved(const ir::Store& s);
  const ir::Expr& keep(ir::Expr e);
  void prefetch(const ir::Load& l, int lanes, llvm::Value* p);
  void prefetch_line(llvm::Value* line, ir::PrefetchKind kind);
  void store_if(llvm::Value* condition, const ir::Store& s, llvm::Value* value);
  bool can_stream(const ir::Store& s, ir::ScalarType t) const;
  void mark_streamed(llvm::Instruction* store);
  int register_bytes(ir::ScalarType t) const;

  static llvm::Align alignment(const ir::Buffer& x);
  llvm::Type* type_of(ir::ScalarType t, bool in_memory = false);
  llvm::Value* splat(llvm::Value* v, int lanes);
  llvm::Value* repeat(llvm::Value* v, int lanes);
  llvm::Value* fit(llvm::Value* guard, int lanes);
  llvm::Value* place(const ir::Buffer& x, llvm::Value* index);
  llvm::Value* to_memory(llvm::Value* v, ir::ScalarType t);
  llvm::Value* from_memory(llvm::Value* v, ir::ScalarType t);
  llvm::Value* place_of_sum(const ir::Buffer& x, const ir::Expr& index);
  llvm::Value* contiguous_place(const ir::Buffer& x, const ir::Expr& index);

  llvm::IRBuilderBase& b_;
  const ir::MachineDescription& machine_;
  Frame& f_;
  std::unordered_map<const ir::ExprNode*, llvm::Value*> memo_;
  std::unordered_map<const ir::ExprNode*, std::vector<llvm::Value*>> columns_;  // of bound rows
  std::deque<ir::Expr> made_;               // kept alive for memo_
  const ir::BufferNode* stored_ = nullptr;  // by the statement at hand
  llvm::Value* guard_ = nullptr;            // loads are real only where it is true
};

}  // namespace tilewright::cpu
