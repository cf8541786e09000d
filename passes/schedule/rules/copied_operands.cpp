// A copy pays where tiles would read a few elements of each of many rows of memory (cost/panel_width.h).
#include "passes/schedule/rules/copied_operands.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/loops/rewrite.h"
#include "passes/cost/panel_width.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rows_of_tiles.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Operands {
 public:
  Operands(const ScheduleState& s, const BlockPlace& place)
      : s_(s), block_(*place.block), accesses_(block_accesses(block_)), around_(place.loops) {
    around_.resize(around_.size() - std::min(around_.size(), block_.axes.size()));
  }

  // Rows as tiles have them depend on how wide these are: columns first.
  std::vector<Panels> find() const {
    std::vector<Panels> found;
    find(found, true);
    find(found, false);
    return found;
  }

 private:
  void find(std::vector<Panels>& found, bool columns) const {
    const BlockAccess& result = accesses_.back();
    for (const BlockAccess& a : accesses_) {
      if (a.write || a.buffer == result.buffer || !may_copy(a)) continue;
      std::vector<int> dims = order_to_copy(*a.buffer);
      if (columns && !is_listed(found, a)) find_transposed(found, a, dims);
      const int inner = dims.back(), along = axis_along(a, static_cast<size_t>(inner));
      if (along < 0) continue;
      const auto axis = static_cast<size_t>(along);
      if (columns != (result.strides[axis] && is_one(result.strides[axis])) || is_listed(found, a))
        continue;
      const int64_t width = columns ? columns_of(a, inner) : rows_of(a, inner, axis, found);
      if (width == 0) continue;
      dims.pop_back();
      // Of several matrices each lies by itself, however their rows take turns (the heads of an attention).
      const std::vector<int> before = dims;
      std::stable_partition(dims.begin(), dims.end(), [&](int d) { return !is_summed(a, d); });
      if (dims == before && extent_or(a.buffer->shape[static_cast<size_t>(inner)], 0) == width)
        continue;
      found.push_back({.buffer = a.buffer->name,
                       .is_made_here = a.buffer->scope == Scope::kWorkspace,
                       .of_columns = columns,
                       .dim = inner,
                       .across = std::move(dims),
                       .width = width,
                       .lanes = std::min(width, lanes_of(a)),
                       .streams = streams_of(a, width),
                       .rows = lines_of(a, width)});
    }
  }
  // As in memory; dimensions of one element, which lie anywhere, first.
  static std::vector<int> order_to_copy(const BufferNode& b) {
    std::vector<int> order = order_in_memory(b);
    std::stable_partition(order.begin(), order.end(),
                          [&](int d) { return is_one(b.shape[static_cast<size_t>(d)]); });
    return order;
  }
  // Matrices [j, k], each in rows: its rows are columns of the product, and terms lie side by side.
  void find_transposed(std::vector<Panels>& found, const BlockAccess& a,
                       const std::vector<int>& dims) const {
    if (a.buffer->scope == Scope::kWorkspace) return;
    const BlockAccess& result = accesses_.back();
    for (size_t k = 0; k < block_.axes.size(); ++k) {
      const int row = dim_of_column(a, k);
      const bool is_column = row >= 0 && result.strides[k] && is_one(result.strides[k]);
      if (!is_column || row == dims.back() || !is_summed(a, dims.back())) continue;
      ProductSizes sizes = sizes_of(a, row);
      sizes.is_transposed = true;
      sizes.of_a_place = dims.size() > 2;
      find_rows(a, sizes);
      const int64_t width = panel_width(s_.machine(), sizes);
      std::vector<int> across;
      for (int d : dims)
        if (d != row) across.push_back(d);
      const bool is_product =
          std::none_of(across.begin(), across.end() - 1, [&](int d) { return is_summed(a, d); });
      if (width > 0 && width % lanes_of(a) == 0 && is_product)
        found.push_back({.buffer = a.buffer->name,
                         .of_columns = true,
                         .transposes = true,
                         .dim = row,
                         .across = std::move(across),
                         .width = width,
                         .lanes = lanes_of(a)});
    }
  }
  // The dimension that a parallel axis alone goes along; -1: none.
  int dim_of_column(const BlockAccess& a, size_t axis) const {
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (is_parallel(block_.axes[axis]) && a.indices[d].same_as(block_.axes[axis].var))
        return static_cast<int>(d);
    return -1;
  }
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
  bool is_summed(const BlockAccess& a, int d) const {
    return std::any_of(block_.axes.begin(), block_.axes.end(), [&](const BlockAxis& axis) {
      return axis.kind == AxisKind::kReduce &&
             uses_var(a.indices[static_cast<size_t>(d)], axis.var);
    });
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
  // The rows that a tile is of: those of the axis that moves results least, and of what runs on from it, as
  // TileRule::find_axes has them. Of images with few channels these are few.
  void find_rows(const BlockAccess& a, ProductSizes& sizes) const {
    std::vector<std::pair<int64_t, size_t>> rows;
    for (size_t k = 0; k < block_.axes.size(); ++k)
      if (is_parallel(block_.axes[k]) && a.stride(k) == 0)
        rows.push_back({stride_or_far(accesses_.back(), k), k});
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end());
    const size_t first = rows[0].second;
    Expr extent = block_.axes[first].extent;
    for (size_t k = 1; k < rows.size() && runs_on(accesses_, rows[k].second, first, extent); ++k) {
      if (asks_where(block_, first)) sizes.within = extent_or(block_.axes[first].extent, 0);
      extent = simplify(extent * block_.axes[rows[k].second].extent);
    }
    sizes.of_tiles = extent_or(extent, 0);
  }
  // Columns as a tile has them; 0: a copy does not pay.
  int64_t columns_of(const BlockAccess& a, int inner) const {
    ProductSizes sizes = sizes_of(a, inner);
    find_rows(a, sizes);
    return panel_width(s_.machine(), sizes);
  }
  // Rows as a tile has them, or a line of those that are several sets; 0: a copy does not pay.
  int64_t rows_of(const BlockAccess& a, int inner, size_t axis,
                  const std::vector<Panels>& found) const {
    constexpr int64_t kFewestOfLarge = 200, kHalfAPage = 2048;
    const ProductSizes sizes = sizes_of(a, inner);
    // Of what is far larger than the second cache less is won than its copy takes, unless each step takes another page.
    const int64_t fewest =
        sizes.columns * sizes.bytes >= kHalfAPage ? kFewestOfLarge / 2 : kFewestOfLarge;
    if (is_large(a) && sizes.rows * sizes.repeats < fewest) return 0;
    if (!is_worth_a_copy(sizes)) return 0;
    const int64_t rows = rows_of_tiles(s_.machine(), block_, axis, found);
    return rows > 1 ? rows : kCacheLine / sizes.bytes;
  }
  // A panel, or a few lines of each row at a time: as many streams as are written to. What comes from beyond
  // the second cache is read in longer stretches, and row by row where it comes from memory.
  int64_t streams_of(const BlockAccess& a, int64_t width) const {
    constexpr int64_t kNear = 4, kFar = 8, kMost = 64;
    const int64_t bytes = bytes_of(*a.buffer), l2 = s_.machine().l2_bytes,
                  least = is_large(a)      ? kMost
                          : bytes > 2 * l2 ? kFar
                                           : kNear;
    const int64_t lanes = lanes_of(a);
    return width < lanes ? least * lanes / width : std::max(width / lanes, least);
  }
  // Rows that fill whole lines of a narrow panel: those of panels that lie a power of two apart take each other's place
  // in the first cache before the next row comes.
  static int64_t lines_of(const BlockAccess& a, int64_t width) {
    const int64_t bytes = width * byte_size(a.buffer->dtype);
    return bytes < kCacheLine ? kCacheLine / std::gcd(kCacheLine, bytes) : 1;
  }
  bool is_large(const BlockAccess& a) const {
    constexpr int64_t kTimesL2 = 16;
    return bytes_of(*a.buffer) > kTimesL2 * s_.machine().l2_bytes;
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
  const std::vector<BlockAccess> accesses_;
  std::vector<const For*> around_;  // loops over steps
};

}  // namespace

std::vector<int> order_in_memory(const BufferNode& b) {
  std::vector<int> order(static_cast<size_t>(b.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (b.layout.empty()) return order;
  if (b.layout.size() != order.size()) return {};
  for (size_t d = 0; d < order.size(); ++d) order[d] = b.layout[d].dim;
  return order;
}

std::vector<Panels> copied_operands(const ScheduleState& s, const BlockPlace& place) {
  return Operands(s, place).find();
}

}  // namespace tilewright::passes
