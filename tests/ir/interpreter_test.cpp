// The interpreter on whole kernels: statements, blocks, buffers, layouts, vectors, and the errors
// it reports.
#include "ir/interpreter/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/interpreter/evaluate.h"
#include "ir/loops/layout.h"
#include "ir/text/parser_loops.h"
#include "tests/ir/sample_kernels.h"

namespace tilewright::ir {
namespace {

using testing_samples::matmul;

std::string error_of(const Kernel& k, std::vector<void*> params,
                     std::vector<int64_t> scalars = {}) {
  Status s = interpret(k, params, scalars);
  return s.ok() ? "" : s.error().to_string();
}
void expect_error(const std::string& text, const std::string& phrase) {
  EXPECT_NE(text.find(phrase), std::string::npos) << "found: " << text << "\nexpected: " << phrase;
}

TEST(Interpreter, MatmulWithSymbolicRowsEqualsPlainLoops) {
  constexpr int64_t m = 5, n = 7, k = 9;
  std::vector<float> a(m * k), b(k * n), c(m * n, -1), expected(m * n);
  for (size_t x = 0; x < a.size(); ++x) a[x] = 0.1f * static_cast<float>(x % 13) - 0.5f;
  for (size_t x = 0; x < b.size(); ++x) b[x] = 0.3f * static_cast<float>(x % 7) - 0.7f;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t x = 0; x < k; ++x)
        sum = sum + a[static_cast<size_t>(i * k + x)] * b[static_cast<size_t>(x * n + j)];
      expected[static_cast<size_t>(i * n + j)] = sum;
    }
  ASSERT_EQ(error_of(matmul(n, k), {a.data(), b.data(), c.data()}, {m}), "");
  EXPECT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0);
}

TEST(Interpreter, BlockedLayoutIsHonoured) {
  // C[i, j] = A[i, j] + 1 where A is blocked by 4 columns and C is transposed in memory.
  const int64_t m = 3, n = 10;
  Buffer a =
      make_buffer("A", DType::kInt32, {m, n}, Scope::kParam, {{1, 4, 0}, {0, 1, 0}, {1, 1, 4}});
  Buffer c = make_buffer("C", DType::kInt32, {m, n}, Scope::kParam, permuted_layout({1, 0}));
  Var i("i"), j("j");
  Kernel k{"shift",
           {a, c},
           {},
           for_loop(i, m, for_loop(j, n, store(c, {i, j}, load(a, {i, j}) + Expr(1))))};
  std::vector<int32_t> logical(static_cast<size_t>(m * n));
  for (size_t x = 0; x < logical.size(); ++x) logical[x] = static_cast<int32_t>(x);
  auto packed = pack(reinterpret_cast<uint8_t*>(logical.data()), DType::kInt32, {m, n}, a->layout);
  ASSERT_EQ(packed.size(), 3u * 3 * 4 * 4);
  std::vector<int32_t> out(static_cast<size_t>(m * n));
  ASSERT_EQ(error_of(k, {packed.data(), out.data()}), "");
  for (int64_t x = 0; x < m; ++x)
    for (int64_t y = 0; y < n; ++y) EXPECT_EQ(out[static_cast<size_t>(y * m + x)], x * n + y + 1);
}

TEST(Interpreter, BlockPredicateCutsTheTail) {
  Buffer c = make_buffer("C", DType::kInt64, {Expr(10)});
  Var io("io"), ii("ii"), v("v");
  Block b;
  b.name = "fill";
  b.axes = {{v, Expr(10), AxisKind::kParallel}};
  b.bindings = {io * Expr(4) + ii};
  b.body = store(c, {v}, v * v);
  Block unguarded = b;
  b.predicate = io * Expr(4) + ii < Expr(10);
  auto kernel = [&](Block x) {
    return Kernel{"fill",
                  {c},
                  {},
                  for_loop(io, 3, for_loop(ii, 4, block(std::move(x)), LoopKind::kVectorized))};
  };
  std::vector<int64_t> out(10, -1);
  ASSERT_EQ(error_of(kernel(b), {out.data()}), "");
  for (int64_t x = 0; x < 10; ++x) EXPECT_EQ(out[static_cast<size_t>(x)], x * x);
  expect_error(error_of(kernel(unguarded), {out.data()}),
               "axis 'v' is bound to 10, its extent is 10");
}

TEST(Interpreter, FlatVectorsMasksAndLaneReduction) {
  // Sum of the first 11 of A, 8 lanes at a time, the tail masked.
  Buffer a = make_buffer("A", DType::kFloat32, {Expr(11)});
  Buffer c = make_buffer("C", DType::kFloat32, {Expr(1)});
  Var i("i");
  Expr index = ramp(i * Expr(8), 1, 8);
  Expr mask = binary(BinaryOp::kLt, index, broadcast(Expr(11), 8));
  Expr sum = reduce_lanes(BinaryOp::kAdd, load_vector(a, index, mask));
  Kernel k{"sum",
           {a, c},
           {},
           seq({store(c, {Expr(0)}, float_imm(0)),
                for_loop(i, 2, store(c, {Expr(0)}, load(c, {Expr(0)}) + sum))})};
  std::vector<float> in(11);
  for (size_t x = 0; x < 11; ++x) in[x] = static_cast<float>(x + 1);
  float out = -1;
  ASSERT_EQ(error_of(k, {in.data(), &out}), "");
  EXPECT_EQ(out, 66);
  // Without the mask the same access faults, and the message names the place.
  Kernel bad{
      "sum",
      {a, c},
      {},
      for_loop(i, 2,
               store(c, {Expr(0)}, reduce_lanes(BinaryOp::kAdd, load_vector(a, index, nullptr))))};
  expect_error(error_of(bad, {in.data(), &out}),
               "load from 'A' [11] at i = 1: index 0 is 11, the extent is 11");
}

TEST(Interpreter, MaskedStoreLeavesOtherLanes) {
  Buffer c = make_buffer("C", DType::kUInt8, {Expr(6)});
  Expr index = ramp(0, 1, 8);
  Kernel k{"k",
           {c},
           {},
           store(c, {index}, broadcast(int_imm(200, DType::kUInt8), 8),
                 binary(BinaryOp::kLt, index, broadcast(Expr(5), 8)))};
  std::vector<uint8_t> out(6, 1);
  ASSERT_EQ(error_of(k, {out.data()}), "");
  EXPECT_EQ(out, (std::vector<uint8_t>{200, 200, 200, 200, 200, 1}));
}

TEST(Interpreter, DotSumsFourProductsALane) {
  Buffer a = make_buffer("A", DType::kUInt8, {Expr(12)});
  Buffer b = make_buffer("B", DType::kInt8, {Expr(12)});
  Buffer c = make_buffer("C", DType::kInt32, {Expr(3)});
  const Expr lanes = ramp(0, 1, 3), terms = ramp(0, 1, 12);
  auto kernel = [&](const Expr& x) {
    return Kernel{
        "k", {a, b, c}, {}, store(c, {lanes}, dot(load(c, {lanes}), x, load(b, {terms})))};
  };
  // The ends of both types: nothing is cut on the way, and the sum in i32 wraps.
  std::vector<uint8_t> x{255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4};
  std::vector<int8_t> y{127, 127, 127, 127, -128, -128, -128, -128, 10, -20, 30, -40};
  std::vector<int32_t> sum{1000, -1000, INT32_MIN};
  ASSERT_EQ(error_of(kernel(load(a, {terms})), {x.data(), y.data(), sum.data()}), "");
  EXPECT_EQ(sum,
            (std::vector<int32_t>{1000 + 4 * 255 * 127, -1000 - 4 * 255 * 128, INT32_MAX - 99}));
  // Four of A stand for all lanes.
  sum = {0, 0, 5};
  const Expr repeated = broadcast(load(a, {ramp(8, 1, 4)}), 12);
  ASSERT_EQ(error_of(kernel(repeated), {x.data(), y.data(), sum.data()}), "");
  EXPECT_EQ(sum, (std::vector<int32_t>{1270, -1280, 5 + 10 - 40 + 90 - 160}));
}

TEST(Interpreter, DotTileIsAProductOfMatrices) {
  constexpr int kRows = 3, kColumns = 5, kGroups = 2, kTerms = 4, kDepth = kGroups * kTerms;
  const auto k = parse_kernel(
      "kernel k(C: i32[40], A: u8[40], B: i8[60]) { "
      "dot_tile(C[1, 7], A[2, 11], B[3, 22], 3, 5, 2) }");
  ASSERT_TRUE(k.ok()) << k.error().to_string();
  std::vector<int32_t> sums(40), expected(40);
  std::vector<uint8_t> a(40);
  std::vector<int8_t> b(60);
  for (size_t i = 0; i < 40; ++i) expected[i] = sums[i] = static_cast<int32_t>(i * i);
  for (size_t i = 0; i < 40; ++i) a[i] = static_cast<uint8_t>(i * 37);
  for (size_t i = 0; i < 60; ++i) b[i] = static_cast<int8_t>(i * 53);
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c)
      for (int t = 0; t < kDepth; ++t)
        expected[static_cast<size_t>(1 + r * 7 + c)] +=
            a[static_cast<size_t>(2 + r * 11 + t)] *
            b[static_cast<size_t>(3 + t / kTerms * 22 + c * kTerms + t % kTerms)];
  ASSERT_EQ(error_of(*k, {sums.data(), a.data(), b.data()}), "");
  EXPECT_EQ(sums, expected);
}

TEST(Interpreter, BroadcastRepeatsAShortVector) {
  Buffer a = make_buffer("A", DType::kInt16, {Expr(6)});
  Buffer c = make_buffer("C", DType::kInt16, {Expr(12)});
  std::vector<int16_t> in{1, -2, 3, 40, 50, 60}, out(12);
  for (int count : {1, 2, 3, 4, 6}) {
    const Expr few = load(a, {count == 1 ? Expr(0) : ramp(0, 1, count)});
    const Kernel k{"k", {a, c}, {}, store(c, {ramp(0, 1, 12)}, broadcast(few, 12))};
    ASSERT_EQ(error_of(k, {in.data(), out.data()}), "");
    for (size_t x = 0; x < 12; ++x) EXPECT_EQ(out[x], in[x % static_cast<size_t>(count)]);
  }
}

TEST(Interpreter, SelectDoesNotTouchTheSideNotChosen) {
  Buffer a = make_buffer("A", DType::kFloat32, {Expr(4)});
  Buffer c = make_buffer("C", DType::kFloat32, {Expr(8)});
  std::vector<float> in{1, 2, 3, 4}, out(8, -1);
  Var i("i");
  Expr scalar = select(i < Expr(4), load(a, {i}), float_imm(9));
  Kernel k{"pad", {a, c}, {}, for_loop(i, 8, store(c, {i}, scalar))};
  ASSERT_EQ(error_of(k, {in.data(), out.data()}), "");
  EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4, 9, 9, 9, 9}));
  // By lane: loads, divisions and nested selects of lanes not chosen are not evaluated either.
  std::fill(out.begin(), out.end(), -1.f);
  Expr lane = ramp(0, 1, 8), inside = binary(BinaryOp::kLt, lane, broadcast(Expr(4), 8));
  Expr nested = select(binary(BinaryOp::kLt, lane, broadcast(Expr(2), 8)), float_imm(0),
                       load_vector(a, lane, nullptr));
  Kernel v{"pad", {a, c}, {}, store(c, {lane}, select(inside, nested, broadcast(float_imm(9), 8)))};
  ASSERT_EQ(error_of(v, {in.data(), out.data()}), "");
  EXPECT_EQ(out, (std::vector<float>{0, 0, 3, 4, 9, 9, 9, 9}));
  // A scalar load below a broadcast runs when any lane is chosen.
  Expr far = broadcast(load(a, {Expr(100)}), 8);
  Expr never = binary(BinaryOp::kLt, lane, broadcast(Expr(0), 8));
  Kernel w{"pad", {a, c}, {}, store(c, {lane}, select(never, far, broadcast(float_imm(7), 8)))};
  ASSERT_EQ(error_of(w, {in.data(), out.data()}), "");
  EXPECT_EQ(out[7], 7);
  Kernel x{"pad", {a, c}, {}, store(c, {lane}, select(inside, far, broadcast(float_imm(7), 8)))};
  expect_error(error_of(x, {in.data(), out.data()}), "index 0 is 100");
}

TEST(Interpreter, LetWhileIfAndWorkspace) {
  // Collatz steps of 1..9, the number kept in a local buffer.
  Buffer c = make_buffer("C", DType::kInt64, {Expr(9)});
  Buffer x = make_buffer("x", DType::kInt64, {Expr(2)}, Scope::kLocal);
  Var i("i"), half("half");
  Expr n = load(x, {Expr(0)});
  Stmt step = let(half, floordiv(n, 2),
                  if_then(eq(floormod(n, 2), 0), store(x, {Expr(0)}, half),
                          store(x, {Expr(0)}, n * Expr(3) + Expr(1))));
  Stmt body =
      seq({store(x, {Expr(0)}, i + Expr(1)), store(x, {Expr(1)}, Expr(0)),
           while_loop(n > Expr(1), seq({step, store(x, {Expr(1)}, load(x, {Expr(1)}) + Expr(1))})),
           store(c, {i}, load(x, {Expr(1)}))});
  Kernel k{"collatz", {c}, {}, for_loop(i, 9, allocate(x, body))};
  std::vector<int64_t> out(9);
  ASSERT_EQ(error_of(k, {out.data()}), "");
  EXPECT_EQ(out, (std::vector<int64_t>{0, 1, 7, 2, 5, 8, 16, 3, 19}));
}

TEST(Interpreter, UninitialisedReadIsFound) {
  Buffer c = make_buffer("C", DType::kFloat32, {Expr(2)});
  Buffer w = make_buffer("w", DType::kFloat32, {Expr(2)}, Scope::kWorkspace);
  Var i("i");
  // The second iteration begins with a fresh workspace.
  Stmt body = allocate(w, seq({if_then(eq(i, 0), store(w, {Expr(1)}, float_imm(1))),
                               store(c, {i}, load(w, {Expr(1)}))}));
  Kernel k{"k", {c}, {}, for_loop(i, 2, body)};
  std::vector<float> out(2);
  expect_error(error_of(k, {out.data()}), "uninitialised: load from 'w' [1] at i = 1");
  EXPECT_TRUE(interpret(k, {out.data()}, {}, {.check_uninitialised = false}).ok());
  EXPECT_TRUE(std::isnan(out[1]));
}

TEST(Interpreter, LanesOfRows) {
  const auto run = [](const std::string& value) {
    Result<Kernel> k =
        parse_kernel("kernel k(A: i64[9], C: i64[4]) { C[ramp(0, 1, 4)] = " + value + " }");
    EXPECT_TRUE(k.ok()) << k.error().to_string();
    std::vector<int64_t> a{0, 10, 20, 30, 40, 50, 60, 70, 80}, c(4, -1);
    Status s = k.ok() ? interpret(*k, {a.data(), c.data()}, {}) : Status();
    EXPECT_TRUE(s.ok()) << s.error().to_string();
    return c;
  };
  using Values = std::vector<int64_t>;
  EXPECT_EQ(run("ramp(ramp(5, 1, 2), 100, 4)"), (Values{5, 6, 105, 106}));
  EXPECT_EQ(run("A[ramp(ramp(1, 1, 2), 5, 4)]"), (Values{10, 20, 60, 70}));
  EXPECT_EQ(run("every(A[ramp(0, 1, 8)], 1, 2)"), (Values{10, 30, 50, 70}));
  EXPECT_EQ(run("interleave(A[ramp(0, 1, 2)], A[ramp(7, 1, 2)])"), (Values{0, 70, 10, 80}));
}

// Buffers lie where the plan says: one that is placed upon another overwrites it.
TEST(Interpreter, WorkspaceBuffersLieInOneBlock) {
  const auto run = [](const std::string& sizes, int64_t at) {
    const std::string text = "kernel k(C: f32[1]) " + sizes +
                             " { workspace s: f32[1] at 0 workspace t: f32[1] at " +
                             std::to_string(at) + " s[0] = 1.0 t[0] = 2.0 C[0] = s[0] }";
    Result<Kernel> k = parse_kernel(text);
    EXPECT_TRUE(k.ok()) << k.error().to_string();
    float out = 0;
    Status s = k.ok() ? interpret(*k, {&out}, {}) : Status();
    return s.ok() ? std::to_string(static_cast<int>(out)) : s.error().message;
  };
  EXPECT_EQ(run("call_workspace(128)", 64), "1");
  EXPECT_EQ(run("call_workspace(128)", 0), "2");
  expect_error(run("call_workspace(128)", 128), "'t' of 4 bytes at 128 is not in its workspace");
  expect_error(run("call_workspace(64) worker_workspace(64)", 64), "is not in its workspace of 64");
  expect_error(run("call_workspace(128)", 32), "at 32 is not in its workspace");
}

TEST(Interpreter, ReportsBrokenKernels) {
  Buffer c = make_buffer("C", DType::kInt64, {Expr(2), Expr(3)});
  Buffer other = make_buffer("other", DType::kInt64, {Expr(2), Expr(3)});
  Var i("i"), n("n");
  std::vector<int64_t> out(6);
  auto run = [&](Stmt s) { return error_of({"k", {c}, {n}, std::move(s)}, {out.data()}, {0}); };
  expect_error(run(store(c, {Expr(1), i}, Expr(0))), "variable 'i' is not defined");
  expect_error(run(store(other, {Expr(1), Expr(0)}, Expr(0))), "buffer 'other' is not allocated");
  expect_error(run(store(c, {Expr(1), Expr(-1)}, Expr(0))),
               "store to 'C' [1, -1]: index 1 is -1, the extent is 3");
  expect_error(run(store(c, {Expr(1), Expr(0), Expr(0)}, Expr(0))),
               "accessed with 3 indices, expected 2");
  expect_error(run(store(c, {Expr(1), n}, floordiv(Expr(1), n))), "integer division by zero");
  expect_error(run(store(c, {n, n}, cast(DType::kInt64, unary(UnaryOp::kExp, n)))),
               "exp has no meaning for i64");
  expect_error(error_of({"k", {c}, {}, seq({})}, {}),
               "takes 1 buffers and 0 scalars, found 0 and 0");
  expect_error(error_of({"k", {c}, {}, seq({})}, {nullptr}), "parameter 'C' is null");
}

TEST(Evaluate, IntegerExpressions) {
  Var n("n"), m("m");
  const IntValues values{{n.get(), 17}, {m.get(), -5}};
  EXPECT_EQ(evaluate_int(floordiv(n, m), values), -4);
  EXPECT_EQ(evaluate_int(floormod(n, m), values), -3);
  EXPECT_EQ(evaluate_int(binary(BinaryOp::kDiv, n, m), values), -3);
  EXPECT_EQ(evaluate_int(binary(BinaryOp::kTruncMod, n, m), values), 2);
  EXPECT_EQ(evaluate_int(n < m, values), 0);
  EXPECT_EQ(evaluate_int(select(n > m, n, floordiv(n, 0)), values), 17);
  EXPECT_EQ(evaluate_int(binary(BinaryOp::kPow, n, Expr(3)), values), 17 * 17 * 17);
  EXPECT_EQ(evaluate_int(cast(DType::kInt8, n * Expr(100)), values), static_cast<int8_t>(1700));
  EXPECT_EQ(evaluate_int(floordiv(n, n - n), values), std::nullopt);
  EXPECT_EQ(evaluate_int(n + Var("other"), values), std::nullopt);
  EXPECT_EQ(evaluate_int(cast(DType::kInt64, cast(DType::kFloat32, n)), values), std::nullopt);
}

}  // namespace
}  // namespace tilewright::ir
