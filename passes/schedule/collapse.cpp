// Loop collapsing: i = f / n, j = f % n. Simplification takes the quotients out again where
// addresses run on from j to i, which is when fusing pays.
#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The kind of both loops, if it is legal for the joined one.
Result<Kernel> with_kind(Kernel k, const std::string& loop, LoopKind kind) {
  const Step step{"", {loop, "dot"}, {}};
  switch (kind) {
    case LoopKind::kSerial: return k;
    case LoopKind::kParallel: return parallelize(k, step);
    case LoopKind::kVectorized: return vectorize(k, step);
    case LoopKind::kUnrolled: return unroll(k, step);
    case LoopKind::kDot: return tensorize(k, step);
  }
  return k;
}

}  // namespace

Result<Kernel> collapse(const Kernel& k, const Step& step) {
  TW_ASSIGN(const For* outer, find_loop(k.body, step.names[0]));
  const For* inner = outer->body.as<For>();
  if (!inner || inner->var.name() != step.names[1])
    return invalid("loop '" + step.names[1] + "' is not directly inside '" + step.names[0] + "'");
  if (outer->loop_kind != inner->loop_kind)
    return invalid("loop '" + step.names[0] + "' is " + std::string(name(outer->loop_kind)) +
                   " and '" + step.names[1] + "' is " + std::string(name(inner->loop_kind)));
  Var fused(step.names[2]);
  Kernel r = with_body(k, replace_loop(k.body, outer, [&](const For&) {
                         VarMap values{{outer->var.get(), floordiv(fused, inner->extent)},
                                       {inner->var.get(), floormod(fused, inner->extent)}};
                         // Without a quotient where one side runs once: it would not cancel for
                         // lanes beyond the extent.
                         if (is_one(outer->extent))
                           values = {{outer->var.get(), Expr(0)}, {inner->var.get(), fused}};
                         else if (is_one(inner->extent))
                           values = {{outer->var.get(), fused}, {inner->var.get(), Expr(0)}};
                         Stmt body = substitute(inner->body, values);
                         return for_loop(fused, simplify(outer->extent * inner->extent), body);
                       }));
  return with_kind(std::move(r), step.names[2], outer->loop_kind);
}

}  // namespace tilewright::passes
