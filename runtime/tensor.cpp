#include "runtime/tensor.h"

#include <cstring>

#include "runtime/executable_check.h"

namespace tilewright {
namespace {

// Extents of 1 may have any stride: no second element uses it.
bool is_row_major(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

// Copies the elements of a strided tensor in row-major order, one innermost row after the other.
void copy_strided(const DLTensor& from, const uint8_t* source, int64_t size, int64_t count,
                  uint8_t* target) {
  std::vector<int64_t> position(from.ndim, 0);
  const Tensor layout =
      Tensor::borrow(DType::kUInt8, Shape(from.shape, from.shape + from.ndim), target);
  const std::vector<int64_t> row_major = layout.strides();
  const int64_t* strides = from.strides ? from.strides : row_major.data();
  for (int64_t n = 0; n < count; ++n) {
    int64_t offset = 0;
    for (int i = 0; i < from.ndim; ++i) offset += position[i] * strides[i];
    std::memcpy(target + n * size, source + offset * size, size);
    for (int i = from.ndim - 1; i >= 0 && ++position[i] == from.shape[i]; --i) position[i] = 0;
  }
}

// What an exported tensor keeps alive.
template <typename Managed>
struct Export {
  Tensor tensor;
  std::vector<int64_t> shape, strides;
  Managed managed;
};

template <typename Managed>
Managed* make_export(const Tensor& tensor) {
  TW_CHECK(tensor.defined());
  auto* e = new Export<Managed>{tensor, tensor.shape(), tensor.strides(), {}};
  DLTensor& t = e->managed.dl_tensor;
  t.data = tensor.data();
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<int32_t>(tensor.rank());
  t.dtype = to_dlpack(tensor.dtype());
  t.shape = e->shape.data();
  t.strides = e->strides.data();
  t.byte_offset = 0;
  e->managed.manager_ctx = e;
  e->managed.deleter = [](Managed* self) {
    delete static_cast<Export<Managed>*>(self->manager_ctx);
  };
  return &e->managed;
}

template <typename Managed>
Result<Tensor> import_managed(Managed* managed) {
  // Not the deleter yet: an import that fails leaves the tensor with the caller.
  auto armed = std::make_shared<bool>(false);
  std::shared_ptr<void> owner(managed, [armed](void* p) {
    auto* m = static_cast<Managed*>(p);
    if (*armed && m->deleter) m->deleter(m);
  });
  TW_ASSIGN(Tensor tensor, import_dltensor(managed->dl_tensor, owner));
  *armed = true;
  return tensor;
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, Shape shape) {
  const std::optional<int64_t> count = tilewright::element_count(shape);
  if (!count) return invalid("no tensor has the shape " + to_string(shape));
  if (*count > kLargestAllocation / byte_size(dtype))
    return limit_error("a tensor " + std::string(name(dtype)) + to_string(shape) + " is too large");
  TW_ASSIGN(Storage storage, allocate_storage(*count * byte_size(dtype)));
  return share(dtype, std::move(shape), std::move(storage));
}

Tensor Tensor::borrow(DType dtype, Shape shape, void* data) {
  return share(dtype, std::move(shape), data, nullptr);
}

Tensor Tensor::share(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner) {
  const std::optional<int64_t> count = tilewright::element_count(shape);
  TW_CHECK(count && (*count == 0 || data));
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.count_ = *count;
  t.capacity_ = t.bytes();
  t.data_ = data ? data : empty_storage();
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::share(DType dtype, Shape shape, Storage storage) {
  Tensor t = share(dtype, std::move(shape), storage.data, std::move(storage.owner));
  TW_CHECK(t.bytes() <= storage.capacity);
  t.capacity_ = storage.capacity;
  return t;
}

std::vector<int64_t> Tensor::strides() const {
  std::vector<int64_t> s(shape_.size());
  int64_t step = 1;
  for (size_t i = shape_.size(); i-- > 0;) {
    s[i] = step;
    step *= std::max<int64_t>(shape_[i], 1);
  }
  return s;
}

DLDataType to_dlpack(DType dtype) {
  const auto bits = static_cast<uint8_t>(byte_size(dtype) * 8);
  if (dtype == DType::kBool) return {kDLBool, bits, 1};
  if (dtype == DType::kBFloat16) return {kDLBfloat, bits, 1};
  if (is_float(dtype)) return {kDLFloat, bits, 1};
  return {static_cast<uint8_t>(is_unsigned(dtype) ? kDLUInt : kDLInt), bits, 1};
}

Result<DType> from_dlpack(DLDataType dtype) {
  for (const DTypeInfo& i : kDTypes) {
    const DLDataType d = to_dlpack(i.dtype);
    if (d.code == dtype.code && d.bits == dtype.bits && dtype.lanes == 1) return i.dtype;
  }
  return unsupported("dlpack element type: code " + std::to_string(dtype.code) + ", " +
                     std::to_string(dtype.bits) + " bits, " + std::to_string(dtype.lanes) +
                     " lanes");
}

Result<Tensor> import_dltensor(const DLTensor& tensor, std::shared_ptr<void> owner) {
  if (tensor.device.device_type != kDLCPU && tensor.device.device_type != kDLCUDAHost)
    return unsupported("dlpack tensor is on device type " +
                       std::to_string(int(tensor.device.device_type)) + ", expected CPU memory");
  TW_ASSIGN(const DType dtype, from_dlpack(tensor.dtype));
  if (tensor.ndim < 0 || tensor.ndim > kRankLimit)
    return invalid("dlpack tensor of rank " + std::to_string(tensor.ndim) + ", at most " +
                   std::to_string(kRankLimit) + " are possible");
  if (tensor.ndim > 0 && !tensor.shape) return invalid("dlpack tensor without a shape");
  Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  const std::optional<int64_t> count = element_count(shape);
  if (!count) return invalid("no tensor has the shape " + to_string(shape));
  if (*count == 0) return Tensor::borrow(dtype, std::move(shape), nullptr);
  if (!tensor.data) return invalid("dlpack tensor " + to_string(shape) + " has no data");
  uint8_t* data = static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
  const int64_t size = byte_size(dtype);
  if (is_row_major(tensor) && reinterpret_cast<uintptr_t>(data) % size == 0)
    return Tensor::share(dtype, std::move(shape), data, std::move(owner));
  TW_ASSIGN(Tensor copy, Tensor::allocate(dtype, std::move(shape)));
  copy_strided(tensor, data, size, *count, copy.data_as<uint8_t>());
  return copy;
}

Result<Tensor> import_dlpack(DLManagedTensor* managed) { return import_managed(managed); }

Result<Tensor> import_dlpack(DLManagedTensorVersioned* managed) {
  if (managed->version.major != DLPACK_MAJOR_VERSION)
    return unsupported("dlpack version " + std::to_string(managed->version.major) + ", expected 1");
  return import_managed(managed);
}

DLManagedTensor* export_dlpack(const Tensor& tensor) {
  return make_export<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned* export_dlpack_versioned(const Tensor& tensor) {
  auto* m = make_export<DLManagedTensorVersioned>(tensor);
  m->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m->flags = 0;
  return m;
}

}  // namespace tilewright
