// Gradients through branches.
#include <gtest/gtest.h>

#include "tests/ops/program_gradients.h"

namespace tilewright {
namespace {

// Results of both kinds; what one branch alone reads has zeros where the other is taken.
constexpr const char* kBranches = R"(graph branches {
  input c: bool[]
  input x: f64[3]
  input w: f64[3]
  y: f64[3], z: f64[3] = if(c, x, w) with [
    graph then {
      input v: f64[3]
      input u: f64[3]
      e: f64[3] = exp(v)
      p: f64[3] = mul(e, u)
      output p as "p"
      output v as "v"
    }
    graph otherwise {
      input v: f64[3]
      input u: f64[3]
      s: f64[3] = mul(v, v)
      const k: f64[3] = [7.0, 8.0, 9.0]
      output s as "s"
      output k as "k"
    }
  ]
  q: f64[3] = mul(y, x)
  r: f64[3] = mul(z, q)
  loss: f64[] = reduce_sum(r) {keepdims = 0}
  output loss as "loss"
}
)";

TEST(DifferentiateBranches, EachBranchBackwards) {
  const HostTensor x = f64({3}, {0.5, -0.3, 0.7}), w = f64({3}, {1, 2, -1});
  const Tensors taken = checked_gradients(kBranches, {truth(true), x, w});
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_FALSE(all_zero(taken[1]));
  const Tensors other = checked_gradients(kBranches, {truth(false), x, w});
  ASSERT_EQ(other.size(), 2u);
  EXPECT_TRUE(all_zero(other[1]));
}

// An `if` in a branch; its branches differ in the extents of their results.
constexpr const char* kExtents = R"(graph extents {
  input c: bool[]
  input d: bool[]
  input x: f64[2]
  y: f64[] = if(c, d, x) with [
    graph then {
      input e: bool[]
      input v: f64[2]
      w: f64[n] = if(e, v) with [
        graph longer {
          input v: f64[2]
          s: f64[2] = mul(v, v)
          w: f64[4] = concat(v, s) {axis = 0}
          output w as "w"
        }
        graph same {
          input v: f64[2]
          output v as "v"
        }
      ] defines(n)
      z: f64[n] = sigmoid(w)
      sum: f64[] = reduce_sum(z) {keepdims = 0}
      output sum as "sum"
    }
    graph otherwise {
      input e: bool[]
      input v: f64[2]
      sum: f64[] = reduce_sum(v) {keepdims = 0}
      output sum as "sum"
    }
  ]
  loss: f64[] = mul(y, y)
  output loss as "loss"
}
)";

TEST(DifferentiateBranches, BranchesMayDifferInExtents) {
  for (bool c : {false, true})
    for (bool d : {false, true})
      checked_gradients(kExtents, {truth(c), truth(d), f64({2}, {0.4, -1.1})});
}

}  // namespace
}  // namespace tilewright
