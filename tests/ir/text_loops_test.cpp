// The text form of the loop IR: round trips, spelling, messages, and input that is no program at
// all.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "tests/ir/random_kernel.h"
#include "tests/ir/sample_kernels.h"

namespace tilewright::ir {
namespace {

// Text and structure both survive: equal text, equal nodes, equal hashes.
void expect_round_trip(const Kernel& k) {
  const std::string text = to_text(k);
  Result<Kernel> back = parse_kernel(text);
  ASSERT_TRUE(back.ok()) << back.error().to_string() << "\n" << text;
  EXPECT_EQ(to_text(*back), text);
  EXPECT_TRUE(structurally_equal(*back, k)) << text;
  EXPECT_EQ(structural_hash(*back), structural_hash(k)) << text;
  EXPECT_EQ(back->name, k.name);
}
std::string parse_error(const std::string& text) {
  Result<Kernel> k = parse_kernel(text);
  return k.ok() ? "no error" : k.error().to_string();
}

// One kernel spelled out, as documentation and so that a change of the form is seen.
TEST(TextLoops, MatmulLooksLikeThis) {
  EXPECT_EQ(to_text(testing_samples::matmul(512, 784)),
            R"(kernel matmul(A: f32[m, 784], B: f32[784, 512], C: f32[m, 512]) scalars(m) {
  for i in 0..m {
    for j in 0..512 {
      for k in 0..784 {
        block "update" (vi: parallel m = i, vj: parallel 512 = j, vk: reduce 784 = k) init {
          C[vi, vj] = 0.0
        } body {
          C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        }
      }
    }
  }
}
)");
  expect_round_trip(testing_samples::matmul(512, 784));
}

TEST(TextLoops, EveryStatementIsReadAndPrintedAlike) {
  const std::string text =
      R"(kernel 'all of it'(A: f32[n, 4] layout(d1/2, d0, d1%2:4), B: i32[]) scalars(n, s: i32) {
  local t: f32[8]
  let a: f32 = t[0] + 1.5
  {
    let b = n
    A[b, 0] = a
  }
  for i in 0..n parallel {
    while i < 3 and B[] > 2:i32 {
      B[] = s
    }
  }
  {
    B[] = 1:i32
    {
    }
  }
  block "out" (v: parallel n = n - 1, w: ordered 4 = 0, x: i32 reduce 2:i32 = s) where (v < 2 or w == 0) {
    if not(v == w) {
      A[v, w] = a
    } else {
      workspace 'for': bool[2, v]
      'for'[0, ramp(0, 1, 4) where broadcast(true, 4)] = broadcast(false, 4)
    }
  }
}
)";
  Result<Kernel> k = parse_kernel(text);
  ASSERT_TRUE(k.ok()) << k.error().to_string();
  EXPECT_EQ(to_text(*k), text);
  expect_round_trip(*k);
}

// As many as precedence needs, and no text that reads as another type or sign.
TEST(TextLoops, ExpressionsHaveMinimalParentheses) {
  Names names;
  for (const char* n : {"a", "b", "c"}) names.vars[n] = Var(n);
  for (const char* n : {"p", "q"}) names.vars[n] = Var(n, {DType::kBool});
  names.vars["x"] = Var("x", {DType::kFloat32});
  for (const char* text : {"a + b + c",
                           "a + (b + c)",
                           "a - (b - c)",
                           "(a + b) * c",
                           "a * b + c",
                           "-a * b",
                           "-(a * b)",
                           "-(-a)",
                           "neg(3)",
                           "-3",
                           "a - -3",
                           "a * (b / c)",
                           "a < b and p or q",
                           "(p or q) and p",
                           "(a < b) == p",
                           "p == (a < b)",
                           "floordiv(a + b, 2)",
                           "min(a, max(b, c))",
                           "select(a < b, a, -b)",
                           "i32(a) + 3:i32",
                           "bitcast(u32, x)",
                           "f64(x) * 1e+300:f64",
                           "x + 0.1",
                           "x + -0.0",
                           "x * inf",
                           "reduce_lanes(+, ramp(a, 1, 8))",
                           "ramp(ramp(a, 1, 4), b, 16)",
                           "every(ramp(a, 1, 8), 1, 2)",
                           "interleave(ramp(a, 1, 8), ramp(b, 2, 8), broadcast(a, 8))",
                           "reduce_lanes(max, broadcast(x, 16))",
                           "round(x)",
                           "isnan(x) or p",
                           "xor(p, q)",
                           "pow(x, nan)",
                           "18446744073709551615:u64",
                           "-9223372036854775808",
                           "-128:i8",
                           "-inf:f16",
                           "1.5:bf16",
                           "16777216.0 + x",
                           "1 + 2",
                           "a * 1"}) {
    Result<Expr> e = parse_expr(text, names);
    ASSERT_TRUE(e.ok()) << text << ": " << e.error().to_string();
    EXPECT_EQ(to_text(*e), text);
  }
}

TEST(TextLoops, DotsAndRepeatedVectors) {
  const std::string text = R"(kernel k(A: u8[64], B: i8[64], C: i32[16]) {
  for i in 0..4 dot {
    C[i] = C[i] + i32(A[i]) * i32(B[i])
  }
  C[ramp(0, 1, 16)] = dot(C[ramp(0, 1, 16)], broadcast(A[ramp(4, 1, 4)], 64), B[ramp(0, 1, 64)])
  C[ramp(0, 1, 4)] = dot(broadcast(-7:i32, 4), A[ramp(0, 1, 16)], broadcast(B[ramp(0, 1, 2)], 16))
  C[3] = dot(C[3], broadcast(255:u8, 4), B[ramp(8, 1, 4)]) * 2:i32
  C[ramp(0, 1, 8)] = broadcast(broadcast(C[ramp(0, 1, 2)], 4), 8)
}
)";
  Result<Kernel> k = parse_kernel(text);
  ASSERT_TRUE(k.ok()) << k.error().to_string();
  EXPECT_EQ(to_text(*k), text);
  expect_round_trip(*k);
}

TEST(TextLoops, TilesOfDots) {
  const std::string text = R"(kernel k(A: u8[m * 64], B: i8[1024], dot_tile: i32[256]) scalars(m) {
  for i in 0..m {
    dot_tile(dot_tile[i * 2, 16], A[i * 64, 64], B[0, 64], 2, 16, 16)
  }
  dot_tile[0] = 1:i32
}
)";
  Result<Kernel> k = parse_kernel(text);
  ASSERT_TRUE(k.ok()) << k.error().to_string();
  EXPECT_EQ(to_text(*k), text);
  expect_round_trip(*k);
  Result<Kernel> other = parse_kernel(text.substr(0, text.find("16, 16)")) + "16, 8)\n  }\n}\n");
  ASSERT_TRUE(other.ok()) << other.error().to_string();
  EXPECT_FALSE(structurally_equal(*k, *other));
  EXPECT_NE(parse_error("kernel k(A: u8[4]) { dot_tile(A[0, 1], A[0, 1], 1, 1, 1) }"), "no error");
}

TEST(TextLoops, Prefetches) {
  const std::string text = R"(kernel k(A: f32[m], prefetch: f32[m]) scalars(m) {
  for i in 0..m {
    prefetch(A[i + 64], near)
    prefetch(A[i * 2 + 64], outer)
    prefetch(prefetch[i + 64], write)
    prefetch[i] = A[i]
  }
}
)";
  auto kernel = parse_kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  EXPECT_EQ(to_text(*kernel), text);
  EXPECT_NE(
      parse_error("kernel k(A: u8[4]) { prefetch(A[0], far) }").find("'near', 'outer' or 'write'"),
      std::string::npos);
  EXPECT_NE(parse_error("kernel k(A: u8[4]) { prefetch(B[0], near) }"), "no error");
}

TEST(TextLoops, StreamedIsNoReservedWord) {
  const std::string text = R"(kernel k(streamed: f32[8], C: f32[8]) {
  C[0] = streamed[1]
  streamed[2] = 1.0 streamed
  streamed[3] = 2.0
}
)";
  auto k = parse_kernel(text);
  ASSERT_TRUE(k.ok()) << k.error().to_string();
  EXPECT_EQ(to_text(*k), text);
  expect_round_trip(*k);
}

// Variables are told apart by identity in memory, by name in text.
TEST(TextLoops, SameNamesGetSuffixes) {
  Var i("i"), again("i"), taken("i_1");
  Buffer b = make_buffer("i", DType::kInt64, {Expr(9)});
  Kernel k{"k",
           {b},
           {},
           for_loop(taken, 2, for_loop(i, 3, for_loop(again, 4, store(b, {i + again}, taken))))};
  const std::string text = to_text(k);
  EXPECT_NE(text.find("i[i_2 + i_3] = i_1"), std::string::npos) << text;
  expect_round_trip(k);
}

// The last check keeps the generator complete when a kind of node is added.
TEST(TextLoops, RandomKernelsRoundTripAndCoverEveryNode) {
  std::set<NodeKind> seen;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    const Kernel k = RandomKernel(seed).make();
    expect_round_trip(k);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    for_each_stmt(k.body, [&](const Stmt& s) { seen.insert(s.kind()); });
    for_each_expr(k.body, [&](const Expr& e) { seen.insert(e.kind()); });
  }
#define TW_EXPR(Kind) EXPECT_TRUE(seen.count(NodeKind::k##Kind)) << #Kind;
#define TW_STMT(Kind) EXPECT_TRUE(seen.count(NodeKind::k##Kind)) << #Kind;
#include "ir/loops/nodes.def"
}

// Random bit patterns: subnormal numbers, infinities and signs of zero among them.
TEST(TextLoops, EveryFloatKeepsItsBits) {
  std::mt19937_64 random(1);
  Names names;
  for (int n = 0; n < 20000; ++n) {
    const uint64_t bits = random();
    const double d = std::bit_cast<double>(bits);
    const float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
    for (const Expr& e : {float_imm(d, DType::kFloat64), float_imm(f, DType::kFloat32)}) {
      Result<Expr> back = parse_expr(to_text(e), names);
      ASSERT_TRUE(back.ok()) << to_text(e) << back.error().to_string();
      ASSERT_TRUE(structurally_equal(*back, e)) << to_text(e);
    }
  }
}

TEST(TextLoops, ErrorsNamePlaceFoundAndExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "1:1: expected 'kernel', found the end"},
      {"kernel k() {\n  x[0] = 1\n}", "2:3: buffer 'x' is not defined"},
      {"kernel k(A: f32[2]) {\n  A[0] = 1\n}",
       "2:3: store to 'A': expected a value of type f32, found i64"},
      {"kernel k(A: f32[2]) { A[i] = 1.0 }", "1:25: variable 'i' is not defined"},
      {"kernel k(A: f99[2]) {}", "1:13: expected a type such as f32 or i64x8, found 'f99'"},
      {"kernel k(A: f32[2]) { A[0] = 1.0 + 2 }", "1:34: operands of + differ in type: f32 and i64"},
      {"kernel k(A: f32[2]) { A[0] = (1.0 }", "1:35: expected ')', found '}'"},
      {"kernel k(A: f32[2]) { A[0] = frob(1.0) }", "1:30: unknown function 'frob'"},
      {"kernel k(A: f32[2]) { for i in 1..2 {} }", "1:32: loops begin at 0"},
      {"kernel k(A: f32[2]) { for i in 0..2 sideways {} }",
       "1:37: expected '{' or the kind of a loop, found 'sideways'"},
      {"kernel k(A: f32[2]) { if 1 {} }", "1:26: expected a condition of type bool, found i64"},
      {"kernel k(A: f32[2] layout(d2)) {}",
       "1:27: expected a dimension of the buffer, d0 to d0, found 'd2'"},
      {"kernel k(A: f32[2] layout(d0/2, d0%2:2)) {}",
       "1:35: a layout's padded extent must be more than its modulus"},
      {"kernel k(A: i8[2]) { A[0] = 300:i8 }", "1:29: 300 is outside the range of i8"},
      {"kernel k(A: i8[2]) { A[0] = 99999999999999999999 }", "outside the range of i64"},
      {"kernel k(A: bool[2]) { A[0] = 1 < 2 < 3 }", "comparisons do not chain"},
      {"kernel k() {} x", "1:15: expected the end, found 'x'"},
      {"kernel k() { block b () {} }",
       "1:20: expected the name of a block in double quotes, found 'b'"},
      {"kernel k() { ; }", "1:14: a character that begins no token: ';'"},
      {"kernel 'k", "1:8: expected a closing quote"},
      {"kernel k(A: i32[8]) { A[ramp(0, 1, 6)] = broadcast(A[ramp(0, 1, 4)], 6) }",
       "broadcast: 6 lanes of i32x4"},
      {"kernel k(A: i32[8]) { A[0] = dot(A[0], A[1]) }", "expected ',', found ')'"},
      {"kernel k() { let x: f32 = 1 }", "1:14: 'x' is a f32, its value a i64"},
  };
  for (const auto& [text, phrase] : cases)
    EXPECT_NE(parse_error(text).find(phrase), std::string::npos)
        << text << "\nfound: " << parse_error(text) << "\nexpected: " << phrase;
}

// The parser is recursive; a limit keeps hostile text from overflowing the stack.
TEST(TextLoops, DeepNestingIsRefusedNotFollowed) {
  const size_t deep = 200000;
  EXPECT_NE(parse_error("kernel k(A: i64[2]) { A[0] = " + std::string(deep, '(') + "1" +
                        std::string(deep, ')') + " }")
                .find("nesting"),
            std::string::npos);
  EXPECT_NE(parse_error("kernel k(A: i64[2]) " + std::string(deep, '{')).find("nesting"),
            std::string::npos);
  EXPECT_NE(
      parse_error("kernel k(A: i64[2]) { A[0] = " + std::string(deep, '-') + "1 }").find("nesting"),
      std::string::npos);
  std::string sum = "1", lets;
  for (size_t n = 0; n < deep; ++n) sum += " + 1", lets += "let x = 1 ";
  EXPECT_NE(parse_error("kernel k(A: i64[2]) { A[0] = " + sum + " }").find("operands in a row"),
            std::string::npos);
  EXPECT_NE(parse_error("kernel k(A: i64[2]) { " + lets + " }").find("too many definitions"),
            std::string::npos);
}

// Random changes to valid text get further than random text would.
TEST(TextLoops, GarbageIsAnErrorNeverACrash) {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::string text = to_text(RandomKernel(seed).make());
    for (int n = 0; n < 20; ++n) {
      std::string broken = text;
      const size_t at = random() % broken.size();
      switch (random() % 4) {
        case 0: broken.resize(at); break;
        case 1: broken.erase(at, random() % 8 + 1); break;
        case 2: broken[at] = static_cast<char>(random()); break;
        default: broken.insert(at, text.substr(random() % text.size(), random() % 12)); break;
      }
      Result<Kernel> k = parse_kernel(broken);
      if (k.ok()) expect_round_trip(*k);  // still a program: then the laws hold for it
    }
  }
}

}  // namespace
}  // namespace tilewright::ir
