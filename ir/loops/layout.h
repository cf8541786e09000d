// Where the elements of a tensor lie in memory: a Layout (nodes.h) applied to concrete extents.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/loops/nodes.h"
#include "runtime/core/shape.h"

namespace tilewright::ir {

// One physical axis with its extent and its stride, both in elements.
struct PhysicalAxis {
  // (index[dim] / divisor) % modulus, in [0, extent), moves the place by stride.
  int dim = 0;
  int64_t divisor = 1, modulus = 0;
  int64_t extent = 0, stride = 0;
};

// Outermost first; row-major when the layout is empty. An axis with a modulus has LayoutAxis::extent, any
// other has ceil(shape[dim] / divisor).
std::vector<PhysicalAxis> physical_axes(const Layout& layout, const Shape& shape);

// Number of elements in storage, padding included.
int64_t storage_elements(const Layout& layout, const Shape& shape);
int64_t storage_elements(const BufferNode& buffer, const Shape& shape);

// Offset in elements of a logical index: the sum over physical axes of ((index[dim] / divisor) %
// modulus) * stride.
int64_t storage_offset(const std::vector<PhysicalAxis>& axes, const int64_t* index);

// Copies a row-major tensor into the layout; padding is zero bytes.
std::vector<uint8_t> pack(const uint8_t* row_major, DType dtype, const Shape& shape,
                          const Layout& layout);
// The inverse: `packed` holds storage_elements(layout, shape) elements.
std::vector<uint8_t> unpack(const uint8_t* packed, DType dtype, const Shape& shape,
                            const Layout& layout);

// Whether loads and stores of the kernel hold one index into the storage instead of one index per
// dimension: no block remains and every access has exactly one index.
bool is_flat(const Kernel& kernel);

}  // namespace tilewright::ir
