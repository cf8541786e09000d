// Multidimensional accesses become addresses: the layout's physical axes in Horner's form,
// innermost last, so that a row-major f32[n, m] at (i, j) is i * m + j. From here on strides are
// visible to vectorize_loops, and layouts are gone but for the parameters' own.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Row-major is the layout in which each dimension is a physical axis.
Layout layout_of(const BufferNode& b) {
  if (!b.layout.empty()) return b.layout;
  std::vector<int> order;
  for (int d = 0; d < b.rank(); ++d) order.push_back(d);
  return permuted_layout(order);
}
Expr axis_extent(const BufferNode& b, const LayoutAxis& a) {
  if (a.modulus) return Expr(a.extent());
  return a.divisor == 1 ? b.shape[static_cast<size_t>(a.dim)]
                        : ceildiv(b.shape[static_cast<size_t>(a.dim)], a.divisor);
}

class FlattenBuffers : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    Expr x = Rewriter::rewrite(e);
    const auto* l = x.as<Load>();
    return l ? load(flat(l->buffer), {flat_index(*l->buffer, l->indices)}, l->mask, l->ahead) : x;
  }
  Stmt rewrite(const Stmt& s) override {
    if (const auto* st = s.as<Store>()) {
      forget();
      std::vector<Expr> indices;
      for (const Expr& i : st->indices) indices.push_back(rewrite(i));
      return store(flat(st->buffer), {flat_index(*st->buffer, indices)}, rewrite(st->value),
                   st->mask, st->store_kind);
    }
    if (const auto* p = s.as<Prefetch>())
      return prefetch_line(flat(p->buffer), rewrite(p->offset), p->prefetch_kind);
    if (const auto* a = s.as<Allocate>()) {
      auto b = std::make_shared<BufferNode>(*a->buffer);
      b->shape = {simplify(storage_elements(*a->buffer))};
      b->layout.clear();
      flat_[a->buffer.get()] = b;
      return allocate(b, rewrite(a->body));
    }
    return Rewriter::rewrite(s);
  }

 private:
  Buffer flat(const Buffer& b) {
    auto it = flat_.find(b.get());
    return it == flat_.end() ? b : it->second;
  }
  BufferMap flat_;
};

}  // namespace

Expr flat_index(const BufferNode& b, const std::vector<Expr>& indices) {
  TW_CHECK(static_cast<int>(indices.size()) == b.rank());
  Expr flat = 0;
  for (const LayoutAxis& a : layout_of(b)) {
    Expr i = indices[static_cast<size_t>(a.dim)];
    if (a.divisor != 1) i = floordiv(i, a.divisor);
    if (a.modulus) i = floormod(i, a.modulus);
    flat = flat * axis_extent(b, a) + i;
  }
  return flat;
}
Expr storage_elements(const BufferNode& b) {
  Expr n = 1;
  for (const LayoutAxis& a : layout_of(b)) n = n * axis_extent(b, a);
  return n;
}

Kernel flatten_buffers(Kernel kernel) {
  kernel = zero_padding(std::move(kernel));
  kernel.body = FlattenBuffers().rewrite(kernel.body);
  return kernel;
}

}  // namespace tilewright::passes
