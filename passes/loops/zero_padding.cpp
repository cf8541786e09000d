// Zeros behind the last element of a dimension that a layout splits into blocks:
//
//    C: f32[5, 7] layout(d1/4, d0, d1%4)      for v0 in 0..5
//                                               for v1 in 0..1
//                                                 C[v0, 7 + v1] = 0
//
// Tiles read whole panels, and what their unused lanes make of the padding is dropped. That is right
// whatever lies there, but not as fast: what another value left in the memory may be denormals, of which
// a product takes microcode a hundred times as long. Constants are packed with zeros there (ir/loops/layout).
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Stmt zeros_behind(const Buffer& b, const LayoutAxis& blocks) {
  const auto dim = static_cast<size_t>(blocks.dim);
  std::vector<Var> loops;
  std::vector<Expr> extents = b->shape, at;
  extents[dim] = ceildiv(b->shape[dim], blocks.divisor) * blocks.divisor - b->shape[dim];
  for (size_t d = 0; d < extents.size(); ++d) {
    loops.emplace_back("v" + std::to_string(d));
    at.push_back(d == dim ? b->shape[d] + loops[d] : loops[d]);
  }
  Stmt s = store(b, at, cast(b->dtype, Expr(0)));
  // The rest of a block lies side by side.
  std::vector<size_t> order;
  for (size_t d = 0; d < extents.size(); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  for (size_t k = order.size(); k-- > 0;) s = for_loop(loops[order[k]], extents[order[k]], s);
  return s;
}

std::vector<Stmt> zeros_in(const Buffer& b) {
  std::vector<Stmt> nests;
  for (const LayoutAxis& a : b->layout) {
    if (a.divisor == 1 || a.modulus != 0) continue;
    const auto n = as_int(b->shape[static_cast<size_t>(a.dim)]);
    if (!n || *n % a.divisor != 0) nests.push_back(zeros_behind(b, a));
  }
  return nests;
}

// Before all that is done in a chain of allocations, so that no parallel loops are parted by them.
class ZeroPadding : public Rewriter {
 public:
  explicit ZeroPadding(std::vector<Stmt> zeros) : zeros_(std::move(zeros)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    if (const auto* a = s.as<Allocate>()) {
      const std::vector<Stmt> more = zeros_in(a->buffer);
      zeros_.insert(zeros_.end(), more.begin(), more.end());
      return allocate(a->buffer, rewrite(a->body));
    }
    if (zeros_.empty()) return Rewriter::rewrite(s);
    std::vector<Stmt> all;
    all.swap(zeros_);
    all.push_back(Rewriter::rewrite(s));
    return seq(std::move(all));
  }

 private:
  std::vector<Stmt> zeros_;  // of the buffers that are allocated here
};

}  // namespace

Kernel zero_padding(Kernel kernel) {
  std::vector<Stmt> zeros;
  for (const Buffer& b : kernel.params) {
    bool written = false;
    for_each_stmt(kernel.body, [&](const Stmt& s) {
      const auto* st = s.as<Store>();
      written |= st && st->buffer == b;
    });
    if (!written) continue;
    const std::vector<Stmt> more = zeros_in(b);
    zeros.insert(zeros.end(), more.begin(), more.end());
  }
  kernel.body = ZeroPadding(std::move(zeros)).rewrite(kernel.body);
  return kernel;
}

}  // namespace tilewright::passes
