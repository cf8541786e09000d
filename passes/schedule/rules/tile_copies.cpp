// The tile rule, of products whose operands are known at the run alone: what a tile would read across rows of memory is
// copied first, in the order in which tiles read it.
//
// Copied into panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008) they are
// one stream, and a copy costs as much as the product with a few dozen rows or columns (cost/panel_width.h). Of the
// steps of an ordered axis (a recurrent layer's) one copy before them all serves each; a temporary that was made
// before them is laid out that way at once. Matrices that are values of the graph were copied there
// (graph/pack_operands.cpp).
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/cost/panel_width.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Panels {
  std::string buffer;
  bool is_made_here = false;  // a temporary, which needs no copy
  int64_t width = 1;          // elements side by side
  int64_t lanes = 1;          // of a vector of them
};

// A sum of products of [k, i] and [k, j] or [i, k], over k, of which the latter stay as they are.
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
      const int along = axis_along(a);
      if (along < 0) continue;
      const auto axis = static_cast<size_t>(along);
      const bool columns = result.strides[axis] && is_one(result.strides[axis]);
      const int64_t width = is_listed(found, a) ? 0 : width_of(a, axis, columns);
      if (width == 0) continue;
      found.push_back({a.buffer->name, a.buffer->scope == Scope::kWorkspace, width,
                       std::min(width, lanes_of(a))});
    }
    return found;
  }

 private:
  bool may_copy(const BlockAccess& a) const {
    // Of narrower types dot products have a layout of their own.
    const DType t = a.buffer->dtype;
    return (t == DType::kFloat32 || t == DType::kFloat64) && is_there_before(a) &&
           !s_.is_constant(a.buffer) && a.buffer->layout.empty() && a.indices.size() == 2;
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
  // The parallel axis that runs along the rows of the operand, while a sum goes across them; -1: none.
  int axis_along(const BlockAccess& a) const {
    bool across = false;
    int along = -1;
    for (size_t k = 0; k < block_.axes.size(); ++k) {
      const BlockAxis& axis = block_.axes[k];
      if (axis.kind == AxisKind::kReduce) across |= uses_var(a.indices[0], axis.var);
      if (axis.kind == AxisKind::kParallel && a.indices[1].same_as(axis.var))
        along = static_cast<int>(k);
    }
    return across ? along : -1;
  }
  ProductSizes sizes_of(const BlockAccess& a, size_t axis) const {
    ProductSizes sizes{.rows = 1,
                       .columns = extent_or(a.buffer->shape[1], 0),
                       .terms = extent_or(a.buffer->shape[0], 0),
                       .bytes = byte_size(a.buffer->dtype)};
    const auto times = [](int64_t n, const Expr& e) {
      return std::min<int64_t>(n * extent_or(e, 1), 1 << 30);
    };
    for (size_t k = 0; k < block_.axes.size(); ++k)
      if (k != axis && block_.axes[k].kind == AxisKind::kParallel)
        sizes.rows = times(sizes.rows, block_.axes[k].extent);
    for (const For* loop : around_) sizes.repeats = times(sizes.repeats, loop->extent);
    return sizes;
  }
  // Columns as a tile has them, rows by a line of the cache; 0: a copy does not pay.
  int64_t width_of(const BlockAccess& a, size_t axis, bool columns) const {
    constexpr int64_t kLine = 64;
    const ProductSizes sizes = sizes_of(a, axis);
    if (columns) return panel_width(s_.machine(), sizes);
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
  const std::string rows = copy + ".i0", columns = copy + ".i1", line = copy + ".l",
                    lane = copy + ".v", group = copy + ".g", stream = copy + ".s";
  const bool tasks = forks(s, copy);
  return s.apply("split", {columns, line, lane}, {p.lanes}) &&
         s.apply("split", {line, group, stream}, {streams}) &&
         s.apply("reorder", {group, rows, stream, lane}) && s.apply("vectorize", {lane}) &&
         (!tasks || s.apply("parallelize", {group}));
}

}  // namespace

void copy_operands(ScheduleState& s, const std::string& block) {
  const BlockPlace place = s.place(block);
  if (place.loops.size() < place.block->axes.size()) return;
  const std::vector<Panels> panels = Operands(s, place).find();
  if (panels.empty() || !s.decide_whether(block + ".copy_operands", true, Bits::kKept)) return;
  s.all_or_nothing([&] {
    for (const Panels& p : panels) {
      const std::string copy = p.is_made_here ? p.buffer : p.buffer + "_packed";
      if (!p.is_made_here && !s.apply("cache_read", {block, p.buffer, copy})) return false;
      if (!s.apply("transform_layout", {copy}, {1, p.width, 0, 0, 1, 0, 1, 1, p.width}) ||
          (!p.is_made_here && !schedule_copy(s, copy + "_copy", p)))
        return false;
      s.note(block + ": '" + p.buffer + (p.is_made_here ? "' lies" : "' is copied") +
             " in panels of " + std::to_string(p.width) + ", as a tile reads it");
    }
    return true;
  });
}

}  // namespace tilewright::passes
