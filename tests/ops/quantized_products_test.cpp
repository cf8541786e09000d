// Products of 8-bit operands on every kind of dot product instruction, over sizes that leave tails:
// compiled equals interpreted, bit for bit.
#include <gtest/gtest.h>

#include "ir/loops/rewrite.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

// VNNI in 512 bits and in 256, 16-bit pairs in 512, 256 and 128 bits, and no instruction.
constexpr const char* kCpus[] = {"native",    "x86-64-v4",   "alderlake",
                                 "x86-64-v3", "sandybridge", "x86-64"};

class QuantizedProducts : public KernelTest {
 protected:
  HostTensor bytes(DType t, const Shape& shape) { return random_bytes(t, shape, random_); }
  HostTensor scalar(DType t) { return bytes(t, {}); }

  void expect_equal(const GraphCall& call) {
    KernelTest::expect_equal(call, 0, {{.fold = true}, {.fold = false}});
  }
};

const ir::Attributes kSum{{"out_dtype", std::string("i32")}};

// Inputs and results of a graph are row-major; between two windows, channels are innermost, which
// dot products need.
ir::ValueId between_layers(GraphCall& call, ir::ValueId v) {
  return call.op("max_pool", {v}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
}
ir::ValueId conv_between_layers(GraphCall& call, ir::ValueId x, ir::ValueId w, ir::ValueId zero,
                                const ir::Attributes& attributes) {
  return between_layers(call, call.op("conv", {between_layers(call, x), w, zero}, attributes));
}

// Cut in runs, where a dot's terms divide them.
TEST_P(QuantizedProducts, FewResultsOfManyTerms) {
  GraphCall call;
  for (const int64_t k : {16384, 16412, 16411})
    for (const int64_t m : {1, 3, 8})
      call.output(call.op(
          "matmul",
          {call.input(bytes(DType::kUInt8, {m, k})), call.constant(bytes(DType::kInt8, {k, 33}))},
          kSum));
  expect_equal(call);
}

TEST_P(QuantizedProducts, MatmulTails) {
  for (const int64_t n : {1, 15, 16, 17, 33, 67}) {
    SCOPED_TRACE("n = " + std::to_string(n));
    GraphCall call;
    for (const int64_t k : {4, 8, 36})
      for (const int64_t m : {1, 3, 14, 17})
        call.output(call.op(
            "matmul",
            {call.input(bytes(DType::kUInt8, {m, k})), call.constant(bytes(DType::kInt8, {k, n}))},
            kSum));
    expect_equal(call);
    if (HasFailure()) return;
  }
}

// 16 bits by bytes as they are stored, and by 16 bits.
TEST_P(QuantizedProducts, MatmulOfShorts) {
  for (const int64_t n : {1, 16, 17, 67}) {
    SCOPED_TRACE("n = " + std::to_string(n));
    GraphCall call;
    for (const DType w : {DType::kInt8, DType::kInt16})
      for (const int64_t k : {2, 38})
        for (const int64_t m : {1, 17})
          call.output(call.op(
              "matmul", {call.input(bytes(DType::kInt16, {m, k})), call.constant(bytes(w, {k, n}))},
              kSum));
    expect_equal(call);
    if (HasFailure()) return;
  }
}

TEST_P(QuantizedProducts, MatmulOfTheLargestBytes) {
  GraphCall call;
  for (const double weight : {-128.0, 127.0})
    call.output(call.op("matmul",
                        {call.input(repeated(DType::kUInt8, {3, 512}, {255})),
                         call.constant(repeated(DType::kInt8, {512, 19}, {weight}))},
                        kSum));
  expect_equal(call);
}

TEST_P(QuantizedProducts, MatmulWithZeroPoints) {
  GraphCall call;
  const Shape per_row{2, 7, 1}, per_column{17};
  for (const DType of_a : {DType::kUInt8, DType::kInt8})
    for (const DType of_b : {DType::kUInt8, DType::kInt8}) {
      const ir::ValueId a = call.input(bytes(of_a, {2, 7, 12})),
                        b = call.constant(bytes(of_b, {12, 17})),
                        transposed = call.constant(bytes(of_b, {17, 12}));
      ir::Attributes trans_b = kSum;
      trans_b["trans_b"] = int64_t{1};
      for (const ir::ValueId za : {ir::kNone, call.constant(scalar(of_a)), call.input(scalar(of_a)),
                                   call.input(bytes(of_a, per_row))}) {
        call.output(call.op("matmul", {a, b, za, call.constant(bytes(of_b, per_column))}, kSum));
        call.output(call.op("matmul", {a, transposed, za, call.constant(scalar(of_b))}, trans_b));
      }
    }
  expect_equal(call);
}

TEST_P(QuantizedProducts, ConvTails) {
  struct Window {
    int64_t kernel, stride, pad;
  };
  for (const Window w : {Window{1, 1, 0}, {1, 2, 0}, {3, 1, 1}, {3, 2, 1}, {3, 1, 0}}) {
    SCOPED_TRACE(std::to_string(w.kernel) + " by stride " + std::to_string(w.stride));
    GraphCall call;
    ir::Attributes attributes = kSum;
    attributes["strides"] = std::vector<int64_t>{w.stride, w.stride};
    attributes["pads"] = std::vector<int64_t>(4, w.pad);
    for (const int64_t channels : {4, 12}) {
      const DType t = channels == 4 ? DType::kUInt8 : DType::kInt8;
      const ir::ValueId zero = call.input(scalar(t));
      for (const int64_t results : {1, 16, 17, 33}) {
        const ir::ValueId x = call.input(bytes(t, {2, channels, 7, 5})),
                          v = call.constant(
                              bytes(DType::kInt8, {results, channels, w.kernel, w.kernel}));
        call.output(conv_between_layers(call, x, v, zero, attributes));
      }
    }
    expect_equal(call);
    if (HasFailure()) return;
  }
}

// Windows of one channel each, of which neighbours share what they read.
TEST_P(QuantizedProducts, DepthwiseConv) {
  for (const auto& [channels, kernel] :
       {std::pair<int64_t, int64_t>{5, 3}, {16, 5}, {33, 3}, {48, 5}}) {
    SCOPED_TRACE(std::to_string(channels) + " windows of " + std::to_string(kernel));
    GraphCall call;
    for (const int64_t stride : {1, 2}) {
      const DType t = stride == 1 ? DType::kUInt8 : DType::kInt8;
      ir::Attributes attributes = kSum;
      attributes["group"] = channels;
      attributes["strides"] = std::vector<int64_t>{stride, stride};
      attributes["pads"] = std::vector<int64_t>(4, kernel / 2);
      const ir::ValueId x = call.input(bytes(t, {2, channels, 7, 13})),
                        v = call.constant(bytes(DType::kInt8, {channels, 1, kernel, kernel}));
      for (const ir::ValueId zero : {ir::kNone, call.input(scalar(t))})
        call.output(conv_between_layers(call, x, v, zero, attributes));
    }
    expect_equal(call);
    if (HasFailure()) return;
  }
}

// The sizes above are worth nothing where no dot product is taken.
TEST_P(QuantizedProducts, RunAsDotProducts) {
  GraphCall call;
  for (const int64_t n : {15, 67})
    for (const int64_t m : {3, 17})
      call.output(call.op(
          "matmul",
          {call.input(bytes(DType::kUInt8, {m, 36})), call.constant(bytes(DType::kInt8, {36, n}))},
          kSum));
  call.output(call.op(
      "matmul",
      {call.input(bytes(DType::kInt16, {17, 6})), call.constant(bytes(DType::kInt8, {6, 67}))},
      kSum));
  struct Window {
    int64_t kernel, stride, images;
  };
  // The last one's rows go on over lines and images.
  for (const auto& [kernel, stride, images] : {Window{1, 2, 1}, {3, 2, 1}, {1, 1, 2}}) {
    ir::Attributes attributes = kSum;
    attributes["strides"] = std::vector<int64_t>{stride, stride};
    attributes["pads"] = std::vector<int64_t>(4, kernel / 2);
    call.output(conv_between_layers(call, call.input(bytes(DType::kUInt8, {images, 12, 9, 9})),
                                    call.constant(bytes(DType::kInt8, {33, 12, kernel, kernel})),
                                    call.input(scalar(DType::kUInt8)), attributes));
  }
  auto program = lower_graph_for(call.graph, {true, true, true, GetParam()});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  size_t with_dots = 0;
  for (const ir::Kernel& k : program->kernels) {
    bool any = false;
    ir::for_each_expr(k.body, [&](const ir::Expr& e) { any |= e.kind() == ir::NodeKind::kDot; });
    with_dots += any;
  }
  EXPECT_EQ(with_dots, call.graph.outputs.size());
}

// What a quantised network has between two of its layers, with scales that are powers of two: the
// roundings are those of the graph as it is given.
TEST_P(QuantizedProducts, LayersBetweenDequantizeAndQuantize) {
  GraphCall call;
  auto number = [&](double v) { return call.constant(repeated(DType::kFloat32, {}, {v})); };
  auto zero = [&](double v) { return call.constant(repeated(DType::kUInt8, {}, {v})); };
  const ir::ValueId x = between_layers(call, call.input(bytes(DType::kUInt8, {1, 8, 9, 6}))),
                    real = call.op("dequantize", {x, number(0.125), zero(117)}),
                    scales = call.constant(
                        repeated(DType::kFloat32, {8, 1, 1, 1}, {0.25, 0.0625, 0.5, 0.03125})),
                    w = call.op("dequantize",
                                {call.constant(bytes(DType::kInt8, {8, 8, 3, 3})), scales});
  const ir::ValueId sum = call.op("conv", {real, w}, {{"pads", std::vector<int64_t>(4, 1)}});
  const ir::ValueId y = call.op("relu", {call.op("add", {sum, real})});
  call.output(between_layers(
      call, call.op("quantize", {y, number(0.5), zero(3)}, {{"to", std::string("u8")}})));
  const ir::ValueId rows = call.op("dequantize", {call.input(bytes(DType::kUInt8, {5, 20})),
                                                  number(0.25), zero(128)}),
                    v = call.op("dequantize",
                                {call.constant(bytes(DType::kInt8, {20, 18})), number(0.5)});
  call.output(
      call.op("quantize", {call.op("matmul", {rows, v}), number(64)}, {{"to", std::string("i8")}}));
  expect_equal(call);
}

INSTANTIATE_TEST_SUITE_P(Cpu, QuantizedProducts, testing::ValuesIn(kCpus),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
