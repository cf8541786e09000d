#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace tilewright {
namespace {

Tensor iota(Shape shape) {
  Tensor t = Tensor::allocate(DType::kFloat32, std::move(shape)).value();
  std::iota(t.data_as<float>(), t.data_as<float>() + t.element_count(), 0.0f);
  return t;
}

TEST(Tensor, AllocatesAlignedAndSharesOnCopy) {
  const Tensor t = Tensor::allocate(DType::kFloat64, {2, 3, 5}).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_EQ(t.bytes(), 240);
  EXPECT_EQ(t.capacity(), 256);
  EXPECT_EQ(t.strides(), (std::vector<int64_t>{15, 5, 1}));
  const Tensor copy = t;
  EXPECT_EQ(copy.data(), t.data());
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, ZeroSizeAndScalars) {
  const Tensor empty = Tensor::allocate(DType::kInt8, {3, 0}).value();
  EXPECT_TRUE(empty.defined());
  EXPECT_EQ(empty.bytes(), 0);
  EXPECT_TRUE(Tensor::borrow(DType::kInt8, {0}, nullptr).defined());
  EXPECT_EQ(Tensor::allocate(DType::kInt64, {})->element_count(), 1);
}

TEST(Tensor, RefusesImpossibleShapes) {
  EXPECT_EQ(Tensor::allocate(DType::kFloat32, {2, -1}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(Tensor::allocate(DType::kFloat32, {int64_t{1} << 40}).error().kind, ErrorKind::kLimit);
  EXPECT_FALSE(Tensor::allocate(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}).ok());
}

TEST(Tensor, ElementTypesMapToDlpackAndBack) {
  for (const DTypeInfo& i : kDTypes)
    EXPECT_EQ(from_dlpack(to_dlpack(i.dtype)).value(), i.dtype) << i.name;
  EXPECT_FALSE(from_dlpack({kDLFloat, 32, 4}).ok());
  EXPECT_FALSE(from_dlpack({kDLFloat, 8, 1}).ok());
}

template <typename Managed>
void round_trip(Managed* (*export_it)(const Tensor&)) {
  Tensor t = iota({2, 3});
  Managed* m = export_it(t);
  const void* data = t.data();
  t = {};  // the export keeps the data
  Tensor back = import_dlpack(m).value();
  EXPECT_EQ(back.data(), data);
  EXPECT_EQ(back.shape(), (Shape{2, 3}));
  EXPECT_EQ(back.data_as<float>()[5], 5);
}
TEST(Tensor, DlpackRoundTripWithoutCopies) {
  round_trip<DLManagedTensor>(export_dlpack);
  round_trip<DLManagedTensorVersioned>(export_dlpack_versioned);
}

TEST(Tensor, TheDeleterRunsOnceWithTheLastCopy) {
  static int deleted;
  deleted = 0;
  float data[4] = {};
  int64_t shape[1] = {4};
  DLManagedTensor m{{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0},
                    nullptr,
                    [](DLManagedTensor*) { ++deleted; }};
  {
    Tensor a = import_dlpack(&m).value(), b = a;
    a = {};
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  m.dl_tensor.device.device_type = kDLCUDA;
  EXPECT_EQ(import_dlpack(&m).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(deleted, 1);  // an import that fails leaves it with the caller
}

TEST(Tensor, StridedAndMisalignedTensorsAreCopied) {
  const Tensor t = iota({2, 3});
  int64_t shape[2] = {3, 2}, strides[2] = {1, 3};
  const DLTensor transposed{t.data(), {kDLCPU, 0}, 2, to_dlpack(DType::kFloat32),
                            shape,    strides,     0};
  const Tensor copy = import_dltensor(transposed).value();
  EXPECT_NE(copy.data(), t.data());
  const float expected[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(copy.data_as<float>()[i], expected[i]);

  alignas(8) char bytes[17] = {};
  const float one = 1;
  std::memcpy(bytes + 1, &one, 4);
  int64_t single[1] = {1};
  const DLTensor odd{bytes, {kDLCPU, 0}, 1, to_dlpack(DType::kFloat32), single, nullptr, 1};
  EXPECT_EQ(*import_dltensor(odd)->data_as<float>(), 1);
}

TEST(Tensor, RefusesInconsistentDlpackTensors) {
  float data[1];
  int64_t shape[1] = {-1};
  DLTensor t{data, {kDLCPU, 0}, 1, to_dlpack(DType::kFloat32), shape, nullptr, 0};
  EXPECT_FALSE(import_dltensor(t).ok());
  shape[0] = 1;
  t.data = nullptr;
  EXPECT_FALSE(import_dltensor(t).ok());
  t.shape = nullptr;
  EXPECT_FALSE(import_dltensor(t).ok());
}

}  // namespace
}  // namespace tilewright
