#include "codegen/cpu/captured.h"

#include <algorithm>

#include "ir/loops/rewrite.h"

namespace tilewright::cpu {

using namespace ir;

// Free variables of the loop's body that the frame around it defines (closure conversion). Sorted
// by name, buffers by first use: code must not depend on the addresses of nodes.
Captured captured_by(const For& loop, const Frame& around) {
  Captured c;
  for (const ExprNode* v : free_vars(loop.body))
    if (v != loop.var.get() && around.vars.count(v)) c.vars.push_back(v);
  std::sort(c.vars.begin(), c.vars.end(), [](const ExprNode* a, const ExprNode* b) {
    return static_cast<const VarNode*>(a)->name < static_cast<const VarNode*>(b)->name;
  });
  auto add = [&](const Buffer& x) {
    if (around.buffers.count(x.get()) &&
        std::find(c.buffers.begin(), c.buffers.end(), x.get()) == c.buffers.end())
      c.buffers.push_back(x.get());
  };
  for_each_stmt(loop.body, [&](const Stmt& x) {
    if (const auto* st = x.as<Store>()) add(st->buffer);
    if (const auto* p = x.as<Prefetch>()) add(p->buffer);
    if (const auto* t = x.as<DotTile>())
      for (const TileOperand* o : {&t->sum, &t->a, &t->b}) add(o->buffer);
  });
  for_each_expr(loop.body, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) add(l->buffer);
  });
  return c;
}

}  // namespace tilewright::cpu
