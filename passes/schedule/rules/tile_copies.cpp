// The tile rule, of products whose operands are known at the run alone: what a tile would read across rows of memory is
// copied first, in the order in which tiles read it.
//
// Copied into panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008) they are
// one stream, and a copy costs as much as the product with a few dozen rows or columns (cost/panel_width.h). Of the
// steps of an ordered axis (a recurrent layer's) one copy before them all serves each; a temporary that was made
// before them is laid out that way at once. Matrices that are values of the graph were copied there
// (graph/pack_operands.cpp).
#include <algorithm>
#include <numeric>

#include "ir/loops/rewrite.h"
#include "passes/cost/panel_width.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Panels {
  std::string buffer;
  bool is_made_here = false;  // a temporary, which needs no copy
  int dim = 1;                // that lies innermost, and
  std::vector<int> across;    // the others, outermost first
  int64_t width = 1;          // elements side by side
  int64_t lanes = 1;          // of a vector of them
};

// A sum of products of [k, i] and [k, j] or [i, k], over k, of which the latter stay as they are; k may be
// several axes, as the pixels of images.
class Operands {
 public:
  Operands(const ScheduleState& s, const BlockPlace& place)
      : s_(s), block_(*place.block), around_(place.loops) {
    around_.resize(around_.size() - std::min(around_.size(), block_.axes.size()));
  }

  std::vector<Panels> find() const {
    std::vector<Panels> found;
    const auto accesses = block_accesses(block_);
    const BlockAccess& result = accesses.back();
    for (const BlockAccess& a : accesses) {
      if (a.write || a.buffer == result.buffer || !may_copy(a)) continue;
      std::vector<int> dims = order_in_memory(*a.buffer);
      const int inner = dims.back(), along = axis_along(a, static_cast<size_t>(inner));
      if (along < 0) continue;
      const auto axis = static_cast<size_t>(along);
      const bool columns = result.strides[axis] && is_one(result.strides[axis]);
      const int64_t width = is_listed(found, a) ? 0 : width_of(a, inner, columns);
      if (width == 0) continue;
      dims.pop_back();
      found.push_back({a.buffer->name, a.buffer->scope == Scope::kWorkspace, inner, std::move(dims),
                       width, std::min(width, lanes_of(a))});
    }
    return found;
  }

 private:
  bool may_copy(const BlockAccess& a) const {
    // Of narrower types dot products have a layout of their own.
    const DType t = a.buffer->dtype;
    return (t == DType::kFloat32 || t == DType::kFloat64) && is_there_before(a) &&
           !s_.is_constant(a.buffer) && order_in_memory(*a.buffer).size() >= 2;
  }
  // Is the operand the same in all steps around the block? A parameter of the kernel that it does not
  // write, or a temporary that is made before them.
  bool is_there_before(const BlockAccess& a) const {
    const auto of_step = [&](const Expr& e) {
      bool found = false;
      for_each_expr(e, [&](const Expr& x) {
        found |= x.kind() == NodeKind::kVar &&
                 std::none_of(block_.axes.begin(), block_.axes.end(),
                              [&](const BlockAxis& axis) { return axis.var.same_as(x); });
      });
      return found;
    };
    if (std::any_of(a.indices.begin(), a.indices.end(), of_step)) return false;
    const bool parameter = a.buffer->scope == Scope::kParam;
    if (!parameter && (a.buffer->scope != Scope::kWorkspace || around_.empty())) return false;
    for (const BlockPlace& p : all_blocks(s_.kernel().body))
      for (const BlockAccess& other : block_accesses(*p.block))
        if (other.write && other.buffer == a.buffer &&
            (parameter || (!p.loops.empty() && p.loops[0] == around_[0])))
          return false;
    return true;
  }
  // The parallel axis that runs along the rows of the operand, its dimension `inner`, while a sum goes across
  // them; -1: none.
  int axis_along(const BlockAccess& a, size_t inner) const {
    bool across = false;
    int along = -1;
    for (size_t k = 0; k < block_.axes.size(); ++k) {
      const BlockAxis& axis = block_.axes[k];
      for (size_t d = 0; d < a.indices.size(); ++d)
        across |= d != inner && axis.kind == AxisKind::kReduce && uses_var(a.indices[d], axis.var);
      if (axis.kind == AxisKind::kParallel && a.indices[inner].same_as(axis.var))
        along = static_cast<int>(k);
    }
    return across ? along : -1;
  }
  // Rows are the products with each element.
  ProductSizes sizes_of(const BlockAccess& a, int inner) const {
    const auto times = [](int64_t n, const Expr& e, int64_t unknown) {
      return std::min<int64_t>(n * extent_or(e, unknown), int64_t{1} << 40);
    };
    int64_t elements = 1, terms = 1, products = 1, repeats = 1;
    for (const Expr& e : a.buffer->shape) elements = times(elements, e, 0);
    for (const BlockAxis& axis : block_.axes) {
      products = times(products, axis.extent, 1);
      if (axis.kind == AxisKind::kReduce) terms = times(terms, axis.extent, 0);
    }
    for (const For* loop : around_) repeats = times(repeats, loop->extent, 1);
    return {.rows = elements ? std::max<int64_t>(products / elements, 1) : 0,
            .columns = extent_or(a.buffer->shape[static_cast<size_t>(inner)], 0),
            .terms = terms,
            .bytes = byte_size(a.buffer->dtype),
            .repeats = repeats};
  }
  // Columns as a tile has them, rows by a line of the cache; 0: a copy does not pay.
  int64_t width_of(const BlockAccess& a, int inner, bool columns) const {
    constexpr int64_t kLine = 64, kFewestOfLarge = 200, kTimesL2 = 16;
    const ProductSizes sizes = sizes_of(a, inner);
    if (columns) return panel_width(s_.machine(), sizes);
    // What rows read is broadcast, and a line serves several tiles: of what is far larger than the second cache
    // less is won than its copy takes.
    const bool is_large = bytes_of(*a.buffer) > kTimesL2 * s_.machine().l2_bytes;
    if (is_large && sizes.rows * sizes.repeats < kFewestOfLarge) return 0;
    return is_worth_a_copy(sizes) ? kLine / sizes.bytes : 0;
  }
  int64_t lanes_of(const BlockAccess& a) const {
    return s_.machine().lanes(byte_size(a.buffer->dtype));
  }
  static bool is_listed(const std::vector<Panels>& found, const BlockAccess& a) {
    return std::any_of(found.begin(), found.end(),
                       [&](const Panels& p) { return p.buffer == a.buffer->name; });
  }

  const ScheduleState& s_;
  const Block& block_;
  std::vector<const For*> around_;  // loops over steps
};

// A few lines of each row at a time: as many streams as are written to.
bool schedule_copy(ScheduleState& s, const std::string& copy, const Panels& p) {
  constexpr int64_t kLeastStreams = 4;
  const int64_t streams = std::max(p.width / p.lanes, kLeastStreams);
  const auto of_dim = [&](int d) { return copy + ".i" + std::to_string(d); };
  const std::string line = copy + ".l", lane = copy + ".v", group = copy + ".g",
                    stream = copy + ".s";
  std::vector<std::string> order{group};
  for (int d : p.across) order.push_back(of_dim(d));
  order.insert(order.end(), {stream, lane});
  const bool tasks = forks(s, copy);
  if (!s.apply("split", {of_dim(p.dim), line, lane}, {p.lanes}) ||
      !s.apply("split", {line, group, stream}, {streams}) || !s.apply("reorder", order) ||
      !s.apply("vectorize", {lane}))
    return false;
  if (!tasks) return true;
  // Images, too, where there are several; rows of a matrix are no tasks.
  std::string task = group;
  for (size_t k = 0; k + 1 < p.across.size(); ++k) {
    const std::string both = copy + ".t" + std::to_string(k);
    if (!s.apply("collapse", {task, order[k + 1], both})) return false;
    task = both;
  }
  return s.apply("parallelize", {task});
}

// [dim / width, the others, width].
std::vector<int64_t> layout_of(const Panels& p) {
  std::vector<int64_t> layout{p.dim, p.width, 0};
  for (int d : p.across) layout.insert(layout.end(), {d, 1, 0});
  layout.insert(layout.end(), {p.dim, 1, p.width});
  return layout;
}

}  // namespace

std::vector<int> order_in_memory(const BufferNode& b) {
  std::vector<int> order(static_cast<size_t>(b.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (b.layout.empty()) return order;
  if (b.layout.size() != order.size()) return {};
  for (size_t d = 0; d < order.size(); ++d) order[d] = b.layout[d].dim;
  return order;
}

void copy_operands(ScheduleState& s, const std::string& block) {
  const BlockPlace place = s.place(block);
  if (place.loops.size() < place.block->axes.size()) return;
  const std::vector<Panels> panels = Operands(s, place).find();
  if (panels.empty() || !s.decide_whether(block + ".copy_operands", true, Bits::kKept)) return;
  s.all_or_nothing([&] {
    for (const Panels& p : panels) {
      const std::string copy = p.is_made_here ? p.buffer : p.buffer + "_packed";
      if (!p.is_made_here && !s.apply("cache_read", {block, p.buffer, copy})) return false;
      if (!s.apply("transform_layout", {copy}, layout_of(p)) ||
          (!p.is_made_here && !schedule_copy(s, copy + "_copy", p)))
        return false;
      s.note(block + ": '" + p.buffer + (p.is_made_here ? "' lies" : "' is copied") +
             " in panels of " + std::to_string(p.width) + ", as a tile reads it");
    }
    return true;
  });
}

}  // namespace tilewright::passes
