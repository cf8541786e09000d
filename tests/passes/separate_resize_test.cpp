// In which order resampling sums.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// Along the dimension whose elements lie side by side, whatever the layout.
TEST(SeparateResize, RowsAreAlongTheInnermostDimension) {
  for (const std::string layout : {"", " layout(d0, d2, d3, d1)"}) {
    const ir::Graph before = parsed_graph(R"(  input x: f32[1, 2, 3, 4]
  const s: f32[4] = [1.0, 1.0, 2.0, 2.0]
  y: f32[1, 2, 6, 8])" + layout + R"( = resize(x, _, s) {mode = "linear"}
  z: f32[1, 2, 6, 8] = neg(y)
  output z as "z"
)");
    const ir::Graph after = separate_resize(before);
    expect_same_graph_results(before, after);
    EXPECT_EQ(std::get<int64_t>(after.nodes[0].attributes.at("rows_first")),
              layout.empty() ? 3 : 1);
    EXPECT_EQ(after.nodes[1].attributes.size(), 0u);
  }
}

}  // namespace
}  // namespace tilewright::passes
