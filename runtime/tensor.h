// Tensors in CPU memory: an element type, a shape and row-major data that the tensor shares or
// borrows.
#pragma once

#include <memory>

#include "runtime/arena.h"
#include "runtime/core/dtype.h"
#include "runtime/core/result.h"
#include "runtime/core/shape.h"
#include "runtime/dlpack_abi.h"

namespace tilewright {

// Copies of a Tensor share its data. A default-made tensor is not defined: it stands for "no
// tensor".
class Tensor {
 public:
  Tensor() = default;

  // Uninitialised, aligned to 64 bytes. Errors: a negative extent, more memory than there is.
  static Result<Tensor> allocate(DType dtype, Shape shape);
  // The caller keeps `data` alive; at least element_count * byte_size(dtype) bytes.
  static Tensor borrow(DType dtype, Shape shape, void* data);
  static Tensor share(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner);
  static Tensor share(DType dtype, Shape shape, Storage storage);

  bool defined() const { return data_ != nullptr; }
  // Of a tensor that is not defined: f32, no extents, 0 elements.
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t element_count() const { return count_; }
  int64_t bytes() const { return count_ * byte_size(dtype_); }
  int64_t capacity() const { return capacity_; }  // bytes that may be written; at least bytes()
  std::vector<int64_t> strides() const;           // in elements, row-major

  void* data() const { return data_; }
  // The elements as T, unchecked: the caller knows dtype().
  template <typename T>
  T* data_as() const {
    return static_cast<T*>(data_);
  }

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  int64_t count_ = 0, capacity_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

// Element types both ways; every DType has one. Errors: a code, width or number of lanes that no
// DType has.
DLDataType to_dlpack(DType dtype);
Result<DType> from_dlpack(DLDataType dtype);

// A view of `tensor`'s data when it is row-major and aligned to its elements, else a copy. A view
// shares `owner` (null: borrows). Errors: not in CPU memory, an element type Tilewright lacks, an
// inconsistent shape.
Result<Tensor> import_dltensor(const DLTensor& tensor, std::shared_ptr<void> owner = nullptr);

// These take over `managed` when they succeed: its deleter runs when the last copy of the tensor
// goes.
Result<Tensor> import_dlpack(DLManagedTensor* managed);
Result<Tensor> import_dlpack(DLManagedTensorVersioned* managed);

// The consumer calls the deleter. Requires a defined tensor. The data lives as long as the longest
// user.
DLManagedTensor* export_dlpack(const Tensor& tensor);
DLManagedTensorVersioned* export_dlpack_versioned(const Tensor& tensor);

}  // namespace tilewright
