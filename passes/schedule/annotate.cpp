// unroll, vectorize, parallelize and tensorize: how a loop is to run; stream and prefetch: how a
// block stores and reads.
#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Beyond, code grows without gain: the instruction cache holds some thousands of instructions.
constexpr int64_t kMostUnrolled = 256, kMostLanes = 256;

Result<Kernel> set_kind(const Kernel& k, const For* loop, LoopKind kind) {
  return with_body(k, replace_loop(k.body, loop, [&](const For& f) {
                     return for_loop(f.var, f.extent, f.body, kind);
                   }));
}

}  // namespace

Result<Kernel> unroll(const Kernel& k, const Step& step) {
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[0]));
  auto n = as_int(loop->extent);
  if (!n || *n > kMostUnrolled)
    return invalid("loop '" + step.names[0] + "' has no small constant extent");
  return set_kind(k, loop, LoopKind::kUnrolled);
}

// A reduction may be vectorized: its lanes are then combined in one step. An ordered axis may not.
Result<Kernel> vectorize(const Kernel& k, const Step& step) {
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[0]));
  auto n = as_int(loop->extent);
  if (!n || *n > kMostLanes)
    return invalid("loop '" + step.names[0] + "' has no small constant extent");
  for (const BlockPlace& p : all_blocks(loop->body))
    for (size_t i = 0; i < p.block->axes.size(); ++i)
      if (p.block->axes[i].kind == AxisKind::kOrdered && uses_var(p.block->bindings[i], loop->var))
        return invalid("loop '" + step.names[0] + "' feeds an ordered axis");
  return set_kind(k, loop, LoopKind::kVectorized);
}

// Iterations of a parallel loop are independent iff the loop feeds parallel axes alone.
Result<Kernel> parallelize(const Kernel& k, const Step& step) {
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[0]));
  if (!feeds_only_parallel_axes(loop->body, loop->var))
    return invalid("loop '" + step.names[0] + "' feeds an axis that is not parallel");
  return set_kind(k, loop, LoopKind::kParallel);
}

namespace {
// Around a loop over terms: the rows of a tile, its groups of terms, and columns in vectors.
Status check_tile(const For& rows) {
  const auto name = [](const For& f) { return "loop '" + f.var.name() + "'"; };
  auto small = [&](const For& f) -> Status {
    const auto n = as_int(f.extent);
    if (n && *n >= 1 && *n <= DotTile::kMostRows) return {};
    return invalid(name(f) + " has no constant extent of at most " +
                   std::to_string(DotTile::kMostRows));
  };
  const auto* groups = rows.body.as<For>();
  const auto* columns = groups ? groups->body.as<For>() : nullptr;
  const auto* terms = columns ? columns->body.as<For>() : nullptr;
  if (!terms || terms->loop_kind != LoopKind::kDot || columns->loop_kind != LoopKind::kVectorized)
    return invalid(name(rows) + " holds no nest of groups, vectors of columns and terms of dots");
  for (const For* f : {&rows, groups, columns}) TW_RETURN_IF_ERROR(small(*f));
  const Block& b = *terms->body.as<Block>();
  for (size_t i = 0; i < b.axes.size(); ++i) {
    const bool reduces = b.axes[i].kind == AxisKind::kReduce;
    if (uses_var(b.bindings[i], rows.var) && reduces)
      return invalid(name(rows) + " feeds a reduction");
    if (uses_var(b.bindings[i], groups->var) && !reduces)
      return invalid(name(*groups) + " feeds no reduction");
  }
  return {};
}
}  // namespace

Result<Kernel> tensorize(const Kernel& k, const Step& step) {
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[0]));
  if (step.names[1] == "dot_tile") {
    TW_RETURN_IF_ERROR(check_tile(*loop));
    return set_kind(k, loop, LoopKind::kDot);
  }
  if (step.names[1] != "dot")
    return invalid("there is no instruction '" + step.names[1] + "', only dot and dot_tile");
  const auto* b = loop->body.as<Block>();
  if (!b) return invalid("loop '" + step.names[0] + "' holds more than a block");
  if (b->init) return invalid("block '" + b->name + "' still has its init");
  const auto* store = b->body.as<Store>();
  DType left = DType::kInt32;
  bool right = false;
  for_each_expr(b->body, [&](const Expr& e) {
    if (e.kind() != NodeKind::kLoad) return;
    if (dot_terms(e.dtype())) left = e.dtype();
    right |= e.dtype() == DType::kInt8 || e.dtype() == dot_partner(left);
  });
  if (!store || !dot_terms(left) || store->buffer->dtype != dot_sum(left) || !right)
    return invalid(
        "block '" + b->name +
        "' is no sum in i32 of products of u8 and i8 or of i16 and signed integers, nor " +
        "one in f32 of bf16");
  if (as_int(loop->extent) != dot_terms(left))
    return invalid("loop '" + step.names[0] + "' has not the " + std::to_string(dot_terms(left)) +
                   " terms of a dot product");
  return set_kind(k, loop, LoopKind::kDot);
}

Result<Kernel> stream(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  const Block& b = *place.block;
  const auto* st = b.body.as<Store>();
  if (!st || b.init) return invalid("block '" + b.name + "' is no plain store");
  // Other threads see it when the tasks that store it are done, not before.
  const bool in_tasks = !place.loops.empty() && place.loops[0]->loop_kind == LoopKind::kParallel;
  if (st->buffer->scope != Scope::kParam && !(in_tasks && st->buffer->scope == Scope::kWorkspace))
    return invalid("'" + st->buffer->name + "' is no parameter of the kernel, and not of tasks");
  for (const BlockPlace& p : all_blocks(k.body)) {
    const bool later = in_tasks && !p.loops.empty() && p.loops[0] != place.loops[0];
    if (!later && touched(p.stmt).reads.count(st->buffer.get()))
      return invalid("the kernel reads '" + st->buffer->name + "'");
  }
  Block streamed = b;
  streamed.body = store(st->buffer, st->indices, st->value, st->mask, StoreKind::kStreamed);
  return with_body(k, replace_stmt(k.body, place.stmt, block(std::move(streamed))));
}

namespace {
// The first load of a buffer brings what lies further on near.
class Prefetch : public Rewriter {
 public:
  Prefetch(std::string buffer, int64_t ahead) : buffer_(std::move(buffer)), ahead_(ahead) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l || found_ || l->buffer->name != buffer_) return Rewriter::rewrite(e);
    found_ = true;
    return load(l->buffer, l->indices, l->mask, ahead_);
  }
  bool found() const { return found_; }

 private:
  std::string buffer_;
  int64_t ahead_;
  bool found_ = false;
};
}  // namespace

Result<Kernel> prefetch(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  Prefetch rewriter(step.names[1], step.numbers[0]);
  Block near = *place.block;
  near.body = rewriter.rewrite(near.body);
  if (!rewriter.found())
    return invalid("block '" + near.name + "' does not read '" + step.names[1] + "'");
  return with_body(k, replace_stmt(k.body, place.stmt, block(std::move(near))));
}

}  // namespace tilewright::passes
