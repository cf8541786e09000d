// Every schedule primitive: cases of its file, and steps that lack parameters.
#include "passes/schedule/primitives.h"

#include <gtest/gtest.h>

#include "ir/text/parser_loops.h"
#include "tests/passes/golden.h"

namespace tilewright::passes {
namespace {

class Primitives : public testing::TestWithParam<Primitive> {};

TEST_P(Primitives, DoWhatTheirFileSays) {
  check_golden(std::string(GetParam().name), {ir::Stage::kScheduled, ir::Stage::kScheduled, true},
               [](const ir::Kernel& k, const std::string& steps) -> Result<ir::Kernel> {
                 TW_ASSIGN(Trace trace, parse_trace(steps));
                 return apply_trace(k, trace);
               });
}

TEST_P(Primitives, RefuseMissingParameters) {
  auto kernel = ir::parse_kernel("kernel k(A: f32[4]) { for i in 0..4 { A[i] = 0.0 } }");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const auto bare = apply_trace(*kernel, {{std::string(GetParam().name), {}, {}}});
  ASSERT_FALSE(bare.ok());
  EXPECT_EQ(bare.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(bare.error().location.find("step 0"), std::string::npos) << bare.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(All, Primitives,
                         testing::ValuesIn(primitives().begin(), primitives().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilewright::passes
