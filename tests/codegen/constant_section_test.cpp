// The bytes of constants: equal contents are stored once.
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/flatten_program.h"

namespace tilewright::codegen {
namespace {

ir::ConstantRef floats(const Shape& shape, float first) {
  std::vector<float> values(static_cast<size_t>(*element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return ir::make_constant_of<float>(DType::kFloat32, shape, values);
}

TEST(ConstantSection, StoresEqualContentsOnce) {
  ConstantSection section;
  const int64_t a = section.add(floats({100, 30}, 1), {});
  EXPECT_EQ(section.add(floats({100, 30}, 1), {}), a);
  EXPECT_EQ(section.add(floats({3000}, 1), {}), a);  // the same bytes in another shape
  const int64_t bytes = section.bytes();
  const int64_t b = section.add(floats({100, 30}, 2), {});
  EXPECT_NE(b, a);
  EXPECT_EQ(section.bytes(), 2 * bytes);
  std::vector<uint8_t> out(static_cast<size_t>(section.bytes()));
  section.move_to(out.data());
  float first = 0;
  std::memcpy(&first, out.data() + b, sizeof first);
  EXPECT_EQ(first, 2);
}

// Contents that differ at one place only, wherever it is, and constants without elements.
TEST(ConstantSection, TellsUnequalOnesApart) {
  ConstantSection section;
  const int64_t zeros =
      section.add(ir::make_constant(DType::kUInt8, {70000}, std::vector<uint8_t>(70000)), {});
  for (size_t at : {0, 1000, 34567, 69999}) {
    std::vector<uint8_t> bytes(70000);
    bytes[at] = 1;
    EXPECT_NE(section.add(ir::make_constant(DType::kUInt8, {70000}, bytes), {}), zeros) << at;
  }
  const int64_t empty = section.add(floats({0}, 0), {});
  EXPECT_EQ(section.add(floats({3, 0}, 0), {}), empty);
}

TEST(ConstantSection, LayoutsAreApart) {
  ConstantSection section;
  const ir::Layout transposed = ir::permuted_layout({1, 0});
  const int64_t plain = section.add(floats({4, 6}, 1), {});
  const int64_t packed = section.add(floats({4, 6}, 1), transposed);
  EXPECT_NE(packed, plain);
  EXPECT_EQ(section.add(floats({4, 6}, 1), transposed), packed);
  EXPECT_NE(section.add(floats({6, 4}, 1), transposed), packed);
}

}  // namespace
}  // namespace tilewright::codegen
