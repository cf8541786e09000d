// Where buffers too large for registers and the stack lie: one after the other in the block of
// memory that the session gives to each call, or to each worker. Nothing is reused: place_buffers
// has shrunk what could be, and sessions share the memory among the calls of a model.
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool stands_on_stack(const BufferNode& b) {
  if (b.scope != Scope::kLocal) return false;
  int64_t bytes = byte_size(b.dtype);
  for (const Expr& n : b.shape) {
    if (as_int(n).value_or(INT64_MAX) > kMostLocalBytes) return false;
    bytes *= *as_int(n);
    if (bytes > kMostLocalBytes) return false;
  }
  return true;
}

class PlaceInWorkspace : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    if (const auto* f = s.as<For>(); f && f->loop_kind == LoopKind::kParallel) {
      ++parallel_;
      Stmt loop = Rewriter::rewrite(s);
      --parallel_;
      return loop;
    }
    const auto* a = s.as<Allocate>();
    if (!a || stands_on_stack(*a->buffer)) return Rewriter::rewrite(s);
    if (a->buffer->scope == Scope::kLocal) {
      auto placed = std::make_shared<BufferNode>(*a->buffer);
      placed->scope = Scope::kWorkspace;
      return rewrite(allocate(placed, replace_buffers(a->body, {{a->buffer.get(), placed}})));
    }
    // Buffers inside a parallel loop are of one iteration: each worker has its own.
    Expr& end = parallel_ ? bytes_.worker : bytes_.call;
    Expr offset = simplify(end);
    Expr elements = 1;
    for (const Expr& extent : a->buffer->shape) elements = elements * extent;
    const Expr bytes = simplify(elements) * Expr(byte_size(a->buffer->dtype));
    end = end + ceildiv(bytes, kWorkspaceAlignment) * Expr(kWorkspaceAlignment);
    return allocate(a->buffer, rewrite(a->body), offset);
  }
  Workspace total() const { return {simplify(bytes_.call), simplify(bytes_.worker)}; }

 private:
  int parallel_ = 0;  // loops around
  Workspace bytes_;
};

}  // namespace

Kernel plan_workspace(Kernel kernel) {
  PlaceInWorkspace places;
  kernel.body = places.rewrite(kernel.body);
  kernel.workspace = places.total();
  return kernel;
}

}  // namespace tilewright::passes
