// The loop IR: expressions, statements, buffers and kernels. Nodes are immutable and shared; each
// lists its fields once
// (`fields`), and everything generic over nodes is written over that list. The same expressions are
// the dimensions of tensor types and the bodies of operators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/dtype.h"

namespace tilewright::ir {

enum class NodeKind : uint8_t {
#define TW_EXPR(Kind) k##Kind,
#define TW_STMT(Kind) k##Kind,
#include "ir/loops/nodes.def"
};

// Type of an expression: element type and number of vector lanes (1: a scalar).
struct ScalarType {
  DType dtype = DType::kInt64;
  int lanes = 1;
  bool operator==(const ScalarType&) const = default;
};

struct ExprNode {
  NodeKind kind;
  ScalarType type;
  virtual ~ExprNode() = default;
};
struct StmtNode {
  NodeKind kind;
  virtual ~StmtNode() = default;
};

// A shared, immutable handle; null when default-made. Identity (same pointer) means "the same
// node".
template <typename Base>
class Handle {
 public:
  Handle() = default;
  Handle(std::nullptr_t) {}
  template <typename T>
    requires std::is_base_of_v<Base, T>
  Handle(std::shared_ptr<const T> node) : node_(std::move(node)) {}
  const Base* get() const { return node_.get(); }
  const Base* operator->() const {
    TW_CHECK(node_.get());
    return node_.get();
  }
  explicit operator bool() const { return node_.get() != nullptr; }
  bool same_as(const Handle& other) const { return node_.get() == other.node_.get(); }
  NodeKind kind() const {
    TW_CHECK(node_.get());
    return node_->kind;
  }
  // The node as a T, or null when it is of another kind.
  template <typename T>
  const T* as() const {
    return node_.get() && node_->kind == T::kKind ? static_cast<const T*>(node_.get()) : nullptr;
  }

 private:
  std::shared_ptr<const Base> node_;
};

class Expr : public Handle<ExprNode> {
 public:
  using Handle::Handle;
  Expr(int64_t value);  // an int64 immediate
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}
  ScalarType type() const { return get()->type; }
  DType dtype() const { return get()->type.dtype; }
  int lanes() const { return get()->type.lanes; }
};
using Stmt = Handle<StmtNode>;

// A variable is its node: two variables of one name are different. Scalar (int64 unless said
// otherwise).
struct VarNode;
class Var : public Expr {
 public:
  Var() = default;
  explicit Var(std::string name, ScalarType type = {});
  explicit Var(Expr e) : Expr(std::move(e)) { TW_CHECK(!get() || kind() == NodeKind::kVar); }
  const std::string& name() const;
};

// One physical axis of a layout: (index[dim] / divisor) % modulus; modulus 0 means no remainder is
// taken.
struct LayoutAxis {
  int dim = 0;
  int64_t divisor = 1;
  int64_t modulus = 0;
  bool operator==(const LayoutAxis&) const = default;
};
// How a logical tensor lies in memory: physical axes, outermost first; empty means row-major.
// Blocked axes pad: an extent that the block does not divide is rounded up.
using Layout = std::vector<LayoutAxis>;
Layout permuted_layout(const std::vector<int>& order);

enum class Scope : uint8_t {
  kParam,      // passed to the kernel
  kWorkspace,  // lives for the call, or for one iteration of the parallel loop around its Allocate
  kLocal,      // small, constant size; meant for registers or the stack
};

struct BufferNode {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Expr> shape;  // logical extents
  Layout layout;
  Scope scope = Scope::kParam;
  int rank() const { return static_cast<int>(shape.size()); }
};
using Buffer = std::shared_ptr<const BufferNode>;
Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape,
                   Scope scope = Scope::kParam, Layout layout = {});

enum class UnaryOp : uint8_t {
  kNeg,
  kNot /* bool: logical, integers: bitwise */,
  kAbs,
  kSqrt,
  kExp,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kFloor,
  kCeil,
  kRoundEven,
  kTrunc,
  kIsNan,
  kIsInf,
};
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,       // floats: IEEE; integers: towards zero
  kFloorDiv,  // integers: towards minus infinity
  kFloorMod,  // integers: sign of the divisor; floats: a - floor(a / b) * b
  kTruncMod,  // sign of the dividend (C's % and fmod)
  kPow,
  kMin,
  kMax,  // floats: NaN when either is
  kAnd,
  kOr,
  kXor,  // bool: logical, integers: bitwise
  kShl,
  kShr,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,  // result: bool
};
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,
  kVectorized,
  kUnrolled,
  kDot,  // the terms of one Dot, or the rows of one DotTile, where the body has that form
};
enum class AxisKind : uint8_t { kParallel, kReduce, kOrdered };
enum class StoreKind : uint8_t {
  kCached,
  kStreamed,  // past the caches where the target can: nothing reads the value soon
};

std::string_view name(UnaryOp op);   // "sqrt"
std::string_view name(BinaryOp op);  // "+", "floordiv", "min"
std::string_view name(LoopKind kind);
std::string_view name(AxisKind kind);
std::string_view name(Scope scope);

// --- expressions
// -----------------------------------------------------------------------------------------------------

struct IntImm : ExprNode {  // any integer type or bool
  static constexpr NodeKind kKind = NodeKind::kIntImm;
  int64_t value = 0;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct FloatImm : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kFloatImm;
  double value = 0;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct VarNode : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kVar;
  std::string name;
  template <typename F>
  void fields(F&& f) {
    f("name", name);
  }
};
// Conversion as in C++, but float to integer saturates at the ends of the type and NaN becomes 0;
// to bool: x != 0.
struct Cast : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kCast;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct Bitcast : ExprNode {  // same number of bits
  static constexpr NodeKind kKind = NodeKind::kBitcast;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct Unary : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kUnary;
  UnaryOp op = UnaryOp::kNeg;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("op", op);
    f("value", value);
  }
};
struct Binary : ExprNode {  // a and b are of one type
  static constexpr NodeKind kKind = NodeKind::kBinary;
  BinaryOp op = BinaryOp::kAdd;
  Expr a, b;
  template <typename F>
  void fields(F&& f) {
    f("op", op);
    f("a", a);
    f("b", b);
  }
};
// condition ? a : b. Only the chosen side is evaluated where memory is concerned: a Load in the
// other side never faults.
struct Select : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kSelect;
  Expr condition, a, b;
  template <typename F>
  void fields(F&& f) {
    f("condition", condition);
    f("a", a);
    f("b", b);
  }
};
// One index per dimension, or (flat loops) one index into the storage, in elements. `mask` (flat
// loops only, may be null): lanes that are off are not read and give 0; `true`: may be read even
// where a Select around does not choose it. `ahead`, where not 0: the elements that lie so many
// further on in storage, if there are any, are brought near; a hint, which changes no value.
struct Load : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kLoad;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr mask;
  int64_t ahead = 0;
  template <typename F>
  void fields(F&& f) {
    f("buffer", buffer);
    f("indices", indices);
    f("mask", mask);
    f("ahead", ahead);
  }
};
struct Ramp : ExprNode {  // base, base + stride, ... (lanes of them)
  static constexpr NodeKind kKind = NodeKind::kRamp;
  Expr base, stride;
  template <typename F>
  void fields(F&& f) {
    f("base", base);
    f("stride", stride);
  }
};
struct Broadcast : ExprNode {  // a scalar in all lanes, or a short vector over and over
  static constexpr NodeKind kKind = NodeKind::kBroadcast;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
// All lanes of a vector combined by op (a tree of halves: fixed order); result is a scalar.
struct ReduceLanes : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kReduceLanes;
  BinaryOp op = BinaryOp::kAdd;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("op", op);
    f("value", value);
  }
};

// sum[i] + a[ti] * b[ti] + ... + a[ti + t - 1] * b[ti + t - 1]: a and b have t = dot_terms times as
// many lanes as sum. What dot product instructions compute: four terms of u8 by i8 or two of i16 by
// i16 in i32, modulo 2^32; two of bf16 by bf16 in f32, with the roundings of the instruction.
struct Dot : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kDot;
  Expr sum, a, b;
  template <typename F>
  void fields(F&& f) {
    f("sum", sum);
    f("a", a);
    f("b", b);
  }
};
// Terms of one sum by the type of a; 0: no dot product takes it.
constexpr int dot_terms(DType a) {
  return a == DType::kUInt8 ? 4 : a == DType::kInt16 || a == DType::kBFloat16 ? 2 : 0;
}
// The type of b that goes with a, and that of the sum.
constexpr DType dot_partner(DType a) { return a == DType::kUInt8 ? DType::kInt8 : a; }
constexpr DType dot_sum(DType a) { return a == DType::kBFloat16 ? DType::kFloat32 : DType::kInt32; }

// --- statements
// ------------------------------------------------------------------------------------------------------

struct Store : StmtNode {  // indices and mask as in Load
  static constexpr NodeKind kKind = NodeKind::kStore;
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
  Buffer buffer;
  Expr index, stride;
};
// sum[r, c] += a[r, g * t] * b[g, c * t] + ... + a[r, g * t + t - 1] * b[g, c * t + t - 1] for each
// row r, column c and group g of t = dot_terms terms; x[r, e] is what lies e elements behind row r
// of x. Types and arithmetic are those of Dot, with the roundings of the instruction. What matrix
// units compute at once (flat loops only). The sums overlap neither operand nor each other.
struct DotTile : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kDotTile;
  static constexpr int64_t kMostRows = 16, kMostColumns = 16, kMostGroups = 16;
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
struct Let : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kLet;
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
  Expr condition;
  Stmt then, otherwise;
  template <typename F>
  void fields(F&& f) {
    f("condition", condition);
    f("then", then);
    f("otherwise", otherwise);
  }
};
struct Seq : StmtNode {
  static constexpr NodeKind kKind = NodeKind::kSeq;
  std::vector<Stmt> stmts;
  template <typename F>
  void fields(F&& f) {
    f("stmts", stmts);
  }
};
struct Allocate : StmtNode {  // contents are undefined at first
  static constexpr NodeKind kKind = NodeKind::kAllocate;
  Buffer buffer;
  Stmt body;
  template <typename F>
  void fields(F&& f) {
    f("buffer", buffer);
    f("body", body);
  }
};

struct BlockAxis {
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

// A kernel: what one launch computes. params: inputs and outputs in the order they are passed;
// scalars: symbols that extents use.
struct Kernel {
  std::string name;
  std::vector<Buffer> params;
  std::vector<Var> scalars;
  Stmt body;
};

// --- making nodes (folding constants, checking types)
// ------------------------------------------------------------------

Expr int_imm(int64_t value, DType dtype = DType::kInt64);
Expr float_imm(double value, DType dtype = DType::kFloat32);
Expr bool_imm(bool value);
Expr constant(double value, DType dtype);  // an immediate of any type
Expr cast(DType dtype, Expr value);
Expr bitcast(DType dtype, Expr value);
Expr unary(UnaryOp op, Expr value);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);
Expr load(Buffer buffer, std::vector<Expr> indices, Expr mask = nullptr, int64_t ahead = 0);
Expr load_vector(Buffer buffer, Expr index, Expr mask);  // flat loops
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);  // the value itself when it has that many lanes already; a
                                        // vector of fewer is repeated
Expr reduce_lanes(BinaryOp op, Expr value);
Expr dot(Expr sum, Expr a, Expr b);

Stmt store(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask = nullptr,
           StoreKind kind = StoreKind::kCached);
Stmt dot_tile(DotTile fields);
Stmt let(Var var, Expr value, Stmt body);
Stmt for_loop(Var var, Expr extent, Stmt body, LoopKind kind = LoopKind::kSerial);
Stmt while_loop(Expr condition, Stmt body);
Stmt if_then(Expr condition, Stmt then, Stmt otherwise = nullptr);
Stmt seq(std::vector<Stmt> stmts);  // flattens; one statement stays itself
Stmt allocate(Buffer buffer, Stmt body);
Stmt block(Block fields);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr floormod(Expr a, Expr b);
Expr ceildiv(Expr a, Expr b);
Expr clamp(Expr x, Expr low, Expr high);

// The value of an integer immediate.
std::optional<int64_t> as_int(const Expr& e);
bool is_zero(const Expr& e);
bool is_one(const Expr& e);
// Smallest and largest value of a type, and infinities for floats: the neutral elements of max and
// min.
Expr lowest(DType dtype);
Expr highest(DType dtype);

}  // namespace tilewright::ir
