// Structural equality and hashing: what counts and what does not.
#include "ir/loops/compare.h"

#include <gtest/gtest.h>

#include "ir/loops/rewrite.h"
#include "ir/text/parser_loops.h"
#include "tests/ir/random_kernel.h"
#include "tests/ir/sample_kernels.h"

namespace tilewright::ir {
namespace {

Kernel parsed(const std::string& text) {
  Result<Kernel> k = parse_kernel(text);
  EXPECT_TRUE(k.ok()) << k.error().to_string();
  return *k;
}
void expect_equal(const std::string& a, const std::string& b, bool equal) {
  const Kernel x = parsed(a), y = parsed(b);
  EXPECT_EQ(structurally_equal(x, y), equal) << a << "\n" << b;
  EXPECT_EQ(structural_hash(x) == structural_hash(y), equal) << a << "\n" << b;
}

// Equality up to renaming of bound variables (alpha equivalence).
TEST(Compare, NamesDoNotCount) {
  expect_equal("kernel a(A: f32[n]) scalars(n) { for i in 0..n { A[i] = 1.0 } }",
               "kernel b(B: f32[m]) scalars(m) { for k in 0..m { B[k] = 1.0 } }", true);
}

TEST(Compare, StructureCounts) {
  const std::string base =
      "kernel a(A: f32[8, 8]) { for i in 0..8 { for j in 0..8 { A[i, j] = 1.0 } } }";
  for (const char* other :
       {"kernel a(A: f32[8, 8]) { for i in 0..8 { for j in 0..8 { A[j, i] = 1.0 } } }",
        "kernel a(A: f32[8, 8]) { for i in 0..8 { for j in 0..8 { A[i, j] = 2.0 } } }",
        "kernel a(A: f32[8, 9]) { for i in 0..8 { for j in 0..8 { A[i, j] = 1.0 } } }",
        "kernel a(A: f32[8, 8] layout(d1, d0)) { for i in 0..8 { for j in 0..8 { A[i, j] = 1.0 } } "
        "}",
        "kernel a(A: f16[8, 8]) { for i in 0..8 { for j in 0..8 { A[i, j] = 1.0:f16 } } }",
        "kernel a(A: f32[8, 8]) { for i in 0..8 parallel { for j in 0..8 { A[i, j] = 1.0 } } }",
        "kernel a(A: f32[8, 8], B: f32[8, 8]) { for i in 0..8 { for j in 0..8 { A[i, j] = 1.0 } } "
        "}"})
    expect_equal(base, other, false);
  expect_equal("kernel a(A: f32[2], B: f32[2]) { A[0] = B[1] }",
               "kernel a(A: f32[2], B: f32[2]) { B[0] = A[1] }", false);
  expect_equal("kernel a(A: f32[2]) { local t: f32[2] A[0] = t[0] }",
               "kernel a(A: f32[2]) { workspace t: f32[2] A[0] = t[0] }", false);
}

TEST(Compare, SharedNodesUnderSwappedLoopsDiffer) {
  Var i("i"), j("j");
  Buffer a = make_buffer("A", DType::kFloat32, {8, 8});
  Stmt body = store(a, {i, j}, float_imm(1));
  const Kernel x{"k", {a}, {}, for_loop(i, 8, for_loop(j, 8, body))},
      y{"k", {a}, {}, for_loop(j, 8, for_loop(i, 8, body))};
  EXPECT_FALSE(structurally_equal(x, y));
  EXPECT_NE(structural_hash(x), structural_hash(y));
}

// They belong to something outside.
TEST(Compare, FreeVariablesAreEqualOnlyToThemselves) {
  Var a("a"), b("a");
  EXPECT_TRUE(structurally_equal(a + Expr(1), a + Expr(1)));
  EXPECT_FALSE(structurally_equal(a + Expr(1), b + Expr(1)));
}

// A tree and the same tree with shared branches are equal, and hash alike.
TEST(Compare, SharingDoesNotCount) {
  Var a("a");
  Expr once = a * Expr(3), x = once + once, y = a * Expr(3) + a * Expr(3);
  EXPECT_TRUE(structurally_equal(x, y));
  EXPECT_EQ(structural_hash(x), structural_hash(y));
  // A tree of 2^60 leaves when not shared.
  for (int n = 0; n < 60; ++n) {
    x = binary(BinaryOp::kAdd, x, x);
    y = binary(BinaryOp::kAdd, y, y);
  }
  EXPECT_TRUE(structurally_equal(x, y));
  EXPECT_EQ(structural_hash(x), structural_hash(y));
}

TEST(Compare, FreshNamesAreEqualAndRandomKernelsDiffer) {
  std::vector<Kernel> all;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Kernel k = RandomKernel(seed, false).make(), fresh = k;
    fresh.body = clone_with_fresh_names(k.body, "_copy");
    EXPECT_TRUE(structurally_equal(k, fresh)) << seed;
    EXPECT_EQ(structural_hash(k), structural_hash(fresh)) << seed;
    all.push_back(k);
  }
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      EXPECT_EQ(structurally_equal(all[a], all[b]),
                structural_hash(all[a]) == structural_hash(all[b]));
}

// The hash names entries of databases: it may only change together with their version.
TEST(Compare, HashIsStable) {
  EXPECT_EQ(structural_hash(testing_samples::matmul(512, 784)), 15659817892593215176u);
}

}  // namespace
}  // namespace tilewright::ir
