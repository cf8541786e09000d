// Each iteration of a loop makes for itself the part of a buffer that it reads, however
// the parts overlap.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A box: the lowest index and the constant extent of each dimension.
struct Region {
  std::vector<Expr> low, extent;
};

// What the blocks inside `loop` read of a buffer in one iteration.
Result<Region> region_read(const std::vector<BlockPlace>& blocks, const For* loop,
                           const BufferNode* buffer) {
  const size_t rank = buffer->shape.size();
  std::vector<Expr> low(rank), high(rank);
  bool known = true;
  for (const BlockPlace& p : blocks) {
    Ranges inside;
    for (auto it = std::find(p.loops.begin(), p.loops.end(), loop) + 1; it < p.loops.end(); ++it)
      inside.set((*it)->var, (*it)->extent);
    VarMap bindings;
    for (size_t i = 0; i < p.block->axes.size(); ++i)
      bindings[p.block->axes[i].var.get()] = p.block->bindings[i];
    for_each_expr(p.block->body, [&](const Expr& e) {
      const auto* l = e.as<Load>();
      if (!l || l->buffer.get() != buffer) return;
      for (size_t d = 0; d < rank; ++d) {
        const Expr index = substitute(l->indices[d], bindings);
        const Expr first = lower_bound(index, inside), last = upper_bound(index, inside);
        known &= first && last && widen(low[d], high[d], first, last);
      }
    });
  }
  Region r;
  for (size_t d = 0; known && d < rank; ++d) {
    known &= static_cast<bool>(low[d]);
    if (!known) break;
    r.low.push_back(simplify(low[d]));
    r.extent.push_back(simplify(high[d] - low[d] + Expr(1)));
    known &= as_int(r.extent[d]).has_value();
  }
  if (!known)
    return invalid("the part of '" + buffer->name + "' that an iteration reads has no fixed size");
  return r;
}

// Dimensions in the order in which they lie in memory, outermost first.
std::vector<size_t> memory_order(const BufferNode& b) {
  std::vector<size_t> order;
  for (const LayoutAxis& a : b.layout)
    if (a.divisor == 1 && a.modulus == 0) order.push_back(static_cast<size_t>(a.dim));
  if (order.size() == b.shape.size()) return order;
  order.clear();
  for (size_t d = 0; d < b.shape.size(); ++d) order.push_back(d);
  return order;
}

}  // namespace

// Halide's compute_at: the part that one iteration needs is computed in it, redundantly where parts
// of iterations overlap (stencil halos, tiles of Winograd's input).
Result<Kernel> compute_at(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace moved, find_block(k.body, step.names[0]));
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[1]));
  const auto fail = [&](const std::string& what) {
    return invalid("block '" + step.names[0] + "' " + what);
  };
  const auto* st = moved.block->body.as<Store>();
  if (!st || moved.block->init || st->buffer->scope == Scope::kParam)
    return fail("is no single store to a temporary");
  Block staged = *moved.block;
  if (st->indices.size() != staged.axes.size()) return fail("does not store along its axes");
  for (size_t d = 0; d < st->indices.size(); ++d)
    if (!st->indices[d].same_as(staged.axes[d].var) || staged.axes[d].kind != AxisKind::kParallel)
      return fail("does not store along its axes");
  const Stmt nest = nest_of(k.body, step.names[0]);
  if (!nest) return fail("shares its loops with another");
  const bool outermost = moved.loops.empty() || nest.as<For>() == moved.loops[0];
  const Touched mine = touched(moved.stmt);
  std::vector<BlockPlace> readers;
  bool earlier = true;
  for (const BlockPlace& p : all_blocks(k.body)) {
    if (p.block == moved.block) {
      earlier = false;
      continue;
    }
    const Touched theirs = touched(p.stmt);
    // What was written before, once and for all, is still there.
    for (const BufferNode* b : mine.reads)
      if (theirs.writes.count(b) && !(earlier && outermost))
        return fail("reads what block '" + p.block->name + "' writes");
    if (theirs.writes.count(st->buffer.get()))
      return fail("is not alone in writing '" + st->buffer->name + "'");
    if (!theirs.reads.count(st->buffer.get())) continue;
    if (std::find(p.loops.begin(), p.loops.end(), loop) == p.loops.end())
      return fail("is read by block '" + p.block->name + "' outside of loop '" + loop->var.name() +
                  "'");
    readers.push_back(p);
  }
  if (readers.empty()) return fail("is not read inside loop '" + loop->var.name() + "'");
  for (const For* f : moved.loops)
    if (f == loop) return fail("is already inside loop '" + loop->var.name() + "'");
  TW_ASSIGN(Region region, region_read(readers, loop, st->buffer.get()));

  std::vector<Var> loops;
  staged.predicate = nullptr;
  for (size_t d = 0; d < staged.axes.size(); ++d) {
    loops.emplace_back(staged.name + ".s" + std::to_string(d));
    staged.bindings[d] = region.low[d] + loops[d];
    Ranges own;
    own.set(loops[d], region.extent[d]);
    const Expr fits = staged.bindings[d] < staged.axes[d].extent;
    if (can_prove(fits, own)) continue;
    staged.predicate = staged.predicate ? logical_and(staged.predicate, fits) : fits;
  }
  Stmt copy = block(staged);
  const std::vector<size_t> order = memory_order(*st->buffer);
  for (size_t n = order.size(); n-- > 0;)
    copy = for_loop(loops[order[n]], region.extent[order[n]], copy);
  const Stmt body = replace_stmt(k.body, nest, seq({}));
  TW_ASSIGN(const For* again, find_loop(body, step.names[1]));
  return with_body(k, replace_loop(body, again, [&](const For& f) {
                     return for_loop(f.var, f.extent, seq({copy, f.body}), f.loop_kind);
                   }));
}

}  // namespace tilewright::passes
