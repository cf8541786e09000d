// Pieces of one tensor that lie together are views with offsets: what works on them is one kernel,
// which does not know of the whole, and computes what it would on copies.
#include <gtest/gtest.h>

#include "ir/module_text/parser_graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

const CompiledForm kForm{true, true, true};

struct Found {
  size_t kernels = 0, calls = 0;
  int views = 0;  // that begin within another buffer
};

// Compiles a graph, whose results on 1 and 3 threads must be the interpreter's within rounding.
Found check(const ir::Graph& graph, const Tensors& inputs) {
  auto program = lower_graph_for(graph, kForm);
  if (!program.ok()) {
    ADD_FAILURE() << program.error().to_string();
    return {};
  }
  auto expected = interpret_graph(graph, inputs);
  auto runs = run_compiled(graph, inputs, kForm, {1, 3});
  if (!expected.ok() || !runs.ok()) {
    ADD_FAILURE() << (expected.ok() ? runs.error() : expected.error()).to_string();
    return {};
  }
  const double bound = expected->steps * expected->largest * epsilon(DType::kFloat32);
  for (const Tensors& run : *runs)
    for (size_t k = 0; k < run.size(); ++k)
      EXPECT_LE(difference(run[k], expected->outputs[k]), bound) << "output " << k;
  Found found{program->kernels.size(), program->profile.size()};
  for (const ir::ProgramBuffer& b : program->buffers) found.views += b.alias_offset != 0;
  return found;
}

class Pieces : public testing::Test {
 protected:
  ir::ValueId input(const Shape& shape) {
    return call_.input(random_tensor(DType::kFloat32, shape, random_));
  }
  ir::ValueId ints(const std::vector<double>& values) {
    return call_.constant(repeated(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  ir::ValueId slice(ir::ValueId x, double from, double to) {
    return call_.op("slice", {x, ints({from}), ints({to})});
  }
  // Elements [from, from + rows * columns) of a vector.
  ir::ValueId matrix(ir::ValueId x, double from, double rows, double columns) {
    return call_.op("reshape", {slice(x, from, from + rows * columns), ints({rows, columns})},
                    {{"allowzero", int64_t{0}}});
  }
  GraphCall call_;
  std::mt19937_64 random_{5};
};

// As flat parameters of layers alike.
TEST_F(Pieces, OfAnInputAreReadByOneKernel) {
  const ir::ValueId flat = input({3 * 17 * 16}), x = input({5, 17});
  for (const double from : {0.0, 272.0, 544.0})
    call_.output(call_.op("matmul", {x, matrix(flat, from, 17, 16)}));
  const Found found = check(call_.graph, call_.inputs);
  EXPECT_EQ(found.calls, 3u);
  EXPECT_EQ(found.kernels, 1u);
  EXPECT_GE(found.views, 2);
}
// Where no offset is a multiple of a cache line, kernels read within the whole, or copies.
TEST_F(Pieces, ThatBeginAmidALineAreReadToo) {
  const ir::ValueId flat = input({2 * 17 * 16 + 9}), x = input({5, 17});
  for (const double from : {3.0, 281.0})
    call_.output(call_.op("matmul", {x, matrix(flat, from, 17, 16)}));
  EXPECT_EQ(check(call_.graph, call_.inputs).views, 0);
}
// A transposed reading of it, rows of a wider matrix, and pieces that overlap.
TEST_F(Pieces, OfOneInputInSeveralShapes) {
  const ir::ValueId flat = input({640}), wide = input({8, 48});
  call_.output(call_.op("exp", {matrix(flat, 64, 16, 16)}));
  call_.output(
      call_.op("transpose", {matrix(flat, 128, 16, 16)}, {{"perm", std::vector<int64_t>{1, 0}}}));
  call_.output(call_.op("relu", {slice(flat, 32, 320)}));
  call_.output(call_.op("neg", {slice(wide, 2, 5)}));
  call_.output(call_.op("neg", {slice(wide, 4, 7)}));
  EXPECT_GE(check(call_.graph, call_.inputs).views, 4);
}
// Each layer stores its gradient where it belongs.
TEST_F(Pieces, OfAConcatAreWrittenByOneKernel) {
  const ir::ValueId x = input({16, 4, 8});
  std::vector<ir::ValueId> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(call_.op("matmul", {x, input({8, 16})}));
  call_.output(call_.op("concat", parts, {{"axis", int64_t{0}}}));
  const Found found = check(call_.graph, call_.inputs);
  EXPECT_EQ(found.calls, 4u);
  EXPECT_EQ(found.kernels, 1u);
  EXPECT_EQ(found.views, 3);
}
// So does what is of another shape there, in the flat order of parameters.
TEST_F(Pieces, OfAConcatOfViewsAreWrittenWhereTheyBelong) {
  const ir::ValueId x = input({17, 16});
  std::vector<ir::ValueId> parts;
  for (int i = 0; i < 3; ++i)
    parts.push_back(call_.op("reshape", {call_.op("matmul", {x, input({16, 32})}), ints({272 * 2})},
                             {{"allowzero", int64_t{0}}}));
  call_.output(call_.op("concat", parts, {{"axis", int64_t{0}}}));
  const Found found = check(call_.graph, call_.inputs);
  EXPECT_EQ(found.calls, 3u);
  EXPECT_EQ(found.kernels, 1u);
}
// One value in two shapes lies in one of the parts, and is copied to the other; others read it there.
TEST_F(Pieces, OfOneValueInTwoShapes) {
  const ir::ValueId y = call_.op("matmul", {input({8, 16}), input({16, 32})});
  const auto flat = [&](ir::ValueId v) {
    return call_.op("reshape", {v, ints({256})}, {{"allowzero", int64_t{0}}});
  };
  const ir::ValueId turned = call_.op("transpose", {y}, {{"perm", std::vector<int64_t>{1, 0}}});
  call_.output(call_.op("concat", {flat(y), flat(turned), flat(y)}, {{"axis", int64_t{0}}}));
  call_.output(call_.op("exp", {y}));
  check(call_.graph, call_.inputs);
}
// Results of the graph, and parts that no multiple of a cache line begins, are copied.
TEST_F(Pieces, OfAConcatThatHaveToLieElsewhere) {
  const ir::ValueId x = input({3, 16}), a = call_.op("matmul", {x, input({16, 5})}),
                    b = call_.op("matmul", {x, input({16, 7})});
  const auto flat = [&](ir::ValueId v, double n) {
    return call_.op("reshape", {v, ints({n})}, {{"allowzero", int64_t{0}}});
  };
  call_.output(call_.op("concat", {flat(a, 15), flat(b, 21)}, {{"axis", int64_t{0}}}));
  call_.output(a);
  EXPECT_EQ(check(call_.graph, call_.inputs).views, 0);
}
// Their extents are the run's: where they lie is not known.
TEST_F(Pieces, OfUnknownExtentsHaveNoOffset) {
  auto graph = ir::parse_graph(R"(graph unknown {
  input x: f32[n, 16]
  const from: i64[1] = [2]
  const to: i64[1] = [5]
  s: f32[3, 16] = slice(x, from, to)
  y: f32[3, 16] = exp(s)
  output y as "y"
}
)");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_EQ(check(*graph, {random_tensor(DType::kFloat32, {7, 16}, random_)}).views, 0);
}

// The state of a loop changes under the views of it, trip after trip; a branch reads pieces of what
// is computed outside of it.
constexpr const char* kRegions = R"(graph regions {
  input n: i64[]
  input c: bool[]
  input x: f32[64]
  y: f32[64] = loop(n, _, x) {carried = 1, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f32[64]
      const zero: i64[1] = [0]
      const half: i64[1] = [32]
      const all: i64[1] = [64]
      low: f32[32] = slice(u, zero, half)
      high: f32[32] = slice(u, half, all)
      sum: f32[32] = add(low, high)
      less: f32[32] = sub(high, low)
      both: f32[64] = concat(sum, less) {axis = 0}
      output both as "both"
    }
  ]
  z: f32[32] = if(c, y) with [
    graph then {
      input v: f32[64]
      const half: i64[1] = [32]
      const all: i64[1] = [64]
      w: f32[32] = slice(v, half, all)
      e: f32[32] = relu(w)
      output e as "e"
    }
    graph otherwise {
      input v: f32[64]
      const quarter: i64[1] = [16]
      const most: i64[1] = [48]
      w: f32[32] = slice(v, quarter, most)
      e: f32[32] = neg(w)
      output e as "e"
    }
  ]
  output y as "y"
  output z as "z"
}
)";
TEST_F(Pieces, OfStatesAndOfWhatBranchesRead) {
  auto graph = ir::parse_graph(kRegions);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  auto program = lower_graph_for(*graph, kForm);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  int views = 0;
  for (const ir::ProgramBuffer& b : program->buffers) views += b.alias_offset != 0;
  EXPECT_GE(views, 3);
  std::vector<double> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) - 20;
  for (const int trips : {0, 1, 3})
    for (const bool taken : {false, true}) {
      std::vector<double> y = x;
      for (int t = 0; t < trips; ++t)
        for (size_t i = 0; i < 32; ++i) {
          const double low = y[i], high = y[i + 32];
          y[i] = low + high, y[i + 32] = high - low;
        }
      auto runs = run_compiled(
          *graph,
          {repeated(DType::kInt64, {}, {static_cast<double>(trips)}),
           repeated(DType::kBool, {}, {taken ? 1.0 : 0.0}), repeated(DType::kFloat32, {64}, x)},
          kForm, {1, 3});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      for (const Tensors& run : *runs) {
        for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(element(run[0], i), y[static_cast<size_t>(i)]);
        for (int64_t i = 0; i < 32; ++i) {
          const auto at = static_cast<size_t>(i);
          EXPECT_EQ(element(run[1], i), taken ? std::max(y[at + 32], 0.0) : -y[at + 16]);
        }
      }
    }
}

}  // namespace
}  // namespace tilewright
