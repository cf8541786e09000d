// decompose_reduction, rfactor and split_reduction.
#include "ir/loops/blocks.h"
#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

Result<Kernel> decompose_reduction(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  const Block& b = *place.block;
  if (!b.init) return invalid("block '" + b.name + "' has no init");
  size_t depth = 0;
  while (depth < place.loops.size() && place.loops[depth]->var.name() != step.names[1]) ++depth;
  if (depth == place.loops.size())
    return invalid("loop '" + step.names[1] + "' is not around block '" + b.name + "'");
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kReduce) continue;
    for (size_t d = 0; d < depth; ++d)
      if (uses_var(b.bindings[i], place.loops[d]->var))
        return invalid("loop '" + place.loops[d]->var.name() + "' outside feeds a reduction axis");
  }
  Block init;
  init.name = fresh_block_name(k.body, b.name + "_init");
  VarMap fresh_axes, fresh_loops;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind == AxisKind::kReduce) continue;
    Var axis(b.axes[i].var.name());
    fresh_axes[b.axes[i].var.get()] = axis;
    init.axes.push_back({axis, b.axes[i].extent, b.axes[i].kind});
    init.bindings.push_back(b.bindings[i]);
  }
  init.body = substitute(b.init, fresh_axes);
  // Conditions on parallel axes hold for the init too; those on reduction loops do not concern it.
  std::vector<const For*> kept;
  for (size_t d = depth; d < place.loops.size(); ++d)
    for (const Expr& e : init.bindings)
      if (uses_var(e, place.loops[d]->var)) {
        kept.push_back(place.loops[d]);
        break;
      }
  for (const For* f : kept) fresh_loops[f->var.get()] = Var(f->var.name() + "_init");
  if (b.predicate)
    init.predicate = keep_conjuncts(b.predicate, [&](const Expr& p) {
      for (size_t d = depth; d < place.loops.size(); ++d)
        if (uses_var(p, place.loops[d]->var) && !fresh_loops.count(place.loops[d]->var.get()))
          return false;
      return true;
    });
  if (init.predicate) init.predicate = substitute(init.predicate, fresh_loops);
  for (Expr& e : init.bindings) e = substitute(e, fresh_loops);
  Stmt nest = block(std::move(init));
  for (size_t i = kept.size(); i-- > 0;)
    nest =
        for_loop(Var(fresh_loops[kept[i]->var.get()]), kept[i]->extent, nest, kept[i]->loop_kind);

  Block update = b;
  update.init = nullptr;
  Stmt body = replace_stmt(k.body, place.stmt, block(std::move(update)));
  TW_ASSIGN(const For* loop, find_loop(body, step.names[1]));
  return with_body(k, replace_loop(body, loop, [&](const For& f) {
                     return seq({nest, for_loop(f.var, f.extent, f.body, f.loop_kind)});
                   }));
}

Result<Kernel> compose_init(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  TW_ASSIGN(BlockPlace before, find_block(k.body, step.names[1]));
  const Block &b = *place.block, &init = *before.block;
  if (!b.init) return invalid("block '" + b.name + "' has no init");
  std::vector<const BlockAxis*> results;
  for (const BlockAxis& a : b.axes)
    if (a.kind != AxisKind::kReduce) results.push_back(&a);
  const auto* st = init.body.as<Store>();
  bool same = st && init.axes.size() == results.size() && !init.init && !init.predicate;
  VarMap axes;
  for (size_t i = 0; same && i < results.size(); ++i) {
    same = can_prove_equal(init.axes[i].extent, results[i]->extent);
    axes[init.axes[i].var.get()] = results[i]->var;
  }
  const Stmt nest = nest_of(k.body, step.names[1]);
  if (!same || !nest || !structurally_equal(substitute(init.body, axes), b.init))
    return invalid("block '" + init.name + "' is not the init of block '" + b.name + "'");
  // One after the other, and no loop around goes back to the first.
  const Stmt* outermost = &k.body;
  while (const auto* a = outermost->as<Allocate>()) outermost = &a->body;
  const auto* all = outermost->as<Seq>();
  const Stmt sums = nest_of(k.body, step.names[0]);
  bool follows = false;
  for (size_t i = 1; all && i < all->stmts.size(); ++i)
    follows |= all->stmts[i - 1].same_as(nest) && all->stmts[i].same_as(sums);
  if (!follows)
    return invalid("block '" + b.name + "' does not follow block '" + init.name + "' directly");
  return with_body(k, replace_stmt(k.body, nest, seq({})));
}

namespace {

// Gives a block one more axis like `a`, bound to a loop of its own.
Var add(Block& to, std::vector<Var>& loops, const std::string& label, const BlockAxis& a,
        AxisKind kind, Expr extent) {
  Var v(a.var.name()), loop(to.name + "." + label);
  to.axes.push_back({v, std::move(extent), kind});
  to.bindings.push_back(loop);
  loops.push_back(loop);
  return v;
}
Stmt nest(Block blk, const std::vector<Var>& loops) {
  const std::vector<BlockAxis> axes = blk.axes;
  Stmt s = block(std::move(blk));
  for (size_t i = loops.size(); i-- > 0;) s = for_loop(loops[i], axes[i].extent, s);
  return s;
}
// May the value that a reduction starts from be combined more than once?
bool may_repeat(BinaryOp op, const Expr& start) {
  const auto* f = start.as<FloatImm>();
  const auto n = as_int(start);
  switch (op) {
    case BinaryOp::kAdd: return f ? f->value == 0 : n == 0;
    case BinaryOp::kMul: return f ? f->value == 1 : n == 1;
    case BinaryOp::kMax:
    case BinaryOp::kMaxNumber:
    case BinaryOp::kMin:
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return true;
    default: return false;
  }
}

// Reductions are re-associated here and nowhere else: where exact kernels fix the order of sums,
// rules ask for these steps in that order only (sum_order.h).
// Which terms one partial result takes: every factor-th one, and the partial results of one result
// lie side by side; or a run of terms, and the partial results are whole copies of the result.
enum class Partial { kEveryFactor, kRun };

// A reduction of one value by one operation, from a neutral start: what can be cut in parts.
struct PlainReduction {
  const Block* block = nullptr;
  const Store* store = nullptr;
  const Binary* update = nullptr;
  Expr neutral;
};
Result<PlainReduction> plain_reduction(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  const Block& b = *place.block;
  const auto axis = static_cast<size_t>(step.numbers[0]);
  if (axis >= b.axes.size() || b.axes[axis].kind != AxisKind::kReduce)
    return invalid("axis " + std::to_string(step.numbers[0]) + " of block '" + b.name +
                   "' is no reduction");
  if (step.numbers[1] < 1) return invalid("factor " + std::to_string(step.numbers[1]));
  const auto* st = b.body.as<Store>();
  const auto* update = st ? st->value.as<Binary>() : nullptr;
  const auto* first = b.init ? b.init.as<Store>() : nullptr;
  const auto* carried = update ? update->a.as<Load>() : nullptr;
  if (!st || !first || !carried || carried->buffer != st->buffer || b.predicate)
    return invalid("block '" + b.name + "' is no plain reduction");
  if (!may_repeat(update->op, first->value))
    return invalid("the init of block '" + b.name + "' is not neutral");
  return PlainReduction{place.block, st, update, first->value};
}

Result<Kernel> factor_reduction(const Kernel& k, const Step& step, Partial form) {
  TW_ASSIGN(const PlainReduction reduction, plain_reduction(k, step));
  const Block& b = *reduction.block;
  const Store* st = reduction.store;
  const Binary* update = reduction.update;
  const auto axis = static_cast<size_t>(step.numbers[0]);
  const int64_t factor = step.numbers[1];
  Block part, rest;
  std::vector<Expr> partial_shape, part_at, rest_at;
  VarMap part_axes, rest_axes;
  std::vector<Var> part_loops, rest_loops;
  part.name = step.names[1];
  rest.name = b.name;
  auto add_lane = [&] {
    return add(part, part_loops, "lane", b.axes[axis], AxisKind::kParallel, Expr(factor));
  };
  Var lane;
  if (form == Partial::kRun) lane = add_lane();
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kParallel) continue;
    const std::string label = "i" + std::to_string(i);
    Var p = add(part, part_loops, label, b.axes[i], AxisKind::kParallel, b.axes[i].extent);
    Var r = add(rest, rest_loops, label, b.axes[i], AxisKind::kParallel, b.axes[i].extent);
    part_axes[b.axes[i].var.get()] = p;
    rest_axes[b.axes[i].var.get()] = r;
    partial_shape.push_back(b.axes[i].extent);
    part_at.push_back(p);
    rest_at.push_back(r);
  }
  Expr extent = b.axes[axis].extent;
  Var quotient_loop;
  Var quotient = [&] {
    Var q;
    for (size_t i = 0; i < b.axes.size(); ++i) {
      if (b.axes[i].kind != AxisKind::kReduce) continue;
      const std::string label = "r" + std::to_string(i);
      if (i == axis) {
        q = add(part, part_loops, label, b.axes[i], AxisKind::kReduce,
                simplify(ceildiv(extent, factor)));
        quotient_loop = part_loops.back();
      } else
        part_axes[b.axes[i].var.get()] =
            add(part, part_loops, label, b.axes[i], AxisKind::kReduce, b.axes[i].extent);
    }
    return q;
  }();
  if (form == Partial::kEveryFactor) lane = add_lane();
  const Var lane_loop = part_loops[form == Partial::kRun ? 0 : part_loops.size() - 1];
  Var rest_lane = add(rest, rest_loops, "lane", b.axes[axis], AxisKind::kReduce, Expr(factor));
  const Expr run = simplify(ceildiv(extent, factor));
  auto term = [&](const Expr& q, const Expr& l) {
    return form == Partial::kRun ? l * run + q : q * Expr(factor) + l;
  };
  part_axes[b.axes[axis].var.get()] = term(quotient, lane);
  const size_t at = form == Partial::kRun ? 0 : partial_shape.size();
  auto insert = [&](std::vector<Expr>& to, const Expr& e) {
    to.insert(to.begin() + static_cast<long>(at), e);
  };
  insert(partial_shape, Expr(factor));
  insert(part_at, lane);
  insert(rest_at, rest_lane);
  const Buffer partial =
      make_buffer(step.names[1], st->buffer->dtype, partial_shape, Scope::kWorkspace);
  part.init = store(partial, part_at, reduction.neutral);
  part.body = store(partial, part_at,
                    binary(update->op, load(partial, part_at), substitute(update->b, part_axes)));
  rest.init = substitute(b.init, rest_axes);
  std::vector<Expr> out_at;
  for (const Expr& e : st->indices) out_at.push_back(substitute(e, rest_axes));
  rest.body = store(st->buffer, out_at,
                    binary(update->op, load(st->buffer, out_at), load(partial, rest_at)));
  if (!(as_int(extent) && *as_int(extent) % factor == 0))
    part.predicate = term(quotient_loop, lane_loop) < extent;
  Stmt both = seq({nest(std::move(part), part_loops), nest(std::move(rest), rest_loops)});
  Stmt old = nest_of(k.body, b.name);
  if (!old) return invalid("block '" + b.name + "' has no nest of its own");
  return with_body(k, allocate(partial, replace_stmt(k.body, old, both)));
}

}  // namespace

// C[p] = combine over r of value(p, r) becomes partial[p, l] = combine over q of value(p, q *
// factor + l), then C[p] = combine over l of partial[p, l].
Result<Kernel> rfactor(const Kernel& k, const Step& step) {
  return factor_reduction(k, step, Partial::kEveryFactor);
}
// ... becomes partial[l, p] = combine over q of value(p, l * run + q), run = ceil(extent / parts).
Result<Kernel> split_reduction(const Kernel& k, const Step& step) {
  TW_ASSIGN(const PlainReduction reduction, plain_reduction(k, step));
  const Expr& extent = reduction.block->axes[static_cast<size_t>(step.numbers[0])].extent;
  const auto n = as_int(extent);
  const int64_t parts = step.numbers[1];
  if (!n || (*n + parts - 1) / parts * (parts - 1) >= *n)
    return invalid("runs of no term among " + std::to_string(parts) + " of block '" +
                   step.names[0] + "'");
  return factor_reduction(k, step, Partial::kRun);
}

}  // namespace tilewright::passes
