// Steps that differ in numbers alone run one kernel; where a number decides what code there is,
// they do not.
#include <gtest/gtest.h>

#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

class ShareKernels : public testing::Test {
 protected:
  ir::ValueId input(const Shape& shape) {
    return call_.input(random_tensor(DType::kFloat32, shape, random_));
  }
  ir::ValueId number(double x, DType t = DType::kFloat32) {
    return call_.constant(repeated(t, {}, {x}));
  }
  ir::ValueId quantized(ir::ValueId x, double scale, double zero) {
    return call_.op("quantize", {x, number(scale), number(zero, DType::kUInt8)},
                    {{"to", std::string("u8")}});
  }
  // The number of kernels; and results equal to the interpreter's.
  void expect_kernels(size_t count) {
    const CompiledForm form{true, true, true};
    auto program = lower_graph_for(call_.graph, form);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    std::string names;
    for (const ir::Kernel& k : program->kernels) names += k.name + " ";
    EXPECT_EQ(program->kernels.size(), count) << names;
    auto expected = interpret_graph(call_.graph, call_.inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    auto runs = run_compiled(call_.graph, call_.inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    for (const Tensors& run : *runs)
      for (size_t k = 0; k < run.size(); ++k)
        EXPECT_LE(difference(run[k], expected->outputs[k]),
                  4 * expected->largest * epsilon(run[k].dtype))
            << "output " << k;
  }

  GraphCall call_;
  std::mt19937_64 random_{5};
};

TEST_F(ShareKernels, ScalesAndZeroPoints) {
  for (const auto& [scale, zero] : {std::pair{0.3, 7.0}, {0.07, 131.0}, {0.011, 255.0}})
    call_.output(quantized(input({5, 37}), scale, zero));
  expect_kernels(1);
}
TEST_F(ShareKernels, NumbersThatSimplifyStay) {
  // Without a zero point nothing is added; half is multiplied with where others divide.
  for (const auto& [scale, zero] : {std::pair{0.3, 0.0}, {0.5, 9.0}, {0.7, 9.0}, {0.9, 4.0}})
    call_.output(quantized(input({5, 37}), scale, zero));
  expect_kernels(3);
}
TEST_F(ShareKernels, EqualNumbersStayInTheCode) {
  for (double by : {1.5, 2.5})
    call_.output(call_.op("mul", {call_.op("add", {input({9}), number(0.25)}), number(by)}));
  expect_kernels(1);
  auto program = lower_graph_for(call_.graph, {true, true, true});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->kernels[0].params.size(), 3u);  // operand, factor, result
}
TEST_F(ShareKernels, ExponentsAndBoundsDecide) {
  for (double exponent : {2.0, 3.0}) call_.output(call_.op("pow", {input({9}), number(exponent)}));
  for (double bound : {0.25, 0.75}) call_.output(call_.op("min", {input({9}), number(bound)}));
  expect_kernels(4);
}
// The layout of a constant operand may be chosen with its kernel, that of another may not.
TEST_F(ShareKernels, KernelsOfOtherConstantsAreApart) {
  const ir::ValueId x = input({9, 40}), w = input({40, 33}),
                    known = call_.constant(random_tensor(DType::kFloat32, {40, 33}, random_)),
                    left = call_.constant(random_tensor(DType::kFloat32, {9, 40}, random_));
  call_.output(call_.op("matmul", {x, known}));
  call_.output(call_.op("matmul", {x, w}));
  call_.output(call_.op("matmul", {left, w}));
  expect_kernels(3);
}
TEST_F(ShareKernels, KernelsOfOtherConstantsAreApartWhateverTheirNumbers) {
  const ir::ValueId x = input({9, 40}), w = input({40, 33}),
                    known = call_.constant(random_tensor(DType::kFloat32, {40, 33}, random_));
  for (const ir::ValueId of : {known, w})
    call_.output(call_.op("add", {call_.op("matmul", {x, of}), number(of == w ? 0.3 : 0.7)}));
  expect_kernels(2);
}
TEST_F(ShareKernels, KernelsOfOtherShapesAreApart) {
  call_.output(quantized(input({5, 37}), 0.3, 7));
  call_.output(quantized(input({5, 41}), 0.2, 9));
  expect_kernels(2);
}

}  // namespace
}  // namespace tilewright
