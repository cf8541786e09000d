#include "passes/count_operations.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Expr instances_of(const Block& b) {
  Expr n = 1;
  for (const BlockAxis& a : b.axes) n = n * a.extent;
  return n;
}
// Arithmetic on floats in one instance of a block, each node once; of a choice, the dearer side.
// For profiles: shared subexpressions count once, as code generation computes them once.
class CountOperations : public Rewriter {
 public:
  int64_t run(const Stmt& s) {
    rewrite(s);
    return count_;
  }
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (!seen_.insert(e.get()).second) return e;
    const bool arithmetic = e.kind() == NodeKind::kBinary || e.kind() == NodeKind::kUnary;
    if (arithmetic && is_float(e.dtype())) ++count_;
    const auto* s = e.as<Select>();
    if (!s) return Rewriter::rewrite(e);
    rewrite(s->condition);
    const int64_t before = count_;
    rewrite(s->a);
    const int64_t a = count_ - before;
    rewrite(s->b);
    count_ = before + std::max(a, count_ - before - a);
    return e;
  }

 private:
  std::set<const ExprNode*> seen_;
  int64_t count_ = 0;
};
int64_t operations(const Block& b) {
  int64_t n = CountOperations().run(b.body);
  // A sum of products of integers.
  const auto* st = b.init ? b.body.as<Store>() : nullptr;
  const auto* sum = st && st->buffer->dtype == DType::kInt32 ? st->value.as<Binary>() : nullptr;
  const auto* product = sum && sum->op == BinaryOp::kAdd ? sum->b.as<Binary>() : nullptr;
  if (product && product->op == BinaryOp::kMul) n += 2;
  return n;
}

}  // namespace

Expr count_flops(const Kernel& k) {
  // A block inside another runs for each of its instances_of.
  std::map<const StmtNode*, Expr> times;
  std::set<const StmtNode*> outer;
  for_each_stmt(k.body, [&](const Stmt& s) {
    const auto* b = s.as<Block>();
    if (!b) return;
    for_each_stmt(b->body, [&](const Stmt& inner) {
      if (!inner.as<Block>()) return;
      Expr& n = times.emplace(inner.get(), Expr(1)).first->second;
      n = n * instances_of(*b);
      outer.insert(s.get());
    });
  });
  Expr total = 0;
  for_each_stmt(k.body, [&](const Stmt& s) {
    const auto* b = s.as<Block>();
    if (!b || outer.count(s.get())) return;
    const auto inside = times.find(s.get());
    total = total + Expr(operations(*b)) * instances_of(*b) *
                        (inside == times.end() ? Expr(1) : inside->second);
  });
  return simplify(total);
}

}  // namespace tilewright::passes
