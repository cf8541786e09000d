// Accesses of parameters lie inside: operators' own loops are proven to, but for a list of those whose positions the
// prover does not follow; and a proof is never given where an access lies outside, as random kernels show by running.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/graph/infer.h"
#include "ir/loops/make.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"
#include "passes/close_accesses.h"

namespace tilewright {
namespace {

using namespace ir;
using passes::close_accesses;
using passes::ClosedKernel;
using passes::open_accesses;

// in[index(i, j)] for i in [0, n), j in [0, m), stored to out[i, j].
Kernel kernel_of(const Var& i, const Expr& n, const Var& j, const Expr& m, const Expr& extent,
                 const std::function<Expr(const Buffer&)>& value) {
  const Buffer in = make_buffer("in0", DType::kFloat32, {extent}, Scope::kParam),
               out = make_buffer("out0", DType::kFloat32, {n, m}, Scope::kParam);
  Kernel k;
  k.name = "kernel";
  k.params = {in, out};
  k.body = for_loop(i, n, for_loop(j, m, store(out, {i, j}, value(in))));
  return k;
}

const auto kName = [](const passes::OpenAccess&) { return std::string("test"); };

struct Case {
  int64_t n, m, extent;
  Expr index, condition;
};

// Whether the index lies inside at all points where the condition holds.
bool is_inside(const Case& c, const Var& i, const Var& j) {
  for (int64_t x = 0; x < c.n; ++x)
    for (int64_t y = 0; y < c.m; ++y) {
      const VarMap at{{i.get(), Expr(x)}, {j.get(), Expr(y)}};
      const auto value = [&](const Expr& e) { return as_int(simplify(substitute(e, at))).value(); };
      if (c.condition && value(c.condition) == 0) continue;
      const int64_t index = value(c.index);
      if (index < 0 || index >= c.extent) return false;
    }
  return true;
}

class RandomIndex {
 public:
  explicit RandomIndex(uint32_t seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Expr index(const Var& i, const Var& j, int depth) {
    if (depth == 0)
      return number(0, 2) == 0 ? Expr(number(-3, 6)) : number(0, 1) ? Expr(i) : Expr(j);
    const Expr a = index(i, j, depth - 1), b = index(i, j, depth - 1);
    switch (number(0, 7)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * Expr(number(-2, 3));
      case 3: return floordiv(a, Expr(number(1, 4)));
      case 4: return floormod(a, Expr(number(1, 5)));
      case 5: return min(a, b);
      case 6: return max(a, b);
      default: return select(condition(i, j, depth - 1), a, b);
    }
  }
  Expr condition(const Var& i, const Var& j, int depth) {
    const Expr a = index(i, j, depth), b = index(i, j, depth);
    switch (number(0, 6)) {
      case 0: return a < b;
      case 1: return a <= b;
      case 2: return a > b;
      case 3: return a >= b;
      case 4: return eq(a, b);
      case 5: return logical_not(a < b);
      default:
        return depth > 0 ? logical_and(condition(i, j, depth - 1), condition(i, j, depth - 1))
                         : ne(a, b);
    }
  }

 private:
  std::mt19937 random_;
};

TEST(CloseAccesses, NoProofIsWrong) {
  int proven = 0, inside = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RandomIndex random(seed);
    const Var i("i"), j("j");
    Case c{random.number(1, 5), random.number(1, 5), random.number(1, 9), {}, {}};
    c.index = random.index(i, j, static_cast<int>(random.number(1, 3)));
    if (random.number(0, 1)) c.condition = random.condition(i, j, 1);
    const Kernel k = kernel_of(i, c.n, j, c.m, c.extent, [&](const Buffer& in) {
      const Expr x = load(in, {c.index});
      return c.condition ? select(c.condition, x, constant(0, DType::kFloat32)) : x;
    });
    const bool holds = is_inside(c, i, j), proof = open_accesses(k, {}, {}).empty();
    EXPECT_TRUE(holds || !proof) << seed << ": " << to_text(c.index) << " of " << c.extent
                                 << " with i < " << c.n << ", j < " << c.m << " where "
                                 << (c.condition ? to_text(c.condition) : "true");
    proven += proof;
    inside += holds;
  }
  EXPECT_GT(proven, inside * 3 / 4) << "of " << inside;
}

// Extents are symbols, taken for numbers afterwards: a requirement holds wherever all accesses lie inside.
TEST(CloseAccesses, RequirementsAreNeitherTooWeakNorTooStrong) {
  int required = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    RandomIndex random(seed);
    const Var i("i"), j("j"), n("n"), m("m"), extent("extent");
    const Expr index =
        Expr(random.number(0, 2)) * i + Expr(random.number(0, 2)) * j + Expr(random.number(-1, 2));
    const Kernel k =
        kernel_of(i, n, j, m, extent, [&](const Buffer& in) { return load(in, {index}); });
    const ClosedKernel closed = close_accesses(k, {}, {}, kName);
    EXPECT_EQ(closed.guards, 0u) << seed << ": a guard instead of a requirement";
    for (int64_t x = 0; x < 4; ++x)
      for (int64_t y = 0; y < 4; ++y)
        for (int64_t z = 0; z < 8; ++z) {
          const VarMap at{{n.get(), Expr(x)}, {m.get(), Expr(y)}, {extent.get(), Expr(z)}};
          bool hold = true;
          for (const Requirement& r : closed.requirements)
            hold &=
                *as_int(simplify(substitute(r.a, at))) <= *as_int(simplify(substitute(r.b, at)));
          EXPECT_EQ(hold, is_inside({x, y, z, index, {}}, i, j))
              << seed << ": " << to_text(index) << " with " << x << ", " << y << ", " << z;
          required += !hold;
        }
  }
  EXPECT_GT(required, 0);
}

// A matrix in one dimension, whose row and column conditions bound.
TEST(CloseAccesses, ProofsTakeTwoConditions) {
  const Var i("i"), j("j"), r("r"), s("s"), w("w");
  for (const Expr& width : {Expr(3), Expr(w)}) {
    const Expr row = i - r, column = j - s;
    Kernel k = kernel_of(i, 4, j, 4, 3 * width, [&](const Buffer& in) {
      const Expr inside = logical_and(logical_and(row >= Expr(0), row < Expr(3)),
                                      logical_and(column >= Expr(0), column < width));
      return select(inside, load(in, {row * width + column}), constant(0, DType::kFloat32));
    });
    k.body = for_loop(r, 2, for_loop(s, 2, k.body));
    EXPECT_TRUE(open_accesses(k, {}, {}).empty()) << to_text(k);
  }
}

TEST(CloseAccesses, AnAccessOutsideIsGuarded) {
  const Var i("i"), j("j");
  const Buffer place = make_buffer("in1", DType::kInt64, {4}, Scope::kParam);
  Kernel k =
      kernel_of(i, 4, j, 4, 5, [&](const Buffer& in) { return load(in, {load(place, {i})}); });
  k.params.push_back(place);
  const ClosedKernel closed = close_accesses(k, {}, {}, kName);
  EXPECT_TRUE(closed.requirements.empty());
  k.body = closed.body;
  EXPECT_TRUE(open_accesses(k, {}, {}).empty()) << to_text(k);
  EXPECT_EQ(
      open_accesses(kernel_of(i, 4, j, 4, 5, [&](const Buffer& in) { return load(in, {i + j}); }),
                    {}, {})
          .size(),
      1u);
}

}  // namespace
}  // namespace tilewright
