// Recognition goes from the weights to both sides: to the scores and the product that they are made
// of, then to whoever reads weights. Every access to a temporary must be to the block's own row and
// key, which is what makes rows independent and keys a plain reduction.
#include "passes/schedule/attention_chain.h"

#include <algorithm>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class FindAttention {
 public:
  explicit FindAttention(const Kernel& k) : blocks_(all_blocks(k.body)) {}

  Result<AttentionChain> run(const std::string& weights) {
    TW_RETURN_IF_ERROR(read_blocks());
    const AttentionBlock* p = named(weights);
    if (!p) return invalid("no block '" + weights + "'");
    const auto* exp = p->value.as<Unary>();
    const auto* shifted = exp && exp->op == UnaryOp::kExp ? exp->value.as<Binary>() : nullptr;
    const auto* score = shifted && shifted->op == BinaryOp::kSub ? shifted->a.as<Load>() : nullptr;
    if (!score) return invalid("block '" + weights + "' is no exponential of a difference");
    AttentionChain c;
    c.weights = *p;
    TW_ASSIGN(c.largest, maker_of(only_load(shifted->b), "the largest score"));
    TW_ASSIGN(c.scores, maker_of(score, "the scores"));
    TW_RETURN_IF_ERROR(check_shift(shifted->b));
    TW_ASSIGN(c.products, product_in(c.scores));
    for (const AttentionBlock& b : made_)
      if (reads(b, c.weights.result)) (b.value.as<Load>() ? c.total : c.values) = b;
    if (!c.total.result || !c.values.result) return invalid("the weights have no sum or no values");
    TW_RETURN_IF_ERROR(take_finish(c));
    return with_axes(std::move(c));
  }

 private:
  // All blocks of the kernel as they were built: a store, with loops for its axes.
  Status read_blocks() {
    for (const BlockPlace& p : blocks_) {
      const Block& b = *p.block;
      const auto* st = b.body.as<Store>();
      if (!st || p.loops.size() != b.axes.size() || b.predicate)
        return invalid("block '" + b.name + "' is not as it was built");
      for (size_t i = 0; i < b.axes.size(); ++i)
        if (b.bindings[i].get() != p.loops[i]->var.get())
          return invalid("the loops of block '" + b.name + "' are not its axes");
      AttentionBlock found{b, st->buffer, {}, st->value};
      const auto* update = b.init ? st->value.as<Binary>() : nullptr;
      if (b.init && !update) return invalid("block '" + b.name + "' is no plain reduction");
      if (update) found.value = update->b;
      made_.push_back(std::move(found));
    }
    return {};
  }
  const AttentionBlock* named(const std::string& name) const {
    for (const AttentionBlock& b : made_)
      if (b.block.name == name) return &b;
    return nullptr;
  }
  static const Load* only_load(const Expr& e) {
    const Load* found = nullptr;
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>()) found = l;
    });
    return found;
  }
  Result<AttentionBlock> maker_of(const Load* l, const std::string& what) const {
    const AttentionBlock* found = nullptr;
    for (const AttentionBlock& b : made_)
      if (l && b.result == l->buffer && l->buffer->scope != Scope::kParam) found = &b;
    if (!found) return invalid("no block makes " + what);
    return *found;
  }
  static bool reads(const AttentionBlock& b, const Buffer& buffer) {
    bool found = false;
    for_each_expr(b.value, [&](const Expr& e) {
      const auto* l = e.as<Load>();
      found |= l && l->buffer == buffer;
    });
    return found;
  }
  // m, or 0 where it is -inf: a block of keys without any score would leave NaN behind otherwise.
  static Status check_shift(const Expr& shift) {
    const auto* choice = shift.as<Select>();
    const auto* test = choice ? choice->condition.as<Binary>() : nullptr;
    const auto* zero = choice ? choice->a.as<FloatImm>() : nullptr;
    if (test && test->op == BinaryOp::kEq && zero && zero->value == 0 && choice->b.as<Load>() &&
        same_expr(test->a, choice->b) && same_expr(test->b, lowest(shift.dtype())))
      return {};
    return invalid("the scores are not shifted by the largest of their row");
  }
  // The only temporary that the scores are made of.
  Result<AttentionBlock> product_in(const AttentionBlock& scores) const {
    const Load* found = nullptr;
    for_each_expr(scores.value, [&](const Expr& e) {
      const auto* l = e.as<Load>();
      if (l && l->buffer->scope != Scope::kParam) found = l;
    });
    return maker_of(found, "the products");
  }
  // What is left: functions of rows, the last of which writes the results.
  Status take_finish(AttentionChain& c) const {
    const std::set<std::string> taken{c.products.block.name, c.scores.block.name,
                                      c.largest.block.name,  c.weights.block.name,
                                      c.total.block.name,    c.values.block.name};
    if (taken.size() != 6) return invalid("a block has two parts of an attention");
    for (const AttentionBlock& b : made_)
      if (!taken.count(b.block.name)) c.finish.push_back(b);
    for (const AttentionBlock& b : c.finish) {
      if (b.block.init) return invalid("block '" + b.block.name + "' reduces once more");
      if ((b.result->scope == Scope::kParam) != (&b == &c.finish.back()))
        return invalid("block '" + b.block.name + "' is not the last, or has no result");
    }
    return c.finish.empty() ? invalid("nothing is done with the values") : Status{};
  }

  // Says what axes run over, and checks kinds, extents and accesses by it.
  Result<AttentionChain> with_axes(AttentionChain c) const {
    const std::vector<BlockAxis>& axes = c.weights.block.axes;
    if (axes.size() < 2) return invalid("the weights have no rows");
    for (size_t i = 0; i + 1 < axes.size(); ++i) c.rows.push_back(axes[i].extent);
    c.keys = axes.back().extent;
    using enum AttentionAxis;
    const std::vector<AttentionAxis> none, key{kKey}, other{kOther}, key_and_depth{kKey, kOther},
        width_and_key{kOther, kKey};
    TW_RETURN_IF_ERROR(set_axes(c, c.products, key_and_depth, 1, BinaryOp::kAdd));
    TW_RETURN_IF_ERROR(set_axes(c, c.scores, key, 0, {}));
    TW_RETURN_IF_ERROR(set_axes(c, c.largest, key, 1, BinaryOp::kMaxNumber));
    TW_RETURN_IF_ERROR(set_axes(c, c.weights, key, 0, {}));
    TW_RETURN_IF_ERROR(set_axes(c, c.total, key, 1, BinaryOp::kAdd));
    TW_RETURN_IF_ERROR(set_axes(c, c.values, width_and_key, 1, BinaryOp::kAdd));
    const Buffer &qk = c.products.result, &s = c.scores.result, &m = c.largest.result,
                 &w = c.weights.result;
    TW_RETURN_IF_ERROR(check_loads(c, c.products, {}));
    TW_RETURN_IF_ERROR(check_loads(c, c.scores, {qk}));
    TW_RETURN_IF_ERROR(check_loads(c, c.largest, {s}));
    TW_RETURN_IF_ERROR(check_loads(c, c.weights, {s, m}));
    TW_RETURN_IF_ERROR(check_loads(c, c.total, {w}));
    TW_RETURN_IF_ERROR(check_loads(c, c.values, {w}));
    std::vector<Buffer> of_rows{c.total.result};
    for (AttentionBlock& b : c.finish) {
      const bool last = b.result->scope == Scope::kParam;
      TW_RETURN_IF_ERROR(set_axes(c, b, last ? other : none, 0, {}));
      if (last) of_rows.push_back(c.values.result);
      TW_RETURN_IF_ERROR(check_loads(c, b, of_rows));
      of_rows.push_back(b.result);
    }
    c.depth = c.products.block.axes.back().extent;
    c.width = c.values.block.axes[c.rows.size()].extent;
    if (!can_prove_equal(c.width, c.finish.back().block.axes.back().extent))
      return invalid("results are not as wide as values");
    if (!is_a_sum_of_products(c.products) || !is_a_sum_of_products(c.values))
      return invalid("products or values are no sums of products");
    return c;
  }
  static bool is_a_sum_of_products(const AttentionBlock& b) {
    const auto* product = b.value.as<Binary>();
    return product && product->op == BinaryOp::kMul;
  }
  Status set_axes(const AttentionChain& c, AttentionBlock& b, std::vector<AttentionAxis> behind,
                  size_t reduced, std::optional<BinaryOp> by) const {
    const auto wrong = [&](const char* what) {
      return invalid("block '" + b.block.name + "' " + what);
    };
    const std::vector<BlockAxis>& axes = b.block.axes;
    const size_t rows = c.rows.size();
    b.of.assign(rows, AttentionAxis::kRow);
    b.of.insert(b.of.end(), behind.begin(), behind.end());
    if (axes.size() != b.of.size()) return wrong("has axes of its own");
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool reduces = i + reduced >= axes.size();
      if (axes[i].kind != (reduces ? AxisKind::kReduce : AxisKind::kParallel))
        return wrong("has an axis of another kind");
      const Expr& whole = b.of[i] == AttentionAxis::kRow   ? c.rows[i]
                          : b.of[i] == AttentionAxis::kKey ? c.keys
                                                           : axes[i].extent;
      if (!can_prove_equal(axes[i].extent, whole)) return wrong("has an axis of another extent");
    }
    if (by.has_value() != static_cast<bool>(b.block.init)) return wrong("reduces, or does not");
    if (by && b.block.body.as<Store>()->value.as<Binary>()->op != *by)
      return wrong("is another kind of reduction");
    const size_t kept = axes.size() - reduced;
    if (b.result->scope != Scope::kParam && !is_own(b, b.block.body.as<Store>()->indices, kept))
      return wrong("writes elsewhere than at its axes");
    return {};
  }
  // Are the indices the first axes of the block, as they are?
  static bool is_own(const AttentionBlock& b, const std::vector<Expr>& indices, size_t count) {
    if (indices.size() != count) return false;
    for (size_t d = 0; d < count; ++d)
      if (indices[d].get() != b.block.axes[d].var.get()) return false;
    return true;
  }
  // Of temporaries, a block reads none but these, at its own row and key.
  static Status check_loads(const AttentionChain& c, const AttentionBlock& b,
                            const std::vector<Buffer>& may_read) {
    bool own = true;
    for_each_expr(b.value, [&](const Expr& e) {
      const auto* l = e.as<Load>();
      if (!l || l->buffer->scope == Scope::kParam) return;
      own &= std::find(may_read.begin(), may_read.end(), l->buffer) != may_read.end();
      std::vector<Expr> wanted;
      const bool by_row = l->buffer->shape.size() == c.rows.size();
      const bool by_key = l->buffer == c.products.result || l->buffer == c.scores.result ||
                          l->buffer == c.weights.result;
      for (size_t i = 0; i < b.of.size(); ++i)
        if (b.of[i] == AttentionAxis::kRow ||
            (!by_row && (b.of[i] == AttentionAxis::kKey) == by_key))
          wanted.push_back(b.block.axes[i].var);
      own &= l->indices.size() == wanted.size();
      for (size_t d = 0; own && d < wanted.size(); ++d)
        own = l->indices[d].get() == wanted[d].get();
    });
    return own ? Status{}
               : invalid("block '" + b.block.name +
                         "' reads a temporary of another row or key, or one that comes later");
  }

  const std::vector<BlockPlace> blocks_;
  std::vector<AttentionBlock> made_;
};

}  // namespace

Result<AttentionChain> find_attention(const Kernel& kernel, const std::string& weights) {
  return FindAttention(kernel).run(weights);
}

}  // namespace tilewright::passes
