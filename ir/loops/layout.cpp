// Layouts as index functions. A blocked layout splits a dimension over two physical axes and pads
// it:
//
//    f32[5, 7] layout(d1/4, d0, d1%4)      storage [2, 5, 4]: 40 elements for 35
//    element (i, j) lies at  (j/4)*20 + i*4 + j%4
//
// d1%3:4 has the extent 4 for a remainder of 3, so that rows of three begin at multiples of four.
// The forms that matter are channels last (NHWC), channel blocks (NCHWc) and GEMM panels.
#include "ir/loops/layout.h"

#include <cstring>

#include "ir/loops/rewrite.h"

namespace tilewright::ir {

std::vector<PhysicalAxis> physical_axes(const Layout& layout, const Shape& shape) {
  std::vector<PhysicalAxis> axes;
  if (layout.empty()) {
    for (size_t d = 0; d < shape.size(); ++d)
      axes.push_back({static_cast<int>(d), 1, 0, shape[d], 0});
  } else {
    for (const LayoutAxis& a : layout) {
      TW_CHECK(a.fits(static_cast<int>(shape.size())));
      const int64_t n = shape[static_cast<size_t>(a.dim)];
      const int64_t blocks = n / a.divisor + (n % a.divisor > 0);
      axes.push_back({a.dim, a.divisor, a.modulus, a.modulus ? a.extent() : blocks, 0});
    }
  }
  uint64_t stride = 1;  // wraps for absurd extents; who allocates checks the size
  for (size_t n = axes.size(); n-- > 0;) {
    axes[n].stride = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(axes[n].extent);
  }
  return axes;
}

int64_t storage_elements(const Layout& layout, const Shape& shape) {
  int64_t n = 1;
  for (const PhysicalAxis& a : physical_axes(layout, shape)) n *= a.extent;
  return n;
}
int64_t storage_elements(const BufferNode& buffer, const Shape& shape) {
  return storage_elements(buffer.layout, shape);
}

int64_t storage_offset(const std::vector<PhysicalAxis>& axes, const int64_t* index) {
  int64_t offset = 0;
  for (const PhysicalAxis& a : axes) {
    const int64_t i = index[a.dim] / a.divisor;
    offset += (a.modulus ? i % a.modulus : i) * a.stride;
  }
  return offset;
}

namespace {

// The offset of an element is a sum of what each of its indices adds, so that a table per dimension
// replaces the divisions: part[d][i] is what index i of dimension d adds.
std::vector<std::vector<int64_t>> offset_parts(const Shape& shape, const Layout& layout) {
  std::vector<std::vector<int64_t>> parts;
  for (const int64_t extent : shape) parts.emplace_back(static_cast<size_t>(extent), 0);
  for (const PhysicalAxis& a : physical_axes(layout, shape)) {
    std::vector<int64_t>& part = parts[static_cast<size_t>(a.dim)];
    for (size_t i = 0; i < part.size(); ++i) {
      const int64_t block = static_cast<int64_t>(i) / a.divisor;
      part[i] += (a.modulus ? block % a.modulus : block) * a.stride;
    }
  }
  return parts;
}

// Calls f(row-major position, offset in storage) for each element.
template <typename F>
void for_each_element(const Shape& shape, const Layout& layout, F&& f) {
  const std::optional<int64_t> count = element_count(shape);
  TW_CHECK(count);
  if (*count == 0) return;
  if (shape.empty()) return f(int64_t{0}, int64_t{0});
  const auto parts = offset_parts(shape, layout);
  std::vector<size_t> index(shape.size(), 0);
  for (int64_t n = 0; n < *count;) {
    int64_t row = 0;
    for (size_t d = 0; d + 1 < index.size(); ++d) row += parts[d][index[d]];
    for (const int64_t column : parts.back()) f(n++, row + column);
    for (size_t d = index.size() - 1; d-- > 0;) {
      if (++index[d] < parts[d].size()) break;
      index[d] = 0;
    }
  }
}

// Elements of one size are moved as integers of that size, at any alignment.
template <typename F>
void for_each_copy(DType dtype, const Shape& shape, const Layout& layout, F&& place) {
  const auto copy = [&](auto element) {
    constexpr int64_t size = sizeof element;
    for_each_element(shape, layout, [&](int64_t n, int64_t offset) {
      const auto [to, from] = place(n * size, offset * size);
      std::memcpy(to, from, size);
    });
  };
  switch (byte_size(dtype)) {
    case 1: return copy(uint8_t{});
    case 2: return copy(uint16_t{});
    case 4: return copy(uint32_t{});
    default: return copy(uint64_t{});
  }
}

}  // namespace

// Constants are packed when the file is written; other values by kernels.
std::vector<uint8_t> pack(const uint8_t* row_major, DType dtype, const Shape& shape,
                          const Layout& layout) {
  std::vector<uint8_t> packed(
      static_cast<size_t>(storage_elements(layout, shape) * byte_size(dtype)), 0);
  for_each_copy(dtype, shape, layout, [&](int64_t n, int64_t offset) {
    return std::pair{packed.data() + offset, row_major + n};
  });
  return packed;
}

std::vector<uint8_t> unpack(const uint8_t* packed, DType dtype, const Shape& shape,
                            const Layout& layout) {
  std::vector<uint8_t> row_major(
      static_cast<size_t>(element_count(shape).value_or(0) * byte_size(dtype)));
  for_each_copy(dtype, shape, layout, [&](int64_t n, int64_t offset) {
    return std::pair{row_major.data() + n, packed + offset};
  });
  return row_major;
}

bool is_flat(const Kernel& kernel) {
  bool flat = true;
  auto check = [&](const std::vector<Expr>& indices) { flat &= indices.size() == 1; };
  for_each_stmt(kernel.body, [&](const Stmt& s) {
    if (s.as<Block>()) flat = false;
    if (const auto* store = s.as<Store>()) check(store->indices);
  });
  if (!flat) return false;
  for_each_expr(kernel.body, [&](const Expr& e) {
    if (const auto* load = e.as<Load>()) check(load->indices);
  });
  return flat;
}

}  // namespace tilewright::ir
