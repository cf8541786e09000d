// Products in tiles of a matrix unit (AMX): the machine code, its AMX instructions emulated where
// the CPU lacks them, against the interpreter, over sizes that leave rows and columns.
#include <gtest/gtest.h>

#include "ir/loops/rewrite.h"
#include "tests/ops/amx_emulator.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

const ir::Attributes kSum{{"out_dtype", std::string("i32")}};

struct Size {
  int64_t m, k, n;
};

class MatrixProducts : public testing::Test {
 protected:
  void SetUp() override {
    // Tiles take the place of vectors of 16 lanes.
    if (!runs_here("x86-64-v4")) GTEST_SKIP() << "this machine lacks AVX-512";
  }
  CompiledForm form() const {
    CompiledForm f{.fold = true};
    f.more_features = {"amx-bf16", "amx-int8", "amx-tile"};
    return f;
  }
  HostTensor bytes(DType t, const Shape& shape) { return random_bytes(t, shape, random_); }
  HostTensor halves(const Shape& shape) { return random_tensor(DType::kBFloat16, shape, random_); }
  GraphCall product_of_bytes(const Size& s) {
    GraphCall call;
    call.output(call.op("matmul",
                        {call.input(bytes(DType::kUInt8, {s.m, s.k})),
                         call.constant(bytes(DType::kInt8, {s.k, s.n}))},
                        kSum));
    return call;
  }
  // Compiled as it is for this machine with AMX; tolerance as a part of one and as a number.
  void expect_near_oracle(const GraphCall& call, double relative, double absolute,
                          bool small_caches = false) {
    auto oracle = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
    CompiledForm f = form();
    f.small_caches = small_caches;
    const AmxEmulator emulator;
    auto runs = run_compiled(call.graph, call.inputs, f, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    if (!runs_here("sapphirerapids")) { EXPECT_GT(emulator.products(), 0); }
    for (const Tensors& run : *runs)
      for (size_t p = 0; p < run.size(); ++p)
        for (int64_t i = 0; i < run[p].size(); ++i) {
          const double expected = element(oracle->outputs[p], i);
          ASSERT_NEAR(element(run[p], i), expected, relative * std::abs(expected) + absolute)
              << "element " << i;
        }
  }
  int64_t count_tiles(const GraphCall& call) {
    auto program = lower_graph_for(call.graph, form());
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    int64_t n = 0;
    for (const ir::Kernel& k : program->kernels)
      ir::for_each_stmt(k.body,
                        [&](const ir::Stmt& s) { n += s.kind() == ir::NodeKind::kDotTile; });
    return n;
  }
  std::mt19937_64 random_{1};
};

TEST_F(MatrixProducts, OfBytes) {
  for (const Size& s : {Size{16, 128, 16},
                        {33, 64, 40},
                        {50, 192, 96},
                        {7, 64, 33},
                        {64, 64, 16},
                        {47, 320, 12},
                        {14, 128, 64},
                        {96, 256, 9}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    expect_near_oracle(product_of_bytes(s), 0, 0);
    if (HasFailure()) return;
  }
}

TEST_F(MatrixProducts, OfTheLargestBytes) {
  GraphCall call;
  for (const double weight : {-128.0, 127.0})
    call.output(call.op("matmul",
                        {call.input(repeated(DType::kUInt8, {17, 512}, {255})),
                         call.constant(repeated(DType::kInt8, {512, 19}, {weight}))},
                        kSum));
  expect_near_oracle(call, 0, 0);
}

// Panels that no cache holds: the sums of all rows wait while the reduction goes on around them.
TEST_F(MatrixProducts, OfBytesInParts) {
  expect_near_oracle(product_of_bytes({130, 512, 48}), 0, 0, true);
}

TEST_F(MatrixProducts, OfHalves) {
  // Every CPU with AMX has it, too, and what is left over goes there: that is not emulated.
  if (!runs_here("cooperlake")) GTEST_SKIP() << "this machine lacks AVX512-BF16";
  for (const Size& s : {Size{16, 32, 16}, {33, 64, 40}, {50, 96, 96}, {7, 32, 33}, {48, 320, 12}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    GraphCall call;
    call.output(
        call.op("matmul", {call.input(halves({s.m, s.k})), call.constant(halves({s.k, s.n}))}));
    // Sums of k products of at most 1 in f32, in another order, then rounded to bf16.
    const auto k = static_cast<double>(s.k);
    expect_near_oracle(call, 0x1p-7, k * k * 0x1p-24);
    if (HasFailure()) return;
  }
}

TEST_F(MatrixProducts, Convolutions) {
  struct Window {
    int64_t kernel, stride, pad, size, results;
  };
  for (const Window& w : {Window{1, 1, 0, 7, 64},
                          {3, 1, 1, 14, 32},
                          {3, 2, 1, 20, 17},
                          {1, 2, 0, 33, 24},
                          {3, 1, 1, 9, 40}}) {
    SCOPED_TRACE(testing::Message() << w.kernel << " by stride " << w.stride << " of " << w.size);
    GraphCall call;
    ir::Attributes attributes = kSum;
    attributes["strides"] = std::vector<int64_t>{w.stride, w.stride};
    attributes["pads"] = std::vector<int64_t>(4, w.pad);
    const ir::Attributes one{{"kernel_shape", std::vector<int64_t>{1, 1}}};
    // Between windows channels are innermost.
    const ir::ValueId x =
        call.op("max_pool", {call.input(bytes(DType::kUInt8, {2, 64, w.size, w.size}))}, one);
    const ir::ValueId weights =
        call.constant(bytes(DType::kInt8, {w.results, 64, w.kernel, w.kernel}));
    call.output(call.op(
        "max_pool",
        {call.op("conv", {x, weights, call.input(bytes(DType::kUInt8, {}))}, attributes)}, one));
    expect_near_oracle(call, 0, 0);
    if (HasFailure()) return;
  }
}

TEST_F(MatrixProducts, TakeTilesWhereTheyFit) {
  EXPECT_EQ(count_tiles(product_of_bytes({64, 128, 64})), 4);
  EXPECT_EQ(count_tiles(product_of_bytes({14, 128, 64})), 2);
  EXPECT_EQ(count_tiles(product_of_bytes({64, 128, 16})), 2);
  EXPECT_EQ(count_tiles(product_of_bytes({64, 96, 64})), 0);  // no whole tile of terms
  EXPECT_EQ(count_tiles(product_of_bytes({4, 128, 64})), 0);  // too few rows
  EXPECT_EQ(count_tiles(product_of_bytes({64, 128, 8})), 0);  // too few columns
}

}  // namespace
}  // namespace tilewright
