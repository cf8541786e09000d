// Producer inlining, Halide's compute_inline: no memory for the intermediate, at the cost of
// computing it once per use. Whether that is worth it is for the rule to say (inline_rule); here it
// must only be legal: one plain store at its axes, and no block between that changes what it reads.
#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Loads of the buffer become the block's value at the load's indices; equal loads share one
// expression.
class InlineLoads : public Rewriter {
 public:
  InlineLoads(Buffer buffer, const Store& definition, bool exact)
      : buffer_(std::move(buffer)), definition_(definition), exact_(exact) {}
  using Rewriter::rewrite;
  // A product that is summed up is that of another operator, which rounds it.
  Stmt rewrite(const Stmt& s) override {
    Stmt inside = Rewriter::rewrite(s);
    const Binary* sum = exact_ ? added_load(s) : nullptr;
    if (!sum || inside.same_as(s)) return inside;
    const Store& st = *inside.as<Store>();
    const auto* to = st.value.as<Binary>();
    return store(st.buffer, st.indices, binary(to->op, to->a, unary(UnaryOp::kRounded, to->b)),
                 st.mask, st.store_kind);
  }
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l || l->buffer != buffer_) return Rewriter::rewrite(e);
    std::vector<Expr> at;
    for (const Expr& i : l->indices) at.push_back(rewrite(i));
    for (const auto& [indices, value] : made_) {
      bool same = true;
      for (size_t d = 0; d < at.size(); ++d) same &= same_expr(indices[d], at[d]);
      if (same) return value;
    }
    VarMap values;
    for (size_t d = 0; d < at.size(); ++d) values[definition_.indices[d].get()] = at[d];
    made_.emplace_back(at, substitute(definition_.value, values));
    return made_.back().second;
  }

 private:
  // c[i] = c[i] + (the buffer's element).
  const Binary* added_load(const Stmt& s) const {
    const auto* st = s.as<Store>();
    const auto* sum = st ? st->value.as<Binary>() : nullptr;
    const auto* term = sum && sum->op == BinaryOp::kAdd ? sum->b.as<Load>() : nullptr;
    const auto* product = definition_.value.as<Binary>();
    return term && term->buffer == buffer_ && product && product->op == BinaryOp::kMul &&
                   is_float(product->type.dtype)
               ? sum
               : nullptr;
  }

  Buffer buffer_;
  const Store& definition_;
  const bool exact_;
  std::vector<std::pair<std::vector<Expr>, Expr>> made_;
};

class DropAllocate : public Rewriter {
 public:
  explicit DropAllocate(const BufferNode* buffer) : buffer_(buffer) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    const auto* a = s.as<Allocate>();
    return a && a->buffer.get() == buffer_ ? rewrite(a->body) : Rewriter::rewrite(s);
  }

 private:
  const BufferNode* buffer_;
};

// A block after the moved one, up to the last reader of its result, that writes what it reads; null
// when there is none. A reader counts too: its later instances would read what earlier ones wrote.
const Block* source_writer(const Stmt& body, const BlockPlace& moved, const Buffer& result) {
  const Touched mine = touched(moved.stmt);
  const Block *pending = nullptr, *found = nullptr;
  bool seen = false;
  for (const BlockPlace& p : all_blocks(body)) {
    const Touched theirs = touched(p.stmt);
    for (const BufferNode* buffer : mine.reads)
      if (seen && !pending && theirs.writes.count(buffer)) pending = p.block;
    if (seen && theirs.reads.count(result.get()) && !found) found = pending;
    seen |= p.block == moved.block;
  }
  return found;
}

}  // namespace

Result<Kernel> inline_block(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  const Block& b = *place.block;
  const auto* st = b.body.as<Store>();
  if (!st || b.init || b.predicate) return invalid("block '" + b.name + "' is not one plain store");
  if (st->buffer->scope == Scope::kParam)
    return invalid("block '" + b.name + "' writes a result of the kernel");
  if (st->indices.size() != b.axes.size())
    return invalid("block '" + b.name + "' has axes that its result does not");
  for (size_t d = 0; d < st->indices.size(); ++d) {
    bool axis = false;
    for (const BlockAxis& a : b.axes)
      axis |= a.kind == AxisKind::kParallel && a.var.same_as(st->indices[d]);
    for (size_t e = 0; e < d; ++e) axis &= !st->indices[d].same_as(st->indices[e]);
    if (!axis) return invalid("block '" + b.name + "' does not store at its axes");
  }
  for (const BlockPlace& other : all_blocks(k.body)) {
    if (other.block == &b) continue;
    if (touched(other.stmt).writes.count(st->buffer.get()))
      return invalid("another block writes '" + st->buffer->name + "'");
  }
  if (const Block* writer = source_writer(k.body, place, st->buffer))
    return invalid("block '" + writer->name + "' writes what block '" + b.name + "' reads");
  Stmt nest = nest_of(k.body, b.name);
  if (!nest) return invalid("block '" + b.name + "' has no nest of its own");
  Stmt body = replace_stmt(k.body, nest, seq({}));
  body = DropAllocate(st->buffer.get()).rewrite(body);
  return with_body(k, InlineLoads(st->buffer, *st, k.exact).rewrite(body));
}

}  // namespace tilewright::passes
