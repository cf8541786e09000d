// A dense row-major tensor in the memory of the host, and lists of them by name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/dtype.h"
#include "runtime/core/memory.h"
#include "runtime/core/shape.h"

namespace tilewright {

// Allocates at kHostAlignment and leaves new elements uninitialised: tensors are written at once
// anyway.
template <typename T>
struct AlignedAllocator {
  // The requirements of an allocator ([allocator.requirements] of the C++ standard). construct()
  // without arguments default-initialises, which for numbers writes nothing; all allocators are
  // equal, so that containers may exchange their memory.
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(size_t n) {
    if (n > (SIZE_MAX - kHostAlignment) / sizeof(T)) throw std::bad_array_new_length();
    const size_t lines = (n * sizeof(T) + kHostAlignment - 1) / kHostAlignment;
    void* data = allocate_memory(std::max<size_t>(lines, 1) * kHostAlignment);
    if (!data) throw std::bad_alloc();
    return static_cast<T*>(data);
  }
  void deallocate(T* p, size_t) { std::free(p); }
  template <typename U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <typename U, typename... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  template <typename U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

// Bytes that kernels may read by whole registers.
using AlignedBytes = std::vector<uint8_t, AlignedAllocator<uint8_t>>;

// An owning tensor: what constants, test inputs and files hold. A session's tensors, which may
// borrow or share memory, are runtime/tensor.h's.
struct HostTensor {
  // The type of all elements.
  DType dtype = DType::kFloat32;
  Shape shape;         // empty for a scalar
  AlignedBytes bytes;  // element_count(shape) * byte_size(dtype), little-endian; bool is 0 or 1

  HostTensor() = default;
  // Elements are uninitialised. The shape must be valid (see element_count).
  HostTensor(DType type, Shape extents) : dtype(type), shape(std::move(extents)) {
    auto n = element_count(shape);
    TW_CHECK(n.has_value());
    bytes.resize(static_cast<size_t>(*n) * static_cast<size_t>(byte_size(dtype)));
  }

  // Elements, not bytes; data<T>() asks for no particular T: the caller knows the dtype.
  int64_t size() const { return static_cast<int64_t>(bytes.size()) / byte_size(dtype); }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  bool operator==(const HostTensor&) const = default;  // bit equality: NaNs equal themselves
};

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;  // in file or graph order

}  // namespace tilewright
