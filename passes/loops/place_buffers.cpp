// Moves each temporary into the innermost loop that holds all its uses, shrinks it to what one
// iteration touches, and makes it local when that is small.
//
// Storage folding, as Halide's and TVM's storage flattening with compact regions: a temporary
// allocated for the whole kernel, of which one iteration of a loop uses 4 x 16 elements, becomes 4
// x 16 elements inside that loop, mostly registers. Regions follow from bounds of the indices over
// the loops inside. Not done: keeping rows from one iteration to the next (a line buffer).
#include <algorithm>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/joined_dims.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Puts an allocation directly inside a loop.
class Insert : public Rewriter {
 public:
  Insert(const For* at, Buffer buffer) : at_(at), buffer_(std::move(buffer)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (f == at_ && f) return for_loop(f->var, f->extent, allocate(buffer_, f->body), f->loop_kind);
    return Rewriter::rewrite(s);
  }

 private:
  const For* at_;
  Buffer buffer_;
};

// Whose dimensions lie in memory in another order.
bool is_permuted(const BufferNode& b) {
  return b.layout.size() == b.shape.size() &&
         std::all_of(b.layout.begin(), b.layout.end(),
                     [](const LayoutAxis& a) { return a.divisor == 1 && a.modulus == 0; });
}
// The same with its dimensions in that order.
Buffer in_order(const BufferNode& b) {
  auto to = std::make_shared<BufferNode>(b);
  to->shape.clear();
  for (const LayoutAxis& a : b.layout) to->shape.push_back(b.shape[static_cast<size_t>(a.dim)]);
  to->layout.clear();
  return to;
}

// Innermost allocations first: placing one may move another's uses.
class PlaceBuffers : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    const auto* a = s.as<Allocate>();
    if (!a) return Rewriter::rewrite(s);
    Stmt body = rewrite(a->body);
    Buffer buffer = a->buffer;
    if (is_permuted(*buffer)) {
      const Buffer ordered = in_order(*buffer);
      body = lead_accesses(body, buffer, ordered, [&](const std::vector<Expr>& indices) {
        std::vector<Expr> r;
        for (const LayoutAxis& d : buffer->layout) r.push_back(indices[static_cast<size_t>(d.dim)]);
        return r;
      });
      buffer = ordered;
    }
    const BufferUses uses = uses_of(*buffer, body);
    if (uses.all.empty()) return body;
    if (uses.opaque) return allocate(buffer, body);
    std::vector<const For*> common = uses.all[0].loops;
    for (const BufferUse& u : uses.all) {
      size_t n = 0;
      while (n < common.size() && n < u.loops.size() && common[n] == u.loops[n]) ++n;
      common.resize(n);
    }
    // Not into loops that become vectors or copies.
    size_t depth = 0;
    while (depth < common.size() && (common[depth]->loop_kind == LoopKind::kSerial ||
                                     common[depth]->loop_kind == LoopKind::kParallel))
      ++depth;
    return place(buffer, body, uses.all, common, depth);
  }

 private:
  // Do iterations of a parallel loop inside use the same elements? They may be different threads'.
  static bool is_shared(const std::vector<BufferUse>& uses, size_t depth) {
    for (const BufferUse& u : uses)
      for (size_t i = depth; i < u.loops.size(); ++i)
        if (u.loops[i]->loop_kind == LoopKind::kParallel) return true;
    return false;
  }
  Stmt place(const Buffer& buffer, const Stmt& body, const std::vector<BufferUse>& uses,
             const std::vector<const For*>& common, size_t depth) {
    auto moved = std::make_shared<BufferNode>(*buffer);
    moved->shape.clear();
    const std::vector<DimGroup> groups = join_dims(*buffer, uses, depth);
    std::vector<Expr> low;
    // Lanes that are off are written to local buffers all the same, so these must hold whole tiles.
    bool constant_size = true, covered = true;
    for (const DimGroup& g : groups) {
      Region r;
      const bool shrunk = shrinks(*buffer, uses, depth, g, r);
      covered &= shrunk;
      low.push_back(!shrunk || is_zero(r.low) ? Expr() : r.low);
      moved->shape.push_back(shrunk ? r.extent : joined_extent(buffer->shape, g));
      constant_size &= as_int(moved->shape.back()).has_value();
    }
    // A padded layout stays valid only for the whole buffer.
    for (const LayoutAxis& x : buffer->layout)
      if (x.divisor != 1 || x.modulus) return place_panels(buffer, body, uses, common, depth);
    if (covered && constant_size && !is_shared(uses, depth)) moved->scope = Scope::kLocal;
    const auto shift = [&](const std::vector<Expr>& indices) {
      std::vector<Expr> r;
      for (size_t k = 0; k < groups.size(); ++k) {
        const Expr index = joined_index(indices, buffer->shape, groups[k]);
        r.push_back(low[k] ? index - low[k] : index);
      }
      return r;
    };
    if (depth == 0) return allocate(moved, lead_accesses(body, buffer, moved, shift));
    return lead_accesses(Insert(common[depth - 1], moved).rewrite(body), buffer, moved, shift);
  }
  // Of panels, [d / w, the others, d % w], those that an iteration touches; and where these are one, of the dimensions
  // behind them what it touches, and so on: whatever lies inside stays as far apart as it is.
  static Stmt place_panels(const Buffer& buffer, const Stmt& body,
                           const std::vector<BufferUse>& uses,
                           const std::vector<const For*>& common, size_t depth) {
    const Layout& layout = buffer->layout;
    const int64_t width = layout.back().modulus;
    if (depth == 0 || !are_panels(*buffer) || is_shared(uses, depth)) return allocate(buffer, body);
    auto moved = std::make_shared<BufferNode>(*buffer);
    std::vector<Expr> first(buffer->shape.size(), Expr(0));
    bool less = false;
    for (size_t k = 0; k + 1 < layout.size(); ++k) {
      const auto dim = static_cast<size_t>(layout[k].dim);
      const int64_t unit = k == 0 ? width : 1;
      Region r;
      if (shrinks(*buffer, uses, depth, {dim, dim}, r)) {
        if (!is_multiple(r.low, unit) || as_int(r.extent).value_or(1) % unit != 0) break;
        moved->shape[dim] = r.extent;
        first[dim] = r.low;
        less = true;
      }
      if (as_int(moved->shape[dim]) != unit) break;
    }
    if (!less) return allocate(buffer, body);
    const auto shift = [&](std::vector<Expr> indices) {
      for (size_t d = 0; d < indices.size(); ++d)
        if (!is_zero(first[d])) indices[d] = indices[d] - first[d];
      return indices;
    };
    return lead_accesses(Insert(common[depth - 1], moved).rewrite(body), buffer, moved, shift,
                         flat_index(*buffer, first));
  }
  static bool are_panels(const BufferNode& b) {
    const LayoutAxis &panel = b.layout.front(), &column = b.layout.back();
    bool plain = b.layout.size() == b.shape.size() + 1 && column.modulus > 0 &&
                 column.divisor == 1 && panel.dim == column.dim &&
                 panel.divisor == column.modulus && panel.modulus == 0;
    for (size_t k = 1; k + 1 < b.layout.size(); ++k)
      plain &= b.layout[k].divisor == 1 && b.layout[k].modulus == 0;
    return plain;
  }
};

}  // namespace

Stmt place_buffers(const Stmt& s) { return PlaceBuffers().rewrite(s); }

}  // namespace tilewright::passes
