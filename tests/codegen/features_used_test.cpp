// Which instruction sets a kernel's code may use.
#include "codegen/cpu/features_used.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/cpu/compile_kernels.h"
#include "ir/text/parser_loops.h"

namespace tilewright::cpu {
namespace {

using Features = std::vector<std::string>;

const Features kAll{"avx2",       "avx512bf16", "avx512f", "avx512fp16",
                    "avx512vbmi", "avx512vnni", "avxvnni", "fma"};

ir::Kernel copies(const std::string& from, const std::string& to) {
  const std::string value = from == to ? "A[i]" : to + "(A[i])";
  auto k = ir::parse_kernel("kernel k(A: " + from + "[16], B: " + to +
                            "[16]) { for i in 0..16 { B[i] = " + value + " } }");
  EXPECT_TRUE(k.ok()) << k.error().to_string();
  return *k;
}

TEST(FeaturesUsed, SpecialOnesGoWithTheirElementTypes) {
  const Features base{"avx2", "avx512f", "fma"};
  EXPECT_EQ(base_features(kAll), base);
  for (const char* type : {"f32", "f64", "i32", "i64", "u64", "bool"})
    EXPECT_EQ(features_used(copies(type, type), kAll), base) << type;
  EXPECT_EQ(features_used(copies("f32", "f16"), kAll),
            (Features{"avx2", "avx512f", "avx512fp16", "fma"}));
  EXPECT_EQ(features_used(copies("bf16", "f32"), kAll),
            (Features{"avx2", "avx512bf16", "avx512f", "fma"}));
  EXPECT_EQ(features_used(copies("i8", "i32"), kAll),
            (Features{"avx2", "avx512f", "avx512vbmi", "avx512vnni", "avxvnni", "fma"}));
  EXPECT_EQ(features_used(copies("i16", "i32"), kAll),
            (Features{"avx2", "avx512f", "avx512vnni", "avxvnni", "fma"}));
}

TEST(FeaturesUsed, ThoseOfTheMatrixUnitGoWithItsTiles) {
  auto tile = [](const std::string& left, const std::string& right, const std::string& sum) {
    auto k = ir::parse_kernel("kernel k(A: " + left + "[64], B: " + right + "[64], C: " + sum +
                              "[256]) { dot_tile(C[0, 16], A[0, 4], B[0, 64], 16, 1, 1) }");
    EXPECT_TRUE(k.ok()) << k.error().to_string();
    return *k;
  };
  const Features all{"amx-bf16", "amx-int8", "amx-tile", "avx512f"};
  EXPECT_EQ(features_used(tile("u8", "i8", "i32"), all),
            (Features{"amx-int8", "amx-tile", "avx512f"}));
  EXPECT_EQ(features_used(tile("bf16", "bf16", "f32"), all),
            (Features{"amx-bf16", "amx-tile", "avx512f"}));
  EXPECT_EQ(features_used(tile("i16", "i16", "i32"), all), (Features{"avx512f"}));
  EXPECT_EQ(features_used(copies("u8", "bf16"), all), (Features{"avx512f"}));
}

TEST(FeaturesUsed, NoneThatTheMachineLacks) {
  EXPECT_EQ(features_used(copies("i8", "f16"), {"avx2", "fma"}), (Features{"avx2", "fma"}));
  EXPECT_TRUE(features_used(copies("bf16", "i8"), {}).empty());
}

TEST(FeaturesUsed, AKernelNeedsWhatItUses) {
  auto machine = describe_machine("sapphirerapids");
  ASSERT_TRUE(machine.ok()) << machine.error().to_string();
  auto has = [](const Features& all, const char* f) {
    return std::find(all.begin(), all.end(), f) != all.end();
  };
  ASSERT_TRUE(has(machine->features, "avx512bf16") && has(machine->features, "avx512vnni"));
  ir::Kernel floats = copies("f32", "f32"), bytes = copies("i8", "i32");
  auto both = compile_kernels({&floats, &bytes}, *machine, 1);
  ASSERT_TRUE(both.ok()) << both.error().to_string();
  EXPECT_EQ((*both)[0].features, base_features(machine->features));
  EXPECT_EQ((*both)[1].features, features_used(bytes, machine->features));
  EXPECT_TRUE(has((*both)[1].features, "avx512vnni"));
  EXPECT_FALSE(has((*both)[1].features, "avx512bf16"));
}

}  // namespace
}  // namespace tilewright::cpu
