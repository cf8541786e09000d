// Products of bytes whose operands are both known at run time alone: the right one is packed for
// dot products. Compiled equals interpreted, bit for bit.
#include <gtest/gtest.h>

#include "ir/loops/rewrite.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

constexpr const char* kCpus[] = {"native",    "cascadelake", "x86-64-v4",
                                 "alderlake", "x86-64-v3",   "x86-64"};
const ir::Attributes kSum{{"out_dtype", std::string("i32")}};

class PackedProducts : public KernelTest {
 protected:
  ir::ValueId input(DType t, const Shape& shape) {
    return call_.input(random_bytes(t, shape, random_));
  }
  void product(ir::ValueId a, ir::ValueId b, ir::ValueId zero_a = ir::kNone,
               ir::ValueId zero_b = ir::kNone, bool trans_b = false) {
    ir::Attributes attributes = kSum;
    if (trans_b) attributes["trans_b"] = int64_t{1};
    call_.output(call_.op("matmul", {a, b, zero_a, zero_b}, attributes));
  }
  void expect_equal() { KernelTest::expect_equal(call_, 0, {{.fold = true}}); }
  size_t kernels_with(ir::NodeKind kind) {
    auto program = lower_graph_for(call_.graph, {true, true, true, GetParam()});
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    size_t n = 0;
    for (const ir::Kernel& k : program->kernels) {
      bool any = false;
      ir::for_each_expr(k.body, [&](const ir::Expr& e) { any |= e.kind() == kind; });
      n += any;
    }
    return n;
  }

  GraphCall call_;
};

// Rows, columns and terms that leave tails; the last of which are padded with zeros.
TEST_P(PackedProducts, Tails) {
  for (const int64_t n : {5, 16, 67, 200})
    for (const int64_t k : {16, 37, 131})
      for (const int64_t m : {1, 7, 33})
        product(input(DType::kUInt8, {m, k}), input(DType::kInt8, {k, n}));
  expect_equal();
}

TEST_P(PackedProducts, ZeroPoints) {
  for (const DType of_a : {DType::kUInt8, DType::kInt8})
    for (const DType of_b : {DType::kUInt8, DType::kInt8}) {
      const ir::ValueId a = input(of_a, {2, 7, 19}), b = input(of_b, {19, 17}),
                        transposed = input(of_b, {17, 19});
      for (const ir::ValueId za : {ir::kNone, input(of_a, {}), input(of_a, {2, 7, 1})}) {
        product(a, b, za);
        for (const Shape& shape : {Shape{}, Shape{17}, Shape{1, 17}})
          product(a, b, za, input(of_b, shape));
        product(a, transposed, za, input(of_b, {}), true);
        product(a, transposed, za, input(of_b, {17, 1}), true);
      }
      // A constant whose zero point is none.
      product(a, call_.constant(random_bytes(of_b, {19, 17}, random_)), ir::kNone,
              input(of_b, {17}));
    }
  expect_equal();
}

TEST_P(PackedProducts, Batches) {
  for (const bool trans_b : {false, true}) {
    const Shape one = trans_b ? Shape{3, 18, 21} : Shape{3, 21, 18},
                two = trans_b ? Shape{2, 1, 18, 21} : Shape{2, 1, 21, 18};
    const ir::ValueId a = input(DType::kUInt8, {3, 9, 21}), b = input(DType::kUInt8, one),
                      c = input(DType::kInt8, two);
    product(a, b, ir::kNone, ir::kNone, trans_b);
    product(a, b, input(DType::kUInt8, {}), input(DType::kUInt8, {}), trans_b);
    product(a, c, input(DType::kUInt8, {3, 9, 1}), ir::kNone, trans_b);
    if (!trans_b) product(a, b, ir::kNone, input(DType::kUInt8, {3, 1, 18}));
  }
  expect_equal();
}

TEST_P(PackedProducts, OfTheLargestBytes) {
  for (const double right : {-128.0, 127.0})
    product(call_.input(repeated(DType::kUInt8, {7, 512}, {255})),
            call_.input(repeated(DType::kInt8, {512, 19}, {right})));
  expect_equal();
}

// Large enough for several threads, with panels that the last vectors of columns do not fill.
TEST_P(PackedProducts, OfManyPanels) {
  product(input(DType::kUInt8, {61, 512}), input(DType::kUInt8, {512, 211}),
          input(DType::kUInt8, {}), input(DType::kUInt8, {211}));
  product(input(DType::kInt8, {64, 300}), input(DType::kInt8, {256, 300}), ir::kNone, ir::kNone,
          true);
  expect_equal();
}

// What the right operand comes from, element by element, is part of the kernel that packs it.
TEST_P(PackedProducts, OfQuantizedFloats) {
  const ir::ValueId x = call_.input(random_tensor(DType::kFloat32, {64, 48}, random_)),
                    scale = call_.constant(repeated(DType::kFloat32, {}, {0.125})),
                    q = call_.op("quantize", {x, scale}, {{"to", std::string("i8")}});
  product(input(DType::kUInt8, {17, 64}), q);
  expect_equal();
}

// The sizes above are worth nothing where no dot product is taken.
TEST_P(PackedProducts, RunAsDotProducts) {
  for (const int64_t n : {67, 200})
    for (const int64_t k : {36, 37})
      product(input(DType::kUInt8, {17, k}), input(DType::kInt8, {k, n}));
  product(input(DType::kUInt8, {2, 17, 36}), input(DType::kInt8, {2, 33, 36}), ir::kNone, ir::kNone,
          true);
  EXPECT_EQ(kernels_with(ir::NodeKind::kDot), call_.graph.outputs.size());
}

INSTANTIATE_TEST_SUITE_P(Cpu, PackedProducts, testing::ValuesIn(kCpus),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
