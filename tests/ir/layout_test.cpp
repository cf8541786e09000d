// Layouts of buffers: the order of axes, blocks of axes and the elements that pad them.
#include "ir/loops/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tilewright::ir {
namespace {

TEST(Layout, RowMajorWhenEmpty) {
  EXPECT_EQ(storage_elements(Layout{}, Shape{2, 3, 4}), 24);
  const int64_t index[] = {1, 2, 3};
  EXPECT_EQ(storage_offset(physical_axes({}, {2, 3, 4}), index), 23);
  EXPECT_EQ(storage_elements(Layout{}, Shape{}), 1);
}

// 11 elements in 2 blocks of 8, the last with a gap; a block is 4 pairs.
TEST(Layout, TwoLevelsOfBlocksPad) {
  const Layout layout{{0, 8, 0}, {1, 1, 0}, {0, 2, 4}, {0, 1, 2}};
  const Shape shape{11, 3};
  EXPECT_EQ(storage_elements(layout, shape), 2 * 3 * 4 * 2);
  const int64_t index[] = {10, 2};  // 10 = 1 * 8 + 1 * 2 + 0
  EXPECT_EQ(storage_offset(physical_axes(layout, shape), index), ((1 * 3 + 2) * 4 + 1) * 2 + 0);
}

// Rows of 3 begin at multiples of 4.
TEST(Layout, RemaindersPad) {
  const Layout layout{{0, 3, 0}, {1, 1, 0}, {0, 1, 3, 4}};
  const Shape shape{6, 5};
  EXPECT_EQ(storage_elements(layout, shape), 2 * 5 * 4);
  const int64_t index[] = {5, 2};
  EXPECT_EQ(storage_offset(physical_axes(layout, shape), index), (1 * 5 + 2) * 4 + 2);
}
TEST(Layout, OnlyRemaindersPadAndOnlyUpwards) {
  EXPECT_TRUE((LayoutAxis{0, 1, 3, 4}.fits(1)));
  EXPECT_FALSE((LayoutAxis{0, 1, 3, 3}.fits(1)));
  EXPECT_FALSE((LayoutAxis{0, 1, 0, 4}.fits(1)));
  EXPECT_FALSE((LayoutAxis{0, 1, 3, -4}.fits(1)));
}

// And gaps are zero: kernels may compute with them.
TEST(Layout, PackAndUnpackAreInverse) {
  for (const Layout& layout :
       {Layout{}, permuted_layout({2, 0, 1}), Layout{{1, 4, 0}, {2, 1, 0}, {0, 1, 0}, {1, 1, 4}},
        Layout{{1, 3, 0}, {2, 1, 0}, {0, 1, 0}, {1, 1, 3, 8}}}) {
    const Shape shape{3, 6, 5};
    std::vector<uint16_t> values(90);
    std::iota(values.begin(), values.end(), uint16_t{1});
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    const auto packed = pack(bytes, DType::kUInt16, shape, layout);
    EXPECT_EQ(packed.size(), static_cast<size_t>(storage_elements(layout, shape)) * 2);
    EXPECT_EQ(unpack(packed.data(), DType::kUInt16, shape, layout),
              std::vector<uint8_t>(bytes, bytes + 180));
    const auto* elements = reinterpret_cast<const uint16_t*>(packed.data());
    const auto zeros = std::count(elements, elements + packed.size() / 2, uint16_t{0});
    EXPECT_EQ(zeros, storage_elements(layout, shape) - 90);
  }
}

}  // namespace
}  // namespace tilewright::ir
