// Writing the loops of an operator: tensor expressions become blocks with named axes; other code
// becomes opaque blocks.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph/op.h"
#include "ir/loops/nodes.h"

namespace tilewright::ir {

using Axes = std::vector<Expr>;  // one index per dimension

// How a reduction joins two values: associative but for the rounding of floats, so schedules may
// split it.
enum class Combiner : uint8_t { kSum, kProduct, kMax, kMaxNumber, kMin, kAnd, kOr };
// The combiner's identity element (0, 1, the lowest number, ...) and its operation. Maximum and
// minimum pass NaN on, kMaxNumber passes it over; sums of integers wrap.
Expr neutral(Combiner c, DType dtype);
Expr combine(Combiner c, Expr a, Expr b);

// Collects the statements of a kernel. Loop and block names are unique within one builder.
class LoopsBuilder {
 public:
  // out[axes] = value(axes) over all of out's shape.
  void compute(const Buffer& out, const std::function<Expr(const Axes&)>& value,
               const std::string& name = "compute");
  // out[indices] = value for axes over `extents`; `at` gives the indices. Different axes must write
  // different elements.
  struct Write {
    Axes indices;
    Expr value;
  };
  void compute_at(const Buffer& out, const std::vector<Expr>& extents,
                  const std::function<Write(const Axes&)>& at, const std::string& name = "compute");
  // The same where the condition holds.
  void compute_where(const Buffer& out, const std::vector<Expr>& extents,
                     const std::function<Write(const Axes&)>& at,
                     const std::function<Expr(const Axes&)>& condition,
                     const std::string& name = "compute");
  // out[axes] = combine over all `reduce` extents of value(axes, reduce axes), in out's type.
  void reduce(const Buffer& out, const std::vector<Expr>& reduce, Combiner c,
              const std::function<Expr(const Axes&, const Axes&)>& value,
              const std::string& name = "reduce");
  // A reduction that carries several buffers: init(axes) and update(axes, reduce axes) are
  // statements over them.
  void reduce_custom(const std::vector<Expr>& extents, const std::vector<Expr>& reduce,
                     const std::function<Stmt(const Axes&)>& init,
                     const std::function<Stmt(const Axes&, const Axes&)>& update,
                     const std::string& name = "reduce");
  // Everything that `body` builds, once for each step 0 .. extent-1 in order (the time axis of an
  // LSTM).
  void ordered(Expr extent, const std::function<void(Expr)>& body,
               const std::string& name = "step");
  // Everything that `body` builds, once for each point of `extents`, independently of the others: a
  // temporary written there is that point's own.
  void each(const std::vector<Expr>& extents, const std::function<void(const Axes&)>& body,
            const std::string& name = "each");
  // A statement that is no tensor expression; runs as one opaque block, serially.
  void opaque(Stmt body, const std::string& name = "opaque");
  // The same for each point of `extents` independently (parallel axes).
  void opaque_over(const std::vector<Expr>& extents, const std::function<Stmt(const Axes&)>& body,
                   const std::string& name = "opaque");
  // What `build` would add, in its order; it is not added.
  std::vector<Stmt> collect(const std::function<void()>& build);
  // A statement that was collected here.
  void add(Stmt s) { stmts_.push_back(std::move(s)); }
  // A buffer for intermediate results.
  Buffer temp(const std::string& name, DType dtype, std::vector<Expr> shape, Layout layout = {});

  // All that was built, temporaries allocated around it.
  Stmt finish();

  // `name`, or with a number behind it where a block or buffer of this kernel has that name
  // already.
  std::string unique(const std::string& name);

 private:
  struct Nest {
    Block block;
    std::vector<Var> loops;
  };
  Nest begin(const std::string& name, const std::vector<Expr>& extents,
             const std::vector<Expr>& reduce, Axes& axes, Axes& reduce_axes);
  void finish(Nest nest);

  std::vector<Stmt> stmts_;
  std::vector<Buffer> temps_;
  std::unordered_set<std::string> names_;
};

// What an operator's compute sees: operands and results as buffers, attributes, and the builder.
class ComputeContext : public NodeView {
 public:
  // `in` and `out` have one entry per operand and result of the node; null: absent, or in place.
  ComputeContext(const Graph& graph, const Node& node, std::vector<Buffer> in,
                 std::vector<Buffer> out, LoopsBuilder& builder)
      : NodeView(graph, node), b(builder), in_(std::move(in)), out_(std::move(out)) {}
  // Operand i; null when absent, or in place. Results that nobody wants are still given (a
  // temporary).
  const Buffer& in(int i) const { return in_[static_cast<size_t>(i)]; }
  const Buffer& out(int i = 0) const { return out_[static_cast<size_t>(i)]; }
  // Is operand i stored as a part of the result already? Then compute writes the other parts alone.
  // Asked of pad's first operand and concat's, where planning has placed them (aliases.h).
  bool is_in_place(int i) const { return has(i) && !in(i); }
  // Operand i at `indices` of a larger shape, by numpy broadcasting.
  Expr read(int i, const Axes& indices) const;
  // Element k of a one-dimensional (or scalar) integer operand as int64: its known value, or a
  // load.
  Expr int_element(int i, int k) const;

  // Where the operator's loops go; shared by all operators of a group.
  LoopsBuilder& b;

 private:
  std::vector<Buffer> in_, out_;
};

// `buffer` at `indices` of a larger shape, by numpy broadcasting.
Expr broadcast_load(const Buffer& buffer, const Axes& indices);

}  // namespace tilewright::ir
