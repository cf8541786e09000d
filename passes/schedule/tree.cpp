// Names are how traces refer to loops, blocks and buffers, so they are unique in a kernel under
// schedule; look-ups report none and several alike. Trees are immutable: an edit rebuilds the path
// from the root to the edited statement (path copying).
#include "passes/schedule/tree.h"

#include "ir/loops/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Innermost blocks with the loops around them, in program order.
void collect(const Stmt& s, std::vector<const For*>& loops, std::vector<BlockPlace>& out) {
  if (const auto* f = s.as<For>()) {
    loops.push_back(f);
    collect(f->body, loops, out);
    loops.pop_back();
  } else if (const auto* q = s.as<Seq>()) {
    for (const Stmt& x : q->stmts) collect(x, loops, out);
  } else if (const auto* a = s.as<Allocate>()) {
    collect(a->body, loops, out);
  } else if (const auto* b = s.as<Block>()) {
    std::vector<BlockPlace> inner;
    collect(b->body, loops, inner);
    if (inner.empty())
      out.push_back({s, b, loops});
    else
      out.insert(out.end(), inner.begin(), inner.end());
  } else if (const auto* i = s.as<If>()) {
    collect(i->then, loops, out);
    if (i->otherwise) collect(i->otherwise, loops, out);
  } else if (const auto* l = s.as<Let>()) {
    collect(l->body, loops, out);
  }
}

class Replace : public Rewriter {
 public:
  Replace(const StmtNode* old, std::function<Stmt(const Stmt&)> edit)
      : old_(old), edit_(std::move(edit)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override { return s.get() == old_ ? edit_(s) : Rewriter::rewrite(s); }

 private:
  const StmtNode* old_;
  std::function<Stmt(const Stmt&)> edit_;
};

size_t count_blocks(const Stmt& s) {
  std::vector<const For*> loops;
  std::vector<BlockPlace> blocks;
  collect(s, loops, blocks);
  return blocks.size();
}

}  // namespace

std::vector<BlockPlace> all_blocks(const Stmt& root) {
  std::vector<const For*> loops;
  std::vector<BlockPlace> out;
  collect(root, loops, out);
  return out;
}

namespace {

// The loops that a schedule can name: all but those inside a block's own body.
void collect_loops(const Stmt& s, std::vector<const For*>& loops) {
  if (const auto* f = s.as<For>()) {
    loops.push_back(f);
    collect_loops(f->body, loops);
  } else if (const auto* q = s.as<Seq>()) {
    for (const Stmt& x : q->stmts) collect_loops(x, loops);
  } else if (const auto* a = s.as<Allocate>()) {
    collect_loops(a->body, loops);
  } else if (const auto* b = s.as<Block>()) {
    if (count_blocks(b->body)) collect_loops(b->body, loops);
  } else if (const auto* i = s.as<If>()) {
    collect_loops(i->then, loops);
    if (i->otherwise) collect_loops(i->otherwise, loops);
  } else if (const auto* l = s.as<Let>()) {
    collect_loops(l->body, loops);
  }
}

// The only one of a name; `none` and `several` are the errors, before the name.
template <typename T>
Result<T> only(std::vector<T> found, const char* none, const char* several,
               const std::string& name) {
  if (found.empty()) return invalid(none + ("'" + name + "'"));
  if (found.size() > 1) return invalid(std::to_string(found.size()) + several + "'" + name + "'");
  return std::move(found[0]);
}

std::vector<Buffer> all_buffers(const Kernel& k) {
  std::vector<Buffer> all = k.params;
  for_each_stmt(k.body, [&](const Stmt& s) {
    if (const auto* a = s.as<Allocate>()) all.push_back(a->buffer);
  });
  return all;
}

}  // namespace

Result<BlockPlace> find_block(const Stmt& root, const std::string& name) {
  std::vector<BlockPlace> found = all_blocks(root);
  std::erase_if(found, [&](const BlockPlace& p) { return p.block->name != name; });
  return only(std::move(found), "no block ", " blocks are called ", name);
}
Result<const For*> find_loop(const Stmt& root, const std::string& name) {
  std::vector<const For*> found;
  collect_loops(root, found);
  std::erase_if(found, [&](const For* f) { return f->var.name() != name; });
  return only(std::move(found), "no loop ", " loops are called ", name);
}
Result<Buffer> find_buffer(const Kernel& k, const std::string& name) {
  std::vector<Buffer> found = all_buffers(k);
  std::erase_if(found, [&](const Buffer& b) { return b->name != name; });
  return only(std::move(found), "no buffer ", " buffers are called ", name);
}

std::string fresh_block_name(const Stmt& root, const std::string& name) {
  std::set<std::string> taken;
  for (const BlockPlace& p : all_blocks(root)) taken.insert(p.block->name);
  std::string fresh = name;
  for (int n = 2; taken.count(fresh); ++n) fresh = name + std::to_string(n);
  return fresh;
}

std::string repeated_name(const Kernel& k) {
  std::set<std::string> loops, blocks, buffers;
  std::vector<const For*> all;
  collect_loops(k.body, all);
  for (const For* f : all)
    if (!loops.insert(f->var.name()).second) return "loop '" + f->var.name() + "'";
  for (const BlockPlace& p : all_blocks(k.body))
    if (!blocks.insert(p.block->name).second) return "block '" + p.block->name + "'";
  for (const Buffer& b : all_buffers(k))
    if (!buffers.insert(b->name).second) return "buffer '" + b->name + "'";
  return "";
}

Stmt replace_loop(const Stmt& root, const For* loop, const std::function<Stmt(const For&)>& edit) {
  return Replace(loop, [&](const Stmt& s) { return edit(*s.as<For>()); }).rewrite(root);
}
Stmt replace_stmt(const Stmt& root, const Stmt& old, const Stmt& replacement) {
  return Replace(old.get(), [&](const Stmt&) { return replacement; }).rewrite(root);
}

// The outermost loop around the block, if `alone` of those around no other one.
static Stmt find_nest(const Stmt& root, const std::string& block, bool alone) {
  Stmt found;
  std::function<void(const Stmt&)> visit = [&](const Stmt& s) {
    bool holds = false;
    for (const BlockPlace& p : all_blocks(s)) holds |= p.block->name == block;
    if (!holds || found) return;
    const bool loop_or_block =
        s.kind() == NodeKind::kFor || (s.as<Block>() && s.as<Block>()->name == block);
    if (loop_or_block && (!alone || count_blocks(s) == 1)) {
      found = s;
      return;
    }
    if (const auto* f = s.as<For>())
      visit(f->body);
    else if (const auto* q = s.as<Seq>())
      for (const Stmt& x : q->stmts) visit(x);
    else if (const auto* a = s.as<Allocate>())
      visit(a->body);
    else if (const auto* b = s.as<Block>())
      visit(b->body);
    else if (const auto* l = s.as<Let>())
      visit(l->body);
  };
  visit(root);
  return found;
}
Stmt nest_of(const Stmt& root, const std::string& block) { return find_nest(root, block, true); }
Stmt outermost_nest_of(const Stmt& root, const std::string& block) {
  return find_nest(root, block, false);
}

Touched touched(const Stmt& s) {
  Touched t;
  for_each_expr(s, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) t.reads.insert(l->buffer.get());
  });
  for_each_stmt(s, [&](const Stmt& x) {
    if (const auto* st = x.as<Store>()) t.writes.insert(st->buffer.get());
  });
  return t;
}
bool feeds_only_parallel_axes(const Stmt& body, const Var& loop) {
  bool ok = true;
  for_each_stmt(body, [&](const Stmt& s) {
    const auto* b = s.as<Block>();
    if (!b) return;
    for (size_t i = 0; i < b->axes.size(); ++i)
      if (b->axes[i].kind != AxisKind::kParallel && uses_var(b->bindings[i], loop)) ok = false;
  });
  return ok;
}

Kernel with_buffer_replaced(const Kernel& k, const BufferNode* old, const Buffer& replacement) {
  Kernel r = k;
  r.body = replace_buffers(k.body, {{old, replacement}});
  for (Buffer& p : r.params)
    if (p.get() == old) p = replacement;
  return r;
}
Kernel with_body(const Kernel& k, Stmt body) {
  Kernel r = k;
  r.body = std::move(body);
  return r;
}

}  // namespace tilewright::passes
