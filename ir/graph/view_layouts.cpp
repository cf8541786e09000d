// When a reshape or transpose of a value in some layout is a view, i.e. moves no byte: dimensions
// are matched in groups of equal products ([6, 4] and [2, 3, 4] match as 6 = 2*3 and 4 = 4), and a
// group must be contiguous in the layout to be split or merged.
#include "ir/graph/view_layouts.h"

#include <algorithm>

#include "ir/loops/layout.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

namespace {

// Dimensions of more than one element, outermost first; nothing when the layout is no permutation.
std::optional<std::vector<int>> order_of(const Layout& layout, const TensorType& type) {
  std::vector<int> order;
  auto add = [&](int dim) {
    if (!is_one(type.dims[static_cast<size_t>(dim)])) order.push_back(dim);
  };
  for (int d = 0; layout.empty() && d < type.rank(); ++d) add(d);
  for (const LayoutAxis& a : layout) {
    if (a.divisor != 1 || a.modulus != 0) return std::nullopt;
    add(a.dim);
  }
  return order;
}

}  // namespace

bool is_row_major(const Layout& layout, const TensorType& type) {
  return is_same_order(layout, {}, type);
}
bool is_same_order(const Layout& a, const Layout& b, const TensorType& type) {
  const auto x = order_of(a, type), y = order_of(b, type);
  return x && y && *x == *y;
}

std::vector<DimRange> matching_dims(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  std::vector<DimRange> ranges;
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    DimRange r{i, i + 1, j, j + 1};
    Expr a = from[i], b = to[j];
    while (!can_prove_equal(a, b)) {
      const bool more_of_a = can_prove(a < b) || r.to_end == to.size();
      if (more_of_a && r.from_end < from.size())
        a = simplify(a * from[r.from_end++]);
      else if (!more_of_a && r.to_end < to.size())
        b = simplify(b * to[r.to_end++]);
      else
        return {};
    }
    ranges.push_back(r);
    i = r.from_end;
    j = r.to_end;
    // Extents of 1 belong to what stands before them.
    while (i < from.size() && is_one(from[i])) ranges.back().from_end = ++i;
    while (j < to.size() && is_one(to[j])) ranges.back().to_end = ++j;
  }
  const bool all =
      !ranges.empty() && ranges.back().from_end == from.size() && ranges.back().to_end == to.size();
  return all ? ranges : std::vector<DimRange>{};
}

std::optional<Layout> reshaped_layout(const Layout& x, const TensorType& from,
                                      const TensorType& to) {
  if (is_row_major(x, from)) return Layout{};
  const auto order = order_of(x, from);
  const std::vector<DimRange> ranges = matching_dims(from.dims, to.dims);
  if (!order || ranges.empty()) return std::nullopt;
  std::vector<int> result;
  for (size_t k = 0; k < order->size();) {
    const auto r = std::find_if(ranges.begin(), ranges.end(), [&](const DimRange& range) {
      return static_cast<size_t>((*order)[k]) < range.from_end;
    });
    // All of the range, in its own order.
    for (size_t d = r->from_begin; d < r->from_end; ++d) {
      if (is_one(from.dims[d])) continue;
      if (k == order->size() || (*order)[k] != static_cast<int>(d)) return std::nullopt;
      ++k;
    }
    for (size_t d = r->to_begin; d < r->to_end; ++d) result.push_back(static_cast<int>(d));
  }
  for (int d = 0; d < to.rank(); ++d)  // extents of 1 lie anywhere
    if (std::find(result.begin(), result.end(), d) == result.end())
      result.insert(result.begin(), d);
  return permuted_layout(result);
}
Layout transposed_layout(const Layout& x, const std::vector<int64_t>& perm) {
  std::vector<int> place(perm.size()), order;  // of each dimension of x in the result
  for (size_t d = 0; d < perm.size(); ++d)
    place[static_cast<size_t>(perm[d])] = static_cast<int>(d);
  for (size_t d = 0; d < perm.size(); ++d)
    order.push_back(place[x.empty() ? d : static_cast<size_t>(x[d].dim)]);
  return permuted_layout(order);
}

std::optional<std::vector<int64_t>> strides_of(const TensorType& type, const Layout& layout) {
  const auto shape = constant_shape(type);
  if (!shape) return std::nullopt;
  std::vector<int64_t> strides(shape->size(), 0);
  for (const PhysicalAxis& a : physical_axes(layout, *shape)) {
    if (a.divisor != 1 || a.modulus != 0) return std::nullopt;
    strides[static_cast<size_t>(a.dim)] = a.stride;
  }
  return strides;
}

}  // namespace tilewright::ir
