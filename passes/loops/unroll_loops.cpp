#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class UnrollLoops : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (!f || f->loop_kind != LoopKind::kUnrolled) return Rewriter::rewrite(s);
    auto n = as_int(f->extent);
    Stmt body = rewrite(f->body);
    if (!n) return for_loop(f->var, f->extent, body);  // a symbolic tail: runs as a loop
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *n; ++i) {
      Stmt copy = substitute(body, {{f->var.get(), Expr(i)}});
      copies.push_back(i == 0 ? copy : clone_with_fresh_names(copy, "_" + std::to_string(i)));
    }
    return seq(std::move(copies));
  }
};

}  // namespace

Stmt unroll_loops(const Stmt& s) { return UnrollLoops().rewrite(s); }

}  // namespace tilewright::passes
