// The tile rule, of products whose operands are known at the run alone: what a tile would read across rows of memory is
// copied first, in the order in which tiles read it.
//
// A tile takes a few elements of each of a thousand rows. Where these lie a power of two apart they fall
// into the same sets of the caches, and each is fetched anew for every tile; at any distance they are as
// many pages. Copied into panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008) they are one stream, and a copy costs as much as the product with a few dozen
// rows or columns.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Bytes from one row to the next, and terms, from which on reading across rows is dear.
constexpr int64_t kFarApart = 1024, kFewestTerms = 128;
// Results along the other side for which a copy is made.
constexpr int64_t kWorthACopy = 96;

struct Panels {
  std::string buffer;
  int64_t width = 1;  // elements side by side
  int64_t lanes = 1;  // of a vector of them
};

// A sum of products of [k, i] and [k, j] or [i, k], over k, of which the latter stay as they are.
class Operands {
 public:
  Operands(const ScheduleState& s, const Block& block) : s_(s), block_(block) {}

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
      if (others(axis) < kWorthACopy || is_listed(found, a)) continue;
      const int64_t width = width_of(a, columns);
      found.push_back({a.buffer->name, width, std::min(width, lanes_of(a))});
    }
    return found;
  }

 private:
  bool may_copy(const BlockAccess& a) const {
    // Of narrower types dot products have a layout of their own.
    const DType t = a.buffer->dtype;
    return (t == DType::kFloat32 || t == DType::kFloat64) && a.buffer->scope == Scope::kParam &&
           !s_.is_constant(a.buffer) && a.buffer->layout.empty() && a.indices.size() == 2 &&
           extent_or(a.buffer->shape[1], 0) * byte_size(a.buffer->dtype) >= kFarApart &&
           extent_or(a.buffer->shape[0], 0) >= kFewestTerms;
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
  // Results for each element of the operand.
  int64_t others(size_t axis) const {
    int64_t n = 1;
    for (size_t k = 0; k < block_.axes.size(); ++k)
      if (k != axis && block_.axes[k].kind == AxisKind::kParallel)
        n = std::min<int64_t>(n * extent_or(block_.axes[k].extent, 1), 1 << 30);
    return n;
  }
  // Columns by as many vectors as a tile may have; rows by a line of the cache.
  int64_t width_of(const BlockAccess& a, bool columns) const {
    constexpr int64_t kLine = 64, kVectors = 4;
    return columns ? kVectors * lanes_of(a) : kLine / byte_size(a.buffer->dtype);
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
};

// A few lines of each row at a time: as many streams as are written to.
bool schedule_copy(ScheduleState& s, const std::string& copy, int64_t lanes) {
  constexpr int64_t kStreams = 4;
  const std::string rows = copy + ".i0", columns = copy + ".i1", line = copy + ".l",
                    lane = copy + ".v", group = copy + ".g", stream = copy + ".s";
  const bool tasks = forks(s, copy);
  return s.apply("split", {columns, line, lane}, {lanes}) &&
         s.apply("split", {line, group, stream}, {kStreams}) &&
         s.apply("reorder", {group, rows, stream, lane}) && s.apply("vectorize", {lane}) &&
         (!tasks || s.apply("parallelize", {group}));
}

}  // namespace

void copy_operands(ScheduleState& s, const std::string& block) {
  const BlockPlace place = s.place(block);
  const Block b = *place.block;
  if (place.loops.size() != b.axes.size()) return;  // inside of steps: it would be copied in each
  const std::vector<Panels> panels = Operands(s, b).find();
  if (panels.empty() || !s.decide_whether(block + ".copy_operands", true, Bits::kKept)) return;
  s.all_or_nothing([&] {
    for (const Panels& p : panels) {
      const std::string copy = p.buffer + "_packed";
      if (!s.apply("cache_read", {block, p.buffer, copy}) ||
          !s.apply("transform_layout", {copy}, {1, p.width, 0, 0, 1, 0, 1, 1, p.width}) ||
          !schedule_copy(s, copy + "_copy", p.lanes))
        return false;
      s.note(block + ": '" + p.buffer + "' is copied into panels of " + std::to_string(p.width) +
             ", as a tile reads it");
    }
    return true;
  });
}

}  // namespace tilewright::passes
