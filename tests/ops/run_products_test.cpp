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
        SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k << ", " << trans_a
                                        << trans_b);
        const Shape a = trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k},
                    b = trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n};
        expect_equal(
            product(random(DType::kFloat32, a), random(DType::kFloat32, b), trans_a, trans_b),
            static_cast<double>(s.k), {{.l2_bytes = 72 << 10}, {.l2_bytes = 256 << 10}});
        if (HasFailure()) return;
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

INSTANTIATE_TEST_SUITE_P(Cpus, RunProducts, testing::Values("x86-64-v3", "native"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
