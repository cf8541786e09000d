// One fork for the parallel loops of a kernel that run one after the other: a fork and a join for
// each cost more than many of them take. The kernel runs as a team (stmts.h) whose members go
// through the body together, as in an OpenMP parallel region: a parallel loop is a work-sharing
// loop with a barrier behind it, and what stands beside such loops becomes a loop of one iteration
// (`single`).
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool has_parallel_loop(const Stmt& s) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& inner) {
    const auto* f = inner.as<For>();
    found |= f && f->loop_kind == LoopKind::kParallel;
  });
  return found;
}
bool is_used_in_parallel(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& inner) {
    const auto* f = inner.as<For>();
    if (!f || f->loop_kind != LoopKind::kParallel) return;
    for_each_stmt(f->body, [&](const Stmt& x) {
      const auto* st = x.as<Store>();
      const auto* tile = x.as<DotTile>();
      found |= st && st->buffer == buffer;
      found |= tile &&
               (tile->sum.buffer == buffer || tile->a.buffer == buffer || tile->b.buffer == buffer);
    });
    for_each_expr(f->body, [&](const Expr& x) {
      const auto* l = x.as<Load>();
      found |= l && l->buffer == buffer;
    });
  });
  return found;
}
bool reads_memory(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& inner) { found |= inner.kind() == NodeKind::kLoad; });
  return found;
}

class Phases {
 public:
  // Null where there are fewer than two phases, or no way that all members take alike.
  Stmt run(const Stmt& body) {
    Stmt phases = walk(body, false);
    return several_ ? phases : Stmt();
  }

 private:
  // Null when a team cannot walk through s.
  Stmt walk(const Stmt& s, bool repeated) {
    if (!has_parallel_loop(s)) return once(s, repeated);
    if (const auto* f = s.as<For>()) {
      if (reads_memory(f->extent)) return nullptr;
      if (f->loop_kind == LoopKind::kParallel) {
        add_phase(repeated);
        return s;
      }
      Stmt body = walk(f->body, true);
      return body ? for_loop(f->var, f->extent, body, f->loop_kind) : Stmt();
    }
    if (const auto* l = s.as<Let>()) {
      Stmt body = reads_memory(l->value) ? Stmt() : walk(l->body, repeated);
      return body ? let(l->var, l->value, body) : Stmt();
    }
    if (const auto* i = s.as<If>()) {
      if (reads_memory(i->condition)) return nullptr;
      Stmt then = walk(i->then, repeated);
      Stmt otherwise = i->otherwise ? walk(i->otherwise, repeated) : Stmt();
      if (!then || (i->otherwise && !otherwise)) return nullptr;
      return if_then(i->condition, then, otherwise);
    }
    if (const auto* a = s.as<Allocate>()) {
      // Each worker has registers of its own; phases of one iteration are all the first one's.
      if (a->buffer->scope == Scope::kLocal && is_used_in_parallel(a->body, a->buffer))
        return nullptr;
      Stmt body = walk(a->body, repeated);
      return body ? allocate(a->buffer, body) : Stmt();
    }
    const auto* all = s.as<Seq>();
    return all ? walk_all(all->stmts, repeated) : Stmt();
  }
  Stmt walk_all(const std::vector<Stmt>& stmts, bool repeated) {
    std::vector<Stmt> phases, serial;
    auto end_serial = [&] {
      if (!serial.empty()) phases.push_back(once(seq(serial), repeated));
      serial.clear();
    };
    for (const Stmt& s : stmts) {
      if (!has_parallel_loop(s)) {
        serial.push_back(s);
        continue;
      }
      end_serial();
      phases.push_back(walk(s, repeated));
      if (!phases.back()) return nullptr;
    }
    end_serial();
    return seq(std::move(phases));
  }
  // OpenMP's `single`: a parallel loop of one iteration, which is the first worker's.
  Stmt once(const Stmt& s, bool repeated) {
    add_phase(repeated);
    return for_loop(Var("once"), Expr(1), s, LoopKind::kParallel);
  }
  void add_phase(bool repeated) {
    several_ |= repeated || any_;
    any_ = true;
  }

  bool any_ = false, several_ = false;
};

}  // namespace

Kernel form_phases(Kernel kernel) {
  Stmt phases = has_parallel_loop(kernel.body) ? Phases().run(kernel.body) : Stmt();
  kernel.team = static_cast<bool>(phases);
  if (phases) kernel.body = phases;
  return kernel;
}

}  // namespace tilewright::passes
