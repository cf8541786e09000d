// The statements of the loop IR, and kernels.
#pragma once

#include "ir/loops/handles.h"

namespace tilewright::ir {

struct Store : StmtNode {  // indices and mask as in Load
  static constexpr NodeKind kKind = NodeKind::kStore;
  // `value` has the buffer's type and as many lanes as the index; lanes off in `mask` are not
  // written.
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value, mask;
  StoreKind store_kind = StoreKind::kCached;
  template <typename F>
  void fields(F&& f) {
    f("buffer", buffer);
    f("indices", indices);
    f("value", value);
    f("mask", mask);
    f("store_kind", store_kind);
  }
};
// One operand of a DotTile: its rows begin at `index` and go up by `stride`, in elements of
// storage.
struct TileOperand {
  Buffer buffer;  // its rows need not be contiguous: a tile of a larger matrix
  Expr index, stride;
};
// sum[r, c] += a[r, g * t] * b[g, c * t] + ... + a[r, g * t + t - 1] * b[g, c * t + t - 1] for each
// row r, column c and group g of t = dot_terms terms; x[r, e] is what lies e elements behind row r
// of x. Types and arithmetic are those of Dot, with the roundings of the instruction. What matrix
// units compute at once (flat loops only). The sums overlap neither operand nor each other.
struct DotTile : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kDotTile;
  // What the architectures' tile registers hold: 16 rows of 64 bytes (AMX).
  static constexpr int64_t kMostRows = 16, kMostColumns = 16, kMostGroups = 16;
  // GEMM's C, A and B; B packed so that the terms of a sum lie side by side (VNNI layout).
  TileOperand sum, a, b;
  int64_t rows = 1, columns = 1, groups = 1;
  template <typename F>
  void fields(F&& f) {
    for (TileOperand* x : {&sum, &a, &b}) {
      f("buffer", x->buffer);
      f("index", x->index);
      f("stride", x->stride);
    }
    f("rows", rows);
    f("columns", columns);
    f("groups", groups);
  }
};
// A hint: the line of memory that holds an element of a parameter or workspace is brought near. `offset`: in elements
// of storage, at every stage; where nothing lies there, nothing happens.
struct Prefetch : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kPrefetch;
  Buffer buffer;
  Expr offset;  // a scalar i64
  PrefetchKind prefetch_kind = PrefetchKind::kNear;
  template <typename F>
  void fields(F&& f) {
    f("buffer", buffer);
    f("offset", offset);
    f("prefetch_kind", prefetch_kind);
  }
};
// `var` is `value` throughout `body`; evaluated once, before.
struct Let : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kLet;
  // The variable's type is the value's, vectors included.
  Var var;
  Expr value;
  Stmt body;
  template <typename F>
  void fields(F&& f) {
    f("var", var);
    f("value", value);
    f("body", body);
  }
};
struct For : StmtNode {  // var runs over [0, extent); extent <= 0: no iteration
  static constexpr NodeKind kKind = NodeKind::kFor;
  // An i64, in scope in the body alone; the loop's kind is a promise that passes checked.
  Var var;
  Expr extent;
  LoopKind loop_kind = LoopKind::kSerial;
  Stmt body;
  template <typename F>
  void fields(F&& f) {
    f("var", var);
    f("extent", extent);
    f("loop_kind", loop_kind);
    f("body", body);
  }
};
struct While : StmtNode {  // only in operators that are no index expression
  static constexpr NodeKind kKind = NodeKind::kWhile;
  // Evaluated before each iteration, over memory that the body changes.
  Expr condition;
  Stmt body;
  template <typename F>
  void fields(F&& f) {
    f("condition", condition);
    f("body", body);
  }
};
struct If : StmtNode {  // otherwise may be null
  static constexpr NodeKind kKind = NodeKind::kIf;
  // A scalar bool; see Select for choices lane by lane.
  Expr condition;
  Stmt then, otherwise;
  template <typename F>
  void fields(F&& f) {
    f("condition", condition);
    f("then", then);
    f("otherwise", otherwise);
  }
};
// Statements in their order.
struct Seq : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kSeq;
  // Flat: no Seq directly inside a Seq.
  std::vector<Stmt> stmts;
  template <typename F>
  void fields(F&& f) {
    f("stmts", stmts);
  }
};
// Contents are undefined at first. `offset` (planned loops only, of workspace buffers; else null):
// the buffer's place, in bytes from the start of the worker's workspace inside a parallel loop,
// elsewhere of the call's.
struct Allocate : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kAllocate;
  // In scope in the body alone; its extents are known there.
  Buffer buffer;
  Expr offset;
  Stmt body;
  template <typename F>
  void fields(F&& f) {
    f("buffer", buffer);
    f("offset", offset);
    f("body", body);
  }
};

// An iteration axis of a block, as the axes of TVM's TensorIR blocks (Feng et al., 2023).
struct BlockAxis {
  // Over [0, extent); only blocks' contents name it.
  Var var;
  Expr extent;
  AxisKind kind = AxisKind::kParallel;
};
// The unit that schedules move: a statement over its own axes. bindings[n] is the value of
// axes[n].var in terms of the loops around; instances whose predicate (may be null: always) is
// false do not run. Inside, only the axes, outer blocks' axes and kernel scalars are named, never
// loop variables. A reduction block has an init that runs once for each point of the parallel axes,
// before all reduce steps, and a body `C[p] = combine(C[p], value)`.
struct Block : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kBlock;
  // Schedules name blocks by it; primitives keep names apart within a kernel.
  std::string name;
  std::vector<BlockAxis> axes;
  std::vector<Expr> bindings;
  Expr predicate;
  Stmt init;
  Stmt body;
  template <typename F>
  void fields(F&& f) {
    f("name", name);
    f("axes", axes);
    f("bindings", bindings);
    f("predicate", predicate);
    f("init", init);
    f("body", body);
  }
};

// Bytes that a kernel asks for, over its scalars: once for each call, and once for each worker.
struct Workspace {
  // Scalar i64, multiples of kWorkspaceAlignment.
  Expr call = 0, worker = 0;
};

// A kernel: what one launch computes. params: inputs and outputs in the order they are passed;
// scalars: symbols that extents use.
struct Kernel {
  // The function's symbol; unique within a program.
  std::string name;
  std::vector<Buffer> params;
  std::vector<Var> scalars;
  Stmt body;
  // Each operation is rounded by itself, but for `c[i] = c[i] + a * b`, whose product is not where
  // the target has FMA; of two zeros the extremum is that of IEEE 754-2019. Else a product and the
  // sum that takes it may be rounded at once, and the extremum of two zeros is either.
  bool exact = false;
  // Each worker walks through the body and shares each parallel loop, a phase, with the others: none
  // goes past it before it is done. Phases of one iteration are all the first worker's.
  bool team = false;
  Workspace workspace;  // planned loops only
};

}  // namespace tilewright::ir
