// What the nodes of the loop IR are made of: handles, element types, buffers, and the kinds of
// operations, loops and memory.
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

// One kind for each node of nodes.def.
enum class NodeKind : uint8_t {
#define TW_EXPR(Kind) k##Kind,
#define TW_STMT(Kind) k##Kind,
#include "ir/loops/nodes.def"
};

// Type of an expression: element type and number of vector lanes (1: a scalar).
struct ScalarType {
  // i64 is the type of indices, extents and loop variables.
  DType dtype = DType::kInt64;
  int lanes = 1;
  bool operator==(const ScalarType&) const = default;
};

// What every node has: its kind, for checked downcasts without RTTI, and (expressions) its type.
struct ExprNode {
  // Set when the node is made; the type is that of its value.
  NodeKind kind;
  ScalarType type;
  virtual ~ExprNode() = default;
};
// The same of statements, which have no value.
struct StmtNode {
  NodeKind kind;  // of the struct that derives from this one
  virtual ~StmtNode() = default;
};

// A shared, immutable handle; null when default-made. Identity (same pointer) means "the same
// node".
template <typename Base>
class Handle {
 public:
  Handle() = default;
  // From a node, or null. Copies share it and are counted (as TVM's ObjectRef).
  Handle(std::nullptr_t) {}
  template <typename T>
    requires std::is_base_of_v<Base, T>
  Handle(std::shared_ptr<const T> node) : node_(std::move(node)) {}
  // Null stays null in get(); the others require a node.
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

// A scalar or vector value without side effects.
class Expr : public Handle<ExprNode> {
 public:
  using Handle::Handle;
  Expr(int64_t value);  // an int64 immediate
  // Integer literals in formulas: `i * 4 + 1`.
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}
  // Of the value; lanes() is 1 for scalars.
  ScalarType type() const { return get()->type; }
  DType dtype() const { return get()->type.dtype; }
  int lanes() const { return get()->type.lanes; }
};
// Something that stores, or contains what does.
using Stmt = Handle<StmtNode>;

// A variable is its node: two variables of one name are different. Scalar (int64 unless said
// otherwise).
struct VarNode;
// A handle to a VarNode: what binds (loops, lets, axes) and what is substituted for.
class Var : public Expr {
 public:
  Var() = default;
  // A new variable; or the one that the expression already is.
  explicit Var(std::string name, ScalarType type = {});
  explicit Var(Expr e) : Expr(std::move(e)) { TW_CHECK(!get() || kind() == NodeKind::kVar); }
  const std::string& name() const;
};

// One physical axis of a layout: (index[dim] / divisor) % modulus; modulus 0 means no remainder is
// taken. `padded`: its extent, where that is more than the modulus; else 0.
struct LayoutAxis {
  int dim = 0;
  int64_t divisor = 1;
  int64_t modulus = 0;
  int64_t padded = 0;
  bool fits(int rank) const {
    return dim >= 0 && dim < rank && divisor >= 1 && modulus >= 0 &&
           (padded == 0 || (modulus > 0 && padded > modulus));
  }
  // With a modulus.
  int64_t extent() const { return padded ? padded : modulus; }
  bool operator==(const LayoutAxis&) const = default;
};
// How a logical tensor lies in memory: physical axes, outermost first; empty means row-major.
// Blocked axes pad: an extent that the block does not divide is rounded up.
using Layout = std::vector<LayoutAxis>;
Layout permuted_layout(const std::vector<int>& order);

constexpr int64_t kWorkspaceAlignment = 64;  // bytes, of each buffer in a workspace

// Where a buffer lives, and who allocates it.
enum class Scope : uint8_t {
  kParam,      // passed to the kernel
  kWorkspace,  // lives for the call, or for one iteration of the parallel loop around its Allocate
  kLocal,      // one worker's, constant size; registers or the stack, where it is small enough
};

// A multidimensional array: logical extents, an element type and a layout. Accesses use logical
// indices until flatten_buffers; two buffers never alias.
struct BufferNode {
  // For text and symbols of debuggers; identity is the node.
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Expr> shape;  // logical extents
  // Empty: row-major. `scope`: see there.
  Layout layout;
  Scope scope = Scope::kParam;
  int rank() const { return static_cast<int>(shape.size()); }
};
// Shared by all accesses; compared by pointer.
using Buffer = std::shared_ptr<const BufferNode>;
// Extents are i64 expressions over kernel scalars (parameters) or constants (local buffers).
Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape,
                   Scope scope = Scope::kParam, Layout layout = {});

// Elementwise operations of one operand. What each means for every type, and for NaN, infinities
// and -0, is written as C++ in interpreter/scalar_ops.h.
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
  kExpm1,
  kLog1p,
  kSigmoid,
  kFloor,
  kCeil,
  kRoundEven,
  kTrunc,
  kRounded,  // x: where a sum takes it in an exact kernel (stmts.h), as it is after its rounding
  kWatched,  // x: the run notes whether an f32 is an infinity or NaN (TwKernelContext::not_finite)
  kIsNan,
  kIsInf,
};
// Does it take a series, an iteration or a slow instruction, so that it is not to be repeated?
constexpr bool is_costly(UnaryOp op) { return op >= UnaryOp::kSqrt && op <= UnaryOp::kSigmoid; }
// Of two operands of one type; comparisons come last and give bool.
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
  kMax,        // floats: NaN when either is
  kMaxNumber,  // floats only: b where it is larger than a, else a: a NaN in b is passed over
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
// How a loop is executed. Of parallel and vectorized ones passes have checked that iterations
// depend on none of the others.
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,
  kVectorized,
  kUnrolled,
  kDot,  // the terms of one Dot, or the rows of one DotTile, where the body has that form
};
// What a block's axis allows: iterations independent; combined by an associative operation; or only
// in ascending order.
enum class AxisKind : uint8_t { kParallel, kReduce, kOrdered };
// Ordinary or non-temporal.
enum class StoreKind : uint8_t {
  kCached,
  kStreamed,  // past the caches where the target can: nothing reads the value soon
};

// Into all caches, all but the first one, or all to be written.
enum class PrefetchKind : uint8_t { kNear, kOuter, kWrite };

std::string_view name(UnaryOp op);   // "sqrt"
std::string_view name(BinaryOp op);  // "+", "floordiv", "min"
// As text forms spell them.
std::string_view name(LoopKind kind);
std::string_view name(AxisKind kind);
std::string_view name(PrefetchKind kind);
std::string_view name(Scope scope);

}  // namespace tilewright::ir
