// Indices out of range: an error that names node, index and extent, from the run when only the run
// knows them; the ends of the range are no error.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "ir/module_text/parser_graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

constexpr int64_t kLow = std::numeric_limits<int64_t>::min(),
                  kHigh = std::numeric_limits<int64_t>::max();

HostTensor floats(const Shape& shape) {
  std::mt19937_64 random(1);
  return random_tensor(DType::kFloat32, shape, random);
}
HostTensor integers(DType t, const Shape& shape, const std::vector<int64_t>& values) {
  HostTensor x(t, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t v = values[i];
    std::memcpy(x.bytes.data() + i * static_cast<size_t>(byte_size(t)), &v,
                static_cast<size_t>(byte_size(t)));
  }
  return x;
}
// "" or the error of running the graph in any form; all must agree.
std::string error_of(const std::string& text, const Tensors& inputs) {
  auto graph = ir::parse_graph(text);
  if (!graph.ok()) return "parse: " + graph.error().to_string();
  std::string first;
  bool any = false;
  for (const CompiledForm& form :
       {CompiledForm{}, CompiledForm{true, true, true}, CompiledForm{false, false}}) {
    auto runs = run_compiled(*graph, inputs, form, {1, 3});
    const std::string error = runs.ok() ? "" : runs.error().to_string();
    if (any) { EXPECT_EQ(error, first); }
    first = error;
    any = true;
  }
  return first;
}

struct Case {
  const char* name;
  std::string line;        // of the node, with operands x: f32[5, 4], i and u
  Shape indices, updates;  // updates empty: none
  const char* operator_name;
  int dim = 0;
};
const Case kCases[] = {
    {"gather", "y: f32[3, 4] = gather(x, i)", {3}, {}, "gather"},
    {"gather_columns", "y: f32[5, 3] = gather(x, i) {axis = 1}", {3}, {}, "gather", 1},
    {"gather_elements", "y: f32[3, 4] = gather_elements(x, i)", {3, 4}, {}, "gather_elements"},
    {"gather_nd", "y: f32[3] = gather_nd(x, i)", {3, 2}, {}, "gather_nd"},
    {"gather_nd_batch", "y: f32[5] = gather_nd(x, i) {batch_dims = 1}", {5, 1}, {}, "gather_nd", 1},
    {"scatter_elements",
     "y: f32[5, 4] = scatter_elements(x, i, u)",
     {3, 4},
     {3, 4},
     "scatter_elements"},
    {"scatter_nd", "y: f32[5, 4] = scatter_nd(x, i, u)", {3, 2}, {3}, "scatter_nd"},
};

class IndexRange : public testing::TestWithParam<Case> {
 protected:
  // The element at `place` is `index`, all others 0.
  std::string error_with(DType t, int64_t place, int64_t index, const std::string& rows = "5") {
    const Case& c = GetParam();
    std::vector<int64_t> values(static_cast<size_t>(*element_count(c.indices)), 0);
    values[static_cast<size_t>(place)] = index;
    auto type = [](const Shape& s) {
      std::string text = "[";
      for (size_t d = 0; d < s.size(); ++d) text += (d ? ", " : "") + std::to_string(s[d]);
      return text + "]";
    };
    std::string line = c.line;
    if (rows != "5")
      for (size_t at; (at = line.find("f32[5")) != std::string::npos;)
        line.replace(at, 5, "f32[" + rows);
    std::string text = "graph g {\n  input x: f32[" + rows +
                       ", 4]\n  input i: " + std::string(tilewright::name(t)) + type(c.indices) +
                       "\n";
    Tensors inputs{floats({5, 4}), integers(t, c.indices, values)};
    if (!c.updates.empty()) {
      text += "  input u: f32" + type(c.updates) + "\n";
      inputs.push_back(floats(c.updates));
    }
    return error_of(text + "  " + line + " from \"here\"\n  output y as \"y\"\n}\n", inputs);
  }
  std::string message(int64_t index, int dim, int64_t extent) {
    return std::string(GetParam().operator_name) + " 'here': index " + std::to_string(index) +
           " is out of range for dimension " + std::to_string(dim) + " of " +
           std::to_string(extent) + " elements";
  }
};

TEST_P(IndexRange, IsCheckedByTheRun) {
  const Case& c = GetParam();
  const int64_t count = *element_count(c.indices);
  const bool tuples = c.indices.size() == 2 && c.indices[1] == 2;
  for (const DType t : {DType::kInt64, DType::kInt32})
    for (const int64_t place : {int64_t{0}, count / 2, count - 1}) {
      const int dim = tuples ? static_cast<int>(place % 2) : c.dim;
      const int64_t n = dim == 0 ? 5 : 4;
      for (const int64_t right : {n - 1, -n}) EXPECT_EQ(error_with(t, place, right), "");
      std::vector<int64_t> wrong{n, -n - 1, 2000000000, -2000000000};
      if (t == DType::kInt64) wrong.insert(wrong.end(), {kLow, kHigh, kHigh - n, kLow + n});
      for (const int64_t index : wrong)
        EXPECT_EQ(error_with(t, place, index), message(index, dim, n));
    }
}

TEST_P(IndexRange, OfExtentsThatOnlyTheRunKnows) {
  EXPECT_EQ(error_with(DType::kInt64, 0, 3, "rows"), "");
  const int64_t n = GetParam().dim == 0 ? 5 : 4;
  EXPECT_EQ(error_with(DType::kInt64, 0, n, "rows"), message(n, GetParam().dim, n));
}

INSTANTIATE_TEST_SUITE_P(All, IndexRange, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(IndexRangeOf, EmptyIndicesOfNothing) {
  const std::string text =
      "graph g {\n  input x: f32[n, 4]\n  input i: i64[k]\n"
      "  y: f32[k, 4] = gather(x, i) from \"here\"\n  output y as \"y\"\n}\n";
  EXPECT_EQ(error_of(text, {floats({0, 4}), integers(DType::kInt64, {0}, {})}), "");
  EXPECT_EQ(error_of(text, {floats({0, 4}), integers(DType::kInt64, {1}, {0})}),
            "gather 'here': index 0 is out of range for dimension 0 of 0 elements");
}

// Indices that are constants.
std::string with_constant(const std::string& rows, const std::string& index) {
  return "graph g {\n  input x: f32[" + rows + ", 4]\n  const i: i64[1] = [" + index +
         "]\n  y: f32[1, 4] = gather(x, i) from \"here\"\n  output y as \"y\"\n}\n";
}
TEST(IndexRangeOf, Constants) {
  EXPECT_EQ(error_of(with_constant("5", "-5"), {floats({5, 4})}), "");
  EXPECT_NE(error_of(with_constant("5", "5"), {floats({5, 4})})
                .find("gather 'here': index 5 is out of range for dimension 0 of 5 elements"),
            std::string::npos);
  EXPECT_EQ(error_of(with_constant("n", "-2"), {floats({2, 4})}), "");
  EXPECT_EQ(error_of(with_constant("n", "-2"), {floats({1, 4})}),
            "gather 'here': index -2 is out of range for dimension 0 of 1 elements");
}

TEST(IndexRangeOf, ImagesOfRegions) {
  const std::string text = R"(graph g {
  input x: f32[2, 1, 4, 4]
  input rois: f32[3, 4]
  input batch: i64[3]
  y: f32[3, 1, 1, 1] = roi_align(x, rois, batch) from "here"
  output y as "y"
}
)";
  const auto error = [&](int64_t last) {
    return error_of(text, {floats({2, 1, 4, 4}), repeated(DType::kFloat32, {3, 4}, {0, 0, 2, 2}),
                           integers(DType::kInt64, {3}, {0, 1, last})});
  };
  EXPECT_EQ(error(1), "");
  EXPECT_EQ(error(2), "roi_align 'here': index 2 is out of range for dimension 0 of 2 elements");
}

// A branch that reads out of range is an error only when it is taken.
TEST(IndexRangeOf, BranchesNotTaken) {
  const std::string text = R"(graph g {
  input c: bool[]
  input x: f32[n, 4]
  y: f32[1, 4] = if(c, x) with [
    graph then {
      input v: f32[n, 4]
      const i: i64[1] = [3]
      w: f32[1, 4] = gather(v, i) from "here"
      output w as "w"
    }
    graph otherwise {
      input v: f32[n, 4]
      const i: i64[1] = [0]
      w: f32[1, 4] = gather(v, i) from "there"
      output w as "w"
    }
  ]
  output y as "y"
}
)";
  EXPECT_EQ(error_of(text, {repeated(DType::kBool, {}, {0}), floats({2, 4})}), "");
  EXPECT_EQ(error_of(text, {repeated(DType::kBool, {}, {1}), floats({2, 4})}),
            "gather 'here': index 3 is out of range for dimension 0 of 2 elements");
  EXPECT_EQ(error_of(text, {repeated(DType::kBool, {}, {1}), floats({4, 4})}), "");
}

}  // namespace
}  // namespace tilewright
