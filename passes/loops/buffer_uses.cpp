#include "passes/loops/buffer_uses.h"

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class CollectUses {
 public:
  explicit CollectUses(const BufferNode* buffer) : buffer_(buffer) {}
  BufferUses uses;
  void visit(const Stmt& s) {
    if (const auto* f = s.as<For>()) {
      visit(f->extent);
      loops_.push_back(f);
      visit(f->body);
      loops_.pop_back();
    } else if (const auto* q = s.as<Seq>()) {
      for (const Stmt& x : q->stmts) visit(x);
    } else if (const auto* a = s.as<Allocate>()) {
      visit(a->body);
    } else if (const auto* i = s.as<If>()) {
      visit(i->condition);
      visit(i->then);
      if (i->otherwise) visit(i->otherwise);
    } else if (const auto* l = s.as<Let>()) {
      visit(l->value);
      visit(l->body);
    } else if (const auto* w = s.as<While>()) {
      visit(w->condition);
      visit(w->body);
      uses.opaque |= mentions(w->body);
    } else if (const auto* st = s.as<Store>()) {
      if (st->buffer.get() == buffer_) uses.all.push_back({loops_, st->indices, true});
      for (const Expr& e : st->indices) visit(e);
      visit(st->value);
    }
  }

 private:
  void visit(const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>(); l && l->buffer.get() == buffer_)
        uses.all.push_back({loops_, l->indices});
    });
  }
  bool mentions(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& x) {
      if (const auto* st = x.as<Store>()) found |= st->buffer.get() == buffer_;
    });
    return found;
  }
  const BufferNode* buffer_;
  std::vector<const For*> loops_;
};

class LeadAccesses : public Rewriter {
 public:
  LeadAccesses(const Buffer& from, const Buffer& to, const MapIndices& map, Expr start)
      : from_(from), to_(to), map_(map), start_(std::move(start)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l || l->buffer != from_) return Rewriter::rewrite(e);
    return load(to_, mapped(l->indices));
  }
  Stmt rewrite(const Stmt& s) override {
    if (const auto* p = s.as<Prefetch>(); p && start_ && p->buffer == from_)
      return prefetch_line(to_, simplify(p->offset - start_), p->prefetch_kind);
    const auto* st = s.as<Store>();
    if (!st || st->buffer != from_) return Rewriter::rewrite(s);
    forget();
    return store(to_, mapped(st->indices), rewrite(st->value), nullptr, st->store_kind);
  }

 private:
  std::vector<Expr> mapped(const std::vector<Expr>& indices) {
    std::vector<Expr> inside;
    for (const Expr& index : indices) inside.push_back(rewrite(index));
    return map_(inside);
  }
  const Buffer &from_, &to_;
  const MapIndices& map_;
  const Expr start_;
};

}  // namespace

BufferUses uses_of(const BufferNode& buffer, const Stmt& s) {
  CollectUses collect(&buffer);
  collect.visit(s);
  return std::move(collect.uses);
}

Stmt lead_accesses(const Stmt& s, const Buffer& from, const Buffer& to, const MapIndices& map,
                   const Expr& start) {
  return LeadAccesses(from, to, map, start).rewrite(s);
}

}  // namespace tilewright::passes
