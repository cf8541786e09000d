#include "passes/loops/joined_dims.h"

#include <algorithm>
#include <optional>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

Expr joined_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape, DimGroup g) {
  Expr index = indices[g.first];
  for (size_t d = g.first + 1; d <= g.last; ++d) index = index * shape[d] + indices[d];
  return g.first == g.last ? index : simplify(index);
}

Expr joined_extent(const std::vector<Expr>& shape, DimGroup g) {
  Expr extent = shape[g.first];
  for (size_t d = g.first + 1; d <= g.last; ++d) extent = extent * shape[d];
  return simplify(extent);
}

namespace {

// The extent that one iteration touches, from the loops inside; the lowest index goes to `low`.
bool find_region(const std::vector<BufferUse>& uses, size_t depth, const BufferNode& buffer,
                 DimGroup g, Expr& low, Expr& extent) {
  Expr high;
  for (const BufferUse& u : uses) {
    Ranges inner;
    for (size_t i = depth; i < u.loops.size(); ++i) inner.set(u.loops[i]->var, u.loops[i]->extent);
    const Expr index = joined_index(u.indices, buffer.shape, g);
    bool reads_memory = false;
    for_each_expr(index, [&](const Expr& x) { reads_memory |= x.kind() == NodeKind::kLoad; });
    if (reads_memory) return false;
    Expr l = lower_bound(index, inner), h = upper_bound(index, inner);
    if (!l || !h || !widen(low, high, l, h)) return false;
  }
  extent = simplify(high - low + Expr(1));
  return as_int(extent).has_value();
}

// Bounds of quotients are rough: a region beyond the dimension itself and a vector's overrun says
// nothing.
bool worth_shrinking(int64_t region, const Expr& dimension) {
  constexpr int64_t kOverrun = 256, kMostOfUnknown = 4096;
  auto n = as_int(dimension);
  return region <= (n ? *n + kOverrun : kMostOfUnknown);
}

}  // namespace

bool shrinks(const BufferNode& b, const std::vector<BufferUse>& uses, size_t depth, DimGroup g,
             Region& r) {
  r = {};
  return find_region(uses, depth, b, g, r.low, r.extent) &&
         worth_shrinking(*as_int(r.extent), joined_extent(b.shape, g));
}

namespace {

// Does one iteration touch less than all of a dimension? A remainder goes through all of it.
bool takes_part(const BufferNode& b, const std::vector<BufferUse>& uses, size_t depth, size_t d) {
  Region r;
  const auto all = as_int(b.shape[d]);
  return shrinks(b, uses, depth, {d, d}, r) && !(all && *as_int(r.extent) >= *all);
}

// Of loops from `depth` on: those around them are the same for all of a region.
bool has_quotients(const Expr& e, const BufferUse& u, size_t depth) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    const auto* b = x.as<Binary>();
    if (!b || (b->op != BinaryOp::kFloorDiv && b->op != BinaryOp::kFloorMod)) return;
    for (size_t i = depth; i < u.loops.size(); ++i) found |= uses_var(x, u.loops[i]->var);
  });
  return found;
}

// The places that a store walks over, those of lanes that are off too, as steps and how often each is taken;
// nothing where they do not differ. Only then may they lie in one row: what is stored by rows with a tail
// needs room behind each.
using Walk = std::vector<std::pair<int64_t, int64_t>>;
std::optional<Walk> walk_apart(const BufferUse& u, const Expr& index, size_t depth) {
  const Linear l = to_linear(index);
  Walk steps;
  for (size_t i = depth; i < u.loops.size(); ++i) {
    const auto step = l.coefficient_of(u.loops[i]->var);
    const auto times = as_int(u.loops[i]->extent);
    if (!step || !step->is_constant() || !times) return std::nullopt;
    if (step->constant != 0) steps.push_back({std::abs(step->constant), *times});
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [step, times] : steps) {
    if (step <= reach) return std::nullopt;
    reach += step * (times - 1);
  }
  return steps;
}

Expr start_of(const BufferUse& u, const Expr& index, size_t depth) {
  VarMap first;
  for (size_t i = depth; i < u.loops.size(); ++i) first[u.loops[i]->var.get()] = Expr(0);
  return simplify(substitute(index, first));
}

// Do all stores walk over the same places, which lie apart?
bool stores_lie_apart(const BufferNode& b, const std::vector<BufferUse>& uses, size_t depth,
                      DimGroup g) {
  std::optional<Walk> all;
  Expr start;
  for (const BufferUse& u : uses) {
    if (!u.stored) continue;
    const Expr index = joined_index(u.indices, b.shape, g);
    const auto walk = walk_apart(u, index, depth);
    const Expr first = start_of(u, index, depth);
    if (!walk || (all && (*all != *walk || !can_prove_equal(start, first)))) return false;
    all = walk;
    start = first;
  }
  return all.has_value();
}

// The last of the dimensions from d on whose joined index is no quotient where that of d is one;
// d itself where there are none.
size_t joined_to(const BufferNode& b, const std::vector<BufferUse>& uses, size_t depth, size_t d) {
  auto divided = [&](DimGroup g) {
    return std::any_of(uses.begin(), uses.end(), [&](const BufferUse& u) {
      return has_quotients(joined_index(u.indices, b.shape, g), u, depth);
    });
  };
  if (!divided({d, d})) return d;
  for (size_t last = d + 1; last < b.shape.size() && !takes_part(b, uses, depth, last); ++last) {
    const DimGroup group{d, last};
    Region r;
    if (!divided(group) && stores_lie_apart(b, uses, depth, group) &&
        shrinks(b, uses, depth, group, r))
      return last;
  }
  return d;
}

}  // namespace

std::vector<DimGroup> join_dims(const BufferNode& b, const std::vector<BufferUse>& uses,
                                size_t depth) {
  std::vector<DimGroup> groups;
  const size_t rank = b.shape.size();
  for (size_t d = 0; d < rank; d = groups.back().last + 1) {
    groups.push_back({d, b.layout.empty() ? joined_to(b, uses, depth, d) : d});
    Region r;
    if (!b.layout.empty() || groups.back().last > d || shrinks(b, uses, depth, {d, d}, r)) continue;
    for (size_t last = d + 1; last < rank && groups.back().last == d; ++last)
      if (!takes_part(b, uses, depth, last) && shrinks(b, uses, depth, {d, last}, r))
        groups.back().last = last;
  }
  return groups;
}

}  // namespace tilewright::passes
