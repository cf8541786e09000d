// Places near the border of what is read (the edge that padding repeats, the element that it
// mirrors) are chosen by minima, maxima and selects within indices. The iterations for which all
// that is decided become a loop of their own, whose vectors lie side by side.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Iterations [begin, end) of a loop.
struct Inside {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class PeelBorders : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (!f) return Rewriter::rewrite(s);
    const auto n = as_int(f->extent);
    if (f->loop_kind != LoopKind::kSerial || !n || !is_innermost(f->body))
      return Rewriter::rewrite(s);
    return peel(s, *f, *n, kMostConditions);
  }

 private:
  static constexpr int kMostConditions = 4;  // one within the other

  // Nothing but vectors of one store each below.
  static bool is_innermost(const Stmt& body) {
    bool innermost = true, vectors = false;
    int stores = 0;
    for_each_stmt(body, [&](const Stmt& s) {
      if (const auto* f = s.as<For>()) {
        innermost &= f->loop_kind == LoopKind::kVectorized;
        vectors = true;
      } else if (s.kind() == NodeKind::kStore) {
        ++stores;
      } else {
        innermost &= s.kind() == NodeKind::kIf;
      }
    });
    return innermost && vectors && stores == 1;
  }

  // First part, inner part, last part; the inner one again for the next condition.
  static Stmt peel(const Stmt& s, const For& f, int64_t n, int depth) {
    const auto inside = depth > 0 ? decided(f, n) : std::nullopt;
    if (!inside) return s;
    auto part = [&](int64_t begin, int64_t end, const char* suffix) {
      const Var v(f.var.name() + suffix);
      Stmt body =
          substitute(clone_with_fresh_names(f.body, suffix), {{f.var.get(), v + Expr(begin)}});
      return simplify_loops(for_loop(v, Expr(end - begin), body, f.loop_kind));
    };
    std::vector<Stmt> parts;
    if (inside->begin > 0) parts.push_back(part(0, inside->begin, "_first"));
    Stmt main = part(inside->begin, inside->end, "_inner");
    const auto* loop = main.as<For>();
    const bool more = loop && same_expr(loop->extent, Expr(inside->size()));
    parts.push_back(more ? peel(main, *loop, inside->size(), depth - 1) : main);
    if (inside->end < n) parts.push_back(part(inside->end, n, "_last"));
    return seq(std::move(parts));
  }

  // The longest run of iterations for which one of the choices within indices is decided, where
  // there are others; nothing without such a choice.
  static std::optional<Inside> decided(const For& f, int64_t n) {
    Ranges lanes;
    for_each_stmt(f.body, [&](const Stmt& s) {
      if (const auto* g = s.as<For>()) lanes.set(g->var, g->extent);
    });
    std::optional<Inside> found;
    auto visit = [&](const Expr& e) {
      const auto* b = e.as<Binary>();
      if (found || !b || b->a.dtype() != DType::kInt64 || !chooses(b->op)) return;
      const auto run = decided(*b, f.var, n, lanes);
      if (run && run->size() < n) found = run;
    };
    for_each_expr(f.body, [&](const Expr& e) {
      if (const auto* l = e.as<Load>())
        for (const Expr& i : l->indices) for_each_expr(i, visit);
    });
    return found;
  }
  static bool chooses(BinaryOp op) {
    return op == BinaryOp::kMin || op == BinaryOp::kMax || op == BinaryOp::kLt ||
           op == BinaryOp::kLe || op == BinaryOp::kGt || op == BinaryOp::kGe;
  }
  // The longest run of iterations in which the choice falls the same way for all lanes.
  static std::optional<Inside> decided(const Binary& choice, const Var& v, int64_t n,
                                       const Ranges& lanes) {
    const Linear l = to_linear(choice.a - choice.b);
    const auto step = l.coefficient_of(v);
    if (!step || !step->is_constant() || step->constant == 0 || n > kMostIterations)
      return std::nullopt;
    const Interval rest = interval(to_expr(l.without(v)), lanes);
    if (!rest.low || !rest.high) return std::nullopt;
    // Where a and b are equal, a < b falls as a > b does, and a <= b as a < b.
    const bool as_less = choice.op == BinaryOp::kLe || choice.op == BinaryOp::kGt;
    auto falls = [&](int64_t i) {
      const int64_t at = step->constant * i, low = at + *rest.low, high = at + *rest.high;
      return low > 0 || (low == 0 && !as_less) ? 1 : high < 0 || (high == 0 && as_less) ? -1 : 0;
    };
    Inside best, run;
    for (int64_t i = 0; i < n; ++i) {
      const int way = falls(i);
      if (way == 0 || i == 0 || way != falls(i - 1)) run.begin = i;
      run.end = way == 0 ? i : i + 1;
      if (run.size() > best.size()) best = run;
    }
    return best.size() > 0 ? std::optional(best) : std::nullopt;
  }
  static constexpr int64_t kMostIterations = 4096;
};

}  // namespace

Stmt peel_borders(const Stmt& s) { return PeelBorders().rewrite(s); }

}  // namespace tilewright::passes
