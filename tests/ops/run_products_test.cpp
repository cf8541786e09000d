// Products of two matrices that only the run knows: what tiles read across memory lies in panels, copied
// before the product, transposed or not, with columns, terms and rows left over.
#include <gtest/gtest.h>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

struct Size {
  int64_t m, n, k;
};

class RunProducts : public KernelTest {
 protected:
  static GraphCall product(HostTensor a, HostTensor b, int64_t trans_a, int64_t trans_b) {
    GraphCall call;
    call.output(call.op("matmul", {call.input(std::move(a)), call.input(std::move(b))},
                        {{"trans_a", trans_a}, {"trans_b", trans_b}}));
    return call;
  }
};

TEST_P(RunProducts, OfMatricesInAnyOrder) {
  for (const Size& s : {Size{97, 131, 128}, {101, 64, 257}, {6, 193, 130}, {200, 96, 144}})
    for (const DType t : {DType::kFloat32, DType::kFloat64})
      for (int64_t trans_a : {0, 1})
        for (int64_t trans_b : {0, 1}) {
          SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k << ", " << trans_a
                                          << trans_b << " of " << name(t));
          const Shape a = trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k},
                      b = trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n};
          const GraphCall call = product(random(t, a), random(t, b), trans_a, trans_b);
          expect_equal(call, static_cast<double>(s.k), {{}, {.small_caches = true}});
          if (HasFailure()) return;
          // Few rows are worth a copy where one is made in any case.
          EXPECT_EQ(count_decided(call, "by_panels"), s.m >= 96 || trans_b ? 1u : 0u);
        }
}

// The second cache holds some panels of columns, and not all.
TEST_P(RunProducts, OfPanelsThatTasksCopy) {
  for (const Size& s : {Size{97, 768, 128}, {61, 773, 131}, {300, 448, 129}})
    for (int64_t trans_a : {0, 1})
      for (int64_t trans_b : {0, 1}) {
        SCOPED_TRACE(testing::Message()
                     << s.m << " x " << s.n << " x " << s.k << ", " << trans_a << trans_b);
        const Shape a = trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k},
                    b = trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n};
        expect_equal(
            product(random(DType::kFloat32, a), random(DType::kFloat32, b), trans_a, trans_b),
            static_cast<double>(s.k), {{.l2_bytes = 72 << 10}, {.l2_bytes = 256 << 10}});
        if (HasFailure()) return;
      }
}

// Long sums for few results: both operands stay as they lie, unless no blocks of terms come out even (1531 is a prime,
// and 3275 = 25 * 131 has no divisor that is a block).
TEST_P(RunProducts, OfManyTermsInBlocks) {
  for (const Size& s : {Size{97, 64, 1536},
                        {64, 113, 9000},
                        {96, 80, 59 * 61},
                        {96, 80, 1531},
                        {96, 80, 25 * 131}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
    const GraphCall call =
        product(random(DType::kFloat32, {s.k, s.m}), random(DType::kFloat32, {s.k, s.n}), 1, 0);
    expect_equal(call, static_cast<double>(s.k), {{}, {.small_caches = true}});
    EXPECT_EQ(count_decided(call, "by_panels"), s.k == 1531 || s.k == 25 * 131 ? 1u : 0u);
  }
}

// One matrix for the rows of all.
TEST_P(RunProducts, OfSeveralMatricesByOne) {
  for (int64_t trans_b : {0, 1}) {
    const GraphCall call =
        product(random(DType::kFloat32, {3, 37, 129}),
                random(DType::kFloat32, trans_b ? Shape{83, 129} : Shape{129, 83}), 0, trans_b);
    expect_equal(call, 129);
    EXPECT_EQ(count_decided(call, "by_panels"), 1u);
  }
}

// Each place's results wait in cache for the rows that are made of them, whatever leaves no tile over; keys that lie in
// rows are transposed into panels by the task.
TEST_P(RunProducts, OfManyPlacesAndTheirRows) {
  for (const Size& s :
       {Size{13, 7, 5}, {37, 97, 64}, {64, 96, 17}, {1, 33, 8}, {8, 1, 5}, {24, 80, 48}, {5, 6, 0}})
    for (int64_t trans_b : {0, 1})
      for (const bool backwards : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << s.m << " x " << s.n << " x " << s.k << ", " << trans_b << backwards);
        GraphCall call;
        const auto input = [&](int64_t rows, int64_t columns) {
          return call.input(random(DType::kFloat32, {5, 10, rows, columns}));
        };
        const auto p = call.op("matmul",
                               {input(s.m, s.k), trans_b ? input(s.n, s.k) : input(s.k, s.n)},
                               {{"trans_b", trans_b}}),
                   scores = call.op("tanh", {p});
        call.output(backwards
                        ? call.op("neg", {call.op("softmax_gradient", {scores, input(s.m, s.n)})})
                        : call.op("softmax", {scores}));
        expect_equal(call, static_cast<double>(s.k + 8 * s.n + 64),
                     {{}, {.l2_bytes = 256 << 10}, {.numerics = Numerics::kExact}});
        if (HasFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Cpus, RunProducts, testing::Values("x86-64-v3", "native"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
