// The adjoint of any operator that is linear in one of its operands: what a gradient does with it.
//
// y = A x, where A depends on the other operands, is loops that add multiples of elements of x to
// elements of y. The adjoint x' = A^T y' is the same loops with both exchanged: where y[i] took
// c * x[at], x'[at] takes c * y'[i]; chains of such loops are walked backwards. Nothing has to be
// inverted, as it has to where loops are differentiated into gathers: axes that index a dimension
// alone stay parallel, and the others are sums (where they are all that is left) or run in order, so
// that results are the same each time. The idea is jax.linear_transpose's (Bradbury et al., 2018;
// Radul et al., "You Only Linearize Once", POPL 2023), here over the loops of `compute`.
#include <algorithm>

#include "ir/graph/compute.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/linear_call.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

constexpr int kIndices = 1;  // operand of lookups

Status infer_transposed(InferContext& c) {
  auto call = linear_call(c);
  if (!call.ok()) return c.at_node(call.error());
  Node copy = call->node;
  InferContext inner(call->graph, copy);
  if (Status s = copy.op->infer_type(inner); !s.ok()) return s;
  const TensorType& y = inner.outputs()[0];
  bool fits = y.rank() == c.rank(0);
  for (int d = 0; fits && d < y.rank(); ++d)
    fits = c.agree(y.dims[static_cast<size_t>(d)], c.dim(0, d));
  if (!fits)
    return c.error("dy is " + to_string(c.type(0)) + ", the result of " +
                   std::string(copy.op->name) + " is " + to_string(y));
  c.set_output(0, c.type(0).dtype, *c.attr_extents(kTransposedExtents));
  return {};
}

// Adjoints of lookups write at the indices that these read at.
std::vector<IndexedDim> indexed_by_transposed(const NodeView& c) {
  const auto call = linear_call(c);
  if (!call.ok() || call->operand != 0) return {};
  const OpDef& op = *call->node.op;
  // The operand that was left out stands before the indices, as dy does in its place.
  if (!op.indexed_dims || op.index_operand != kIndices) return {};
  return op.indexed_dims(NodeView(call->graph, call->node));
}

// One element that a block adds to: `value` where `condition` (null: always) holds.
struct Addend {
  Buffer to;
  Axes at;
  Expr value, condition;
};

// The loops of one adjoint. A value y that depends on x linearly is given its own derivative in the
// buffer that the forward loops would have written it to: what was a temporary stays one.
class Adjoint {
 public:
  Adjoint(ComputeContext& c, LinearCall call) : c_(c), b_(c.b), call_(std::move(call)) {}

  void build() {
    const Value& x = call_.graph.value(call_.node.inputs[call_.operand]);
    const Buffer dx = make_buffer("x", x.type.dtype, x.type.dims);
    linear_ = {{dx.get(), c_.out()}};
    std::vector<Buffer> in;
    for (size_t i = 0, next = 1; i < call_.node.inputs.size(); ++i)
      in.push_back(i == call_.operand ? dx : c_.in(static_cast<int>(next++)));
    ComputeContext forward(call_.graph, call_.node, in, {c_.in(0)}, b_);
    std::vector<Stmt> stmts = b_.collect([&] { call_.node.op->compute(forward); });
    std::vector<bool> is_linear_block;
    for (const Stmt& s : stmts) {
      const Block* block = block_of(s);
      TW_CHECK(block);
      is_linear_block.push_back(is_linear(*block));
      if (is_linear_block.back())
        for (const Buffer& y : stored(*block)) linear_.emplace(y.get(), y);
    }
    std::vector<const Block*> blocks;
    for (size_t k = 0; k < stmts.size(); ++k) {
      const Block* block = block_of(stmts[k]);
      if (is_linear_block[k]) {
        blocks.push_back(block);
      } else if (!linear_.count(stored(*block)[0].get())) {
        b_.add(stmts[k]);  // makes what the others multiply with
      }
    }
    for (const Block* block : blocks) find_addends(*block);
    for (size_t k = blocks.size(); k-- > 0;) emit(*blocks[k], addends_[k]);
    if (!written_[c_.out().get()]) fill(c_.out());
  }

 private:
  static const Block* block_of(Stmt s) {
    while (const auto* loop = s.as<For>()) s = loop->body;
    return s.as<Block>();
  }
  // Does it read what depends on x?
  bool is_linear(const Block& block) const {
    bool linear = false;
    for_each_expr(block.body, [&](const Expr& e) {
      const auto* l = e.as<Load>();
      linear |= l && linear_.count(l->buffer.get()) && !stores_to(block, l->buffer);
    });
    return linear;
  }
  static std::vector<Buffer> stored(const Block& block) {
    std::vector<Buffer> buffers;
    for_each_stmt(block.body, [&](const Stmt& s) {
      if (const auto* store = s.as<Store>()) buffers.push_back(store->buffer);
    });
    TW_CHECK(!buffers.empty());
    return buffers;
  }
  static bool stores_to(const Block& block, const Buffer& buffer) {
    const std::vector<Buffer> buffers = stored(block);
    return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
  }

  // What the block's store takes of linear buffers, given back to these.
  void find_addends(const Block& block) {
    const auto* store = block.body.as<Store>();
    TW_CHECK(store);
    std::vector<Addend> addends;
    Expr value = store->value;
    if (block.init) {  // y = y + value
      const auto* sum = value.as<Binary>();
      TW_CHECK(sum && sum->op == BinaryOp::kAdd);
      const auto* old = sum->a.as<Load>();
      TW_CHECK(old && old->buffer == store->buffer);
      value = sum->b;
    }
    give_back(value, load(store->buffer, store->indices), nullptr, addends);
    for (const Addend& a : addends) ++written_[a.to.get()];
    addends_.push_back(std::move(addends));
  }
  // g: the derivative by e. Down the expression, to every load that depends on x.
  void give_back(const Expr& e, const Expr& g, const Expr& condition, std::vector<Addend>& to) {
    if (!reads_linear(e)) return;
    if (const auto* l = e.as<Load>()) {
      to.push_back({linear_.at(l->buffer.get()), l->indices, g, condition});
    } else if (const auto* cast_of = e.as<Cast>()) {
      give_back(cast_of->value, cast(cast_of->value.dtype(), g), condition, to);
    } else if (const auto* u = e.as<Unary>()) {
      TW_CHECK(u->op == UnaryOp::kNeg);
      give_back(u->value, -g, condition, to);
    } else if (const auto* s = e.as<Select>()) {
      const auto both = [&](const Expr& c) { return condition ? logical_and(condition, c) : c; };
      give_back(s->a, g, both(s->condition), to);
      give_back(s->b, g, both(logical_not(s->condition)), to);
    } else {
      const auto* b = e.as<Binary>();
      TW_CHECK(b);
      give_back_binary(*b, g, condition, to);
    }
  }
  void give_back_binary(const Binary& e, const Expr& g, const Expr& condition,
                        std::vector<Addend>& to) {
    switch (e.op) {
      case BinaryOp::kAdd:
        give_back(e.a, g, condition, to);
        return give_back(e.b, g, condition, to);
      case BinaryOp::kSub:
        give_back(e.a, g, condition, to);
        return give_back(e.b, -g, condition, to);
      case BinaryOp::kMul:
        TW_CHECK(!reads_linear(e.a) || !reads_linear(e.b));
        return reads_linear(e.a) ? give_back(e.a, g * e.b, condition, to)
                                 : give_back(e.b, e.a * g, condition, to);
      case BinaryOp::kDiv:
        TW_CHECK(!reads_linear(e.b));
        return give_back(e.a, g / e.b, condition, to);
      default: TW_CHECK(false);
    }
  }
  bool reads_linear(const Expr& e) const {
    bool found = false;
    for_each_expr(e, [&](const Expr& sub) {
      const auto* l = sub.as<Load>();
      found |= l && linear_.count(l->buffer.get()) != 0;
    });
    return found;
  }

  // The axis that alone says where in that dimension all addends lie; -1: none.
  static int only_axis(const Block& block, const std::vector<Addend>& addends, size_t dim) {
    for (const Addend& a : addends)
      if (dim >= a.at.size() || !same_expr(a.at[dim], addends[0].at[dim])) return -1;
    int found = -1;
    for (size_t k = 0; k < block.axes.size(); ++k) {
      if (!uses_var(addends[0].at[dim], block.axes[k].var)) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(k);
    }
    if (found < 0) return -1;
    const Expr& e = addends[0].at[dim];
    bool reads = false;
    for_each_expr(e, [&](const Expr& sub) { reads |= sub.kind() == NodeKind::kLoad; });
    const auto step = to_linear(e).coefficient_of(block.axes[static_cast<size_t>(found)].var);
    return !reads && step && step->is_constant() && step->constant != 0 ? found : -1;
  }

  void emit(const Block& block, const std::vector<Addend>& addends) {
    for (size_t k = 0; k < addends.size(); ++k) {
      // Addends to one buffer together.
      const Buffer& to = addends[k].to;
      std::vector<Addend> same;
      bool first = true;
      for (size_t j = 0; j < addends.size(); ++j) {
        if (addends[j].to != to) continue;
        first &= j >= k;
        same.push_back(addends[j]);
      }
      if (first) emit_to(to, block, same);
    }
  }
  void emit_to(const Buffer& to, const Block& block, const std::vector<Addend>& addends) {
    std::vector<int> axis_of;  // by dimension
    for (size_t d = 0; d < to->shape.size(); ++d) axis_of.push_back(only_axis(block, addends, d));
    if (addends.size() == 1 && written_[to.get()] == 1 && !block.predicate &&
        covers(block, to, addends[0], axis_of))
      return sum(block, addends[0], axis_of);
    if (filled_.insert(to.get()).second) fill(to);
    scatter(block, addends, axis_of);
  }
  void fill(const Buffer& to) {
    b_.compute(
        to, [&](const Axes&) { return constant(0, to->dtype); }, "zero");
  }
  // Is each element of the buffer one point of axes of the block?
  static bool covers(const Block& block, const Buffer& to, const Addend& a,
                     const std::vector<int>& axis_of) {
    std::vector<int> used;
    for (size_t d = 0; d < to->shape.size(); ++d) {
      if (is_one(to->shape[d]) && axis_of[d] < 0) {
        if (!is_zero(a.at[d])) return false;
        continue;
      }
      const int k = axis_of[d];
      if (k < 0 || std::count(used.begin(), used.end(), k)) return false;
      used.push_back(k);
      const BlockAxis& axis = block.axes[static_cast<size_t>(k)];
      if (!a.at[d].same_as(axis.var) || !can_prove_equal(axis.extent, to->shape[d])) return false;
    }
    return true;
  }
  Expr replaced(const Expr& e, const Block& block, const std::vector<Expr>& values) const {
    VarMap map;
    for (size_t k = 0; k < block.axes.size(); ++k) {
      map[block.axes[k].var.get()] = values[k];
      map[block.bindings[k].get()] = values[k];  // a loop variable, which the predicate names
    }
    return substitute(e, map);
  }
  // Of the axes that do not index the buffer.
  void sum(const Block& block, const Addend& a, const std::vector<int>& axis_of) {
    std::vector<size_t> others;
    std::vector<Expr> extents;
    for (size_t k = 0; k < block.axes.size(); ++k) {
      if (std::count(axis_of.begin(), axis_of.end(), static_cast<int>(k))) continue;
      others.push_back(k);
      extents.push_back(block.axes[k].extent);
    }
    const auto value = [&](const Axes& i, const Axes& r) {
      std::vector<Expr> values(block.axes.size());
      for (size_t d = 0; d < axis_of.size(); ++d)
        if (axis_of[d] >= 0) values[static_cast<size_t>(axis_of[d])] = i[d];
      for (size_t n = 0; n < others.size(); ++n) values[others[n]] = r[n];
      const Expr v =
          a.condition ? select(a.condition, a.value, constant(0, a.value.dtype())) : a.value;
      return replaced(v, block, values);
    };
    if (others.empty())
      b_.compute(
          a.to, [&](const Axes& i) { return value(i, {}); }, "transposed");
    else
      b_.reduce(a.to, extents, Combiner::kSum, value, "transposed");
  }
  // Element by element, in the order of the loops but for the axes that keep them apart. Of elements that lie side by
  // side runs are the innermost loop, as vectors take them.
  void scatter(const Block& block, const std::vector<Addend>& addends,
               const std::vector<int>& axis_of) {
    constexpr int64_t kRun = 128;
    const int side_by_side = axis_of_runs(block, addends, axis_of);
    std::vector<size_t> apart, in_order;
    std::vector<Expr> apart_extents, extents;
    for (size_t k = 0; k < block.axes.size(); ++k) {
      if (static_cast<int>(k) == side_by_side) continue;
      const bool alone = std::count(axis_of.begin(), axis_of.end(), static_cast<int>(k));
      (alone ? apart : in_order).push_back(k);
      (alone ? apart_extents : extents).push_back(block.axes[k].extent);
    }
    const Expr columns =
        side_by_side < 0 ? Expr(1) : block.axes[static_cast<size_t>(side_by_side)].extent;
    if (side_by_side >= 0) apart_extents.push_back(ceildiv(columns, kRun));
    b_.opaque_over(
        apart_extents,
        [&](const Axes& i) {
          std::vector<Expr> inside = extents;
          const Expr run = side_by_side < 0 ? Expr(0) : i.back() * kRun;
          if (side_by_side >= 0)
            inside.push_back(is_multiple(columns, kRun) ? Expr(kRun) : min(kRun, columns - run));
          return loop_nest(inside, [&](const Axes& r) {
            std::vector<Expr> values(block.axes.size());
            for (size_t n = 0; n < apart.size(); ++n) values[apart[n]] = i[n];
            for (size_t n = 0; n < in_order.size(); ++n) values[in_order[n]] = r[n];
            if (side_by_side >= 0) values[static_cast<size_t>(side_by_side)] = run + r.back();
            return add_all(block, addends, values);
          });
        },
        "transposed");
  }
  // The axis that moves all addends by one element; -1: there is none, or it is short.
  static int axis_of_runs(const Block& block, const std::vector<Addend>& addends,
                          const std::vector<int>& axis_of) {
    constexpr int64_t kFewest = 8;
    if (axis_of.empty() || axis_of.back() < 0) return -1;
    const BlockAxis& axis = block.axes[static_cast<size_t>(axis_of.back())];
    const auto step = to_linear(addends[0].at.back()).coefficient_of(axis.var);
    return step && step->is_constant() && step->constant == 1 &&
                   as_int(axis.extent).value_or(kFewest) >= kFewest &&
                   std::count(axis_of.begin(), axis_of.end(), axis_of.back()) == 1
               ? axis_of.back()
               : -1;
  }
  Stmt add_all(const Block& block, const std::vector<Addend>& addends,
               const std::vector<Expr>& values) const {
    std::vector<Stmt> stmts;
    for (const Addend& a : addends) {
      Axes at;
      for (const Expr& e : a.at) at.push_back(replaced(e, block, values));
      Stmt s = store(a.to, at, load(a.to, at) + replaced(a.value, block, values));
      stmts.push_back(a.condition ? if_then(replaced(a.condition, block, values), s) : s);
    }
    const Stmt all = seq(std::move(stmts));
    return block.predicate ? if_then(replaced(block.predicate, block, values), all) : all;
  }

  ComputeContext& c_;
  LoopsBuilder& b_;
  const LinearCall call_;
  std::unordered_map<const BufferNode*, Buffer> linear_;  // x and what depends on it; its adjoint
  std::vector<std::vector<Addend>> addends_;              // by linear block
  std::unordered_map<const BufferNode*, int> written_;    // by adjoint: addends
  std::unordered_set<const BufferNode*> filled_;          // with zeros
};

void compute_transposed(ComputeContext& c) { Adjoint(c, linear_call(c).value()).build(); }

}  // namespace

const std::vector<OpDef>& transposed_ops() {
  static const std::vector<OpDef> ops{
      {.name = "transposed",
       .summary =
           "the adjoint of an operator that is linear in one operand: from the derivative by "
           "its result to that by the operand",
       .operands = {{"dy"}, {"others", OperandDef::kVariadic}},
       .attributes = {{kTransposedOp, AttributeKind::kString,
                       "the operator, whose other operands and whose attributes follow"},
                      {kTransposedOperand, AttributeKind::kInt, "which operand it is linear in"},
                      {kTransposedExtents, AttributeKind::kExtents, "extents of that operand"}},
       .infer_type = infer_transposed,
       .compute = compute_transposed,
       .takes_others_attributes = true,
       .index_operand = kIndices,
       .indexed_dims = indexed_by_transposed,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 7}}, {DType::kInt64, {3, 4}}},
                   .attributes = {{kTransposedOp, std::string("gather")},
                                  {kTransposedOperand, int64_t{0}},
                                  {kTransposedExtents, Extents{{Expr(5), Expr(7)}}}},
                   .values = {{}, {0, 4, 1, 1, 3}}},
       .source = "Radul et al., You Only Linearize Once, POPL 2023"},
  };
  return ops;
}

}  // namespace tilewright::ir
