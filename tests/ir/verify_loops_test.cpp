// Each rule of verify_loops.h once: a kernel that breaks it, and a phrase of the message.
#include "ir/verify_loops.h"

#include <gtest/gtest.h>

#include "ir/text/parser_loops.h"
#include "tests/ir/sample_kernels.h"

namespace tilewright::ir {
namespace {

// All that the verifier finds, as one text; "" when nothing.
std::string violations(const Kernel& k, Stage stage) {
  Status s = verify(k, stage);
  return s.ok() ? "" : s.error().to_string();
}
void expect_violation(const Kernel& k, Stage stage, const std::string& phrase) {
  const std::string found = violations(k, stage);
  EXPECT_NE(found.find(phrase), std::string::npos)
      << "found: " << found << "\nexpected: " << phrase;
}
Kernel parsed(const std::string& text) {
  Result<Kernel> k = parse_kernel(text);
  EXPECT_TRUE(k.ok()) << text << "\n" << k.error().to_string();
  return k.ok() ? *k : Kernel{"broken", {}, {}, seq({})};
}

TEST(VerifyLoops, GoodKernelsPass) {
  const Kernel k = testing_samples::matmul(512, 784);
  EXPECT_EQ(violations(k, Stage::kBlocks), "");
  EXPECT_EQ(violations(k, Stage::kScheduled), "");
  EXPECT_EQ(violations(parsed(R"(kernel k(A: f32[n], C: f32[n]) scalars(n) {
    for i in 0..floordiv(n + 7, 8) parallel {
      local t: f32[8]
      let m: boolx8 = ramp(i * 8, 1, 8) < broadcast(n, 8)
      t[ramp(0, 1, 8)] = A[ramp(i * 8, 1, 8) where m]
      C[ramp(i * 8, 1, 8) where m] = t[ramp(0, 1, 8)] * broadcast(2.0, 8)
    } })"),
                       Stage::kFlat),
            "");
}

// By a loop, by lanes, by lanes that a mask turns off, to the front, by what nothing is known of,
// by rows of a tile.
TEST(VerifyLoops, LocalBuffersAreNotOverrun) {
  const struct {
    const char *text, *phrase;
  } cases[] = {
      {"kernel k(A: i64[9]) { local t: i64[4] for i in 0..5 { t[i] = 1 } }",
       "index 'i' of the local buffer 't' of 4 elements runs from 0 to 4"},
      {"kernel k(A: i64[9]) { local t: i64[4] t[ramp(1, 1, 4)] = broadcast(1, 4) }",
       "runs from 1 to 4"},
      {"kernel k(A: i64[9]) scalars(n) { local t: i64[12] for i in 0..2 {"
       "  t[ramp(i * 8, 1, 8) where ramp(i * 8, 1, 8) < broadcast(9, 8)] = broadcast(1, 8) } }",
       "runs from 0 to 15"},
      {"kernel k(A: i64[9]) { local t: i64[4] for i in 0..3 { A[i] = t[i - 1] } }",
       "runs from -1 to 1"},
      {"kernel k(A: u8[512], B: i8[512]) { local t: i32[96] dot_tile(t[0, 32], A[0, 8], B[0, 64], "
       "4, 16, 2) }",
       "runs from 0 to 111"},
  };
  for (const auto& c : cases) expect_violation(parsed(c.text), Stage::kFlat, c.phrase);
}

// A table: the stage, a kernel as short as it can be, and words of the message.
TEST(VerifyLoops, RulesThatTextCanBreak) {
  const struct {
    Stage stage;
    const char* text;
    const char* phrase;
  } cases[] = {
      {Stage::kBlocks,
       "kernel k(A: i64[9]) { for i in 0..9 { block \"b\" (v: parallel 9 = i) { A[v] = i } } }",
       "variable 'i' of a loop or let around the block is named inside"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { for i: i32 in 0..9 { A[0] = 1 } }",
       "axis of type i32, expected i64"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { A[0, 0] = 1 }",
       "accessed with 2 indices, expected 1"},
      {Stage::kFlat, "kernel k(A: i64[9, 9]) { A[0, 0] = 1 }",
       "accessed with 2 indices, expected 1"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { local T: i64[9] prefetch(T[0], near) }",
       "a prefetch of what is no parameter of the kernel and no workspace around"},
      {Stage::kFlat, "kernel k(A: i64[9]) { prefetch(A[0:i32], write) }",
       "the offset of a prefetch has type i32"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { A[0:i32] = 1 }",
       "index '0:i32' of 'A' has type i32, expected i64"},
      {Stage::kScheduled, "kernel k(A: i64[9]) { A[0 where true] = 1 }",
       "a mask on 'A' before the flat stage"},
      {Stage::kFlat, "kernel k(A: i64[9]) { A[0 where broadcast(true, 4)] = 1 }",
       "mask on 'A' has type boolx4, expected bool of 1 lanes"},
      {Stage::kScheduled, "kernel k(A: i64[9]) { A[ramp(0, 1, 4)] = broadcast(1, 4) }",
       "is a vector before the flat stage"},
      {Stage::kFlat, "kernel k(A: i64[9]) { A[ramp(0, 1, 4)] = 1 }",
       "the index has 4 lanes, the value 1"},
      {Stage::kFlat, "kernel k(A: i64[9]) { A[0] = reduce_lanes(<, ramp(0, 1, 4)) }",
       "< cannot combine the lanes of i64x4"},
      {Stage::kBlocks, "kernel k(A: f32[9]) { A[0] = sqrt(1.0) + shl(1.0, 2.0) }",
       "shl has no meaning for f32"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { A[0] = exp(1) }", "exp has no meaning for i64"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { for i in 0..3:i32 { A[0] = 1 } }",
       "extent of loop 'i' has type i32, expected a scalar i64"},
      {Stage::kBlocks, "kernel k(A: i64[9]) scalars(n) { local t: i64[n] t[0] = 1 }",
       "local buffer 't' has the extent 'n', expected a constant"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { param t: i64[2] t[0] = 1 }",
       "buffer 't' is allocated with scope param"},
      {Stage::kBlocks, "kernel k(A: i64[1.5]) { A[0] = 1 }",
       "an extent of buffer 'A' has type f32"},
      {Stage::kFlat, "kernel k(A: i64[9]) { block \"b\" () { A[0] = 1 } }",
       "block 'b' is left in the flat stage"},
      {Stage::kBlocks, "kernel k(A: i64[9]) { block \"b\" (v: parallel 2 = 1:i8) { A[0] = 1 } }",
       "a binding of block 'b' has type i8"},
      {Stage::kBlocks,
       "kernel k(A: i64[9]) { for i in 0..9 { block \"b\" (v: reduce 9 = i) { A[0] = A[0] + v } } "
       "}",
       "the block has a reduce axis and no init"},
      {Stage::kScheduled,
       "kernel k(A: i64[9]) { for i in 0..9 { block \"b\" (v: parallel 9 = i) init { A[v] = 0 } "
       "body { A[v] = 1 } } }",
       "the block has an init and no reduce axis"},
      {Stage::kBlocks,
       "kernel k(A: i64[9]) { for i in 0..9 { block \"b\" (v: reduce 9 = i) init { A[0] = v } body "
       "{ A[0] = A[0] + v } } }",
       "an init names the reduce axis 'v'"},
      {Stage::kBlocks,
       "kernel k(A: i64[9]) { for i in 0..9 { block \"b\" (v: reduce 9 = i) init { A[0] = 0 } body "
       "{ A[v] = 1 } } }",
       "store to 'A' is indexed by the reduce axis 'v'"},
      {Stage::kScheduled,
       "kernel k(A: i64[9]) { for i in 0..9 parallel { block \"b\" (v: reduce 9 = i) init { A[0] = "
       "0 } body { A[0] = 1 } } }",
       "the reduce axis 'v' is bound to the parallel loop 'i'"},
      {Stage::kScheduled,
       "kernel k(A: i64[9]) { for i in 0..9 parallel { block \"b\" (v: ordered 9 = i) { A[0] = 1 } "
       "} }",
       "the ordered axis 'v' is bound to the parallel loop 'i'"},
      {Stage::kScheduled,
       "kernel k(A: i64[9]) { for i in 0..4 vectorized { for j in 0..4 parallel { A[j] = i } } }",
       "a parallel loop is nested in a vectorized one (in loop i, loop j)"},
      {Stage::kScheduled, "kernel k(A: i64[9]) scalars(n) { for i in 0..n unrolled { A[i] = i } }",
       "unrolled loop has the extent 'n', expected a constant"},
      {Stage::kScheduled, "kernel k(A: i64[9]) scalars(n) { for i in 0..n dot { A[i] = i } }",
       "dot loop has the extent 'n', expected a constant"},
  };
  for (const auto& c : cases) expect_violation(parsed(c.text), c.stage, c.phrase);
}

// Ramps of vectors, and the operations that take them apart.
TEST(VerifyLoops, RowsAndTheirLanes) {
  const struct {
    Stage stage;
    const char* text;
    const char* phrase;
  } cases[] = {
      {Stage::kScheduled,
       "kernel k(A: i64[9]) { A[0] = reduce_lanes(+, ramp(ramp(0, 1, 2), 3, 4)) }",
       "base and stride of a ramp must be scalars of one type"},
      {Stage::kFlat,
       "kernel k(A: i32[9]) { A[ramp(0, 1, 4)] = ramp(ramp(0:i32, 1:i32, 2), 3:i32, 4) }",
       "base and stride of a ramp must be scalars of one type"},
      {Stage::kFlat, "kernel k(A: i64[9]) { A[0] = every(A[ramp(0, 1, 4)], 1, 4) }",
       "is not one lane of each step of a vector"},
      {Stage::kFlat, "kernel k(A: i64[9]) { A[ramp(0, 1, 2)] = interleave(1, 2) }",
       "does not interleave vectors of one type"},
  };
  for (const auto& c : cases) expect_violation(parsed(c.text), c.stage, c.phrase);
}

// Before planning none has a place, after it all have, aligned, within the size and apart from
// those that live at the same time.
TEST(VerifyLoops, WorkspaceBuffersHavePlacesOnceTheyArePlanned) {
  const auto found = [](const std::string& sizes, const std::string& body, Stage stage) {
    return violations(parsed("kernel k(A: f32[64]) scalars(n) " + sizes + " { " + body + " }"),
                      stage);
  };
  const std::string good =
      "workspace s: f32[17] at 0 for i in 0..64 parallel { workspace t: f32[n] at 64 workspace u: "
      "f32[16] at 0 A[i] = 1.0 }";
  const std::string sizes = "call_workspace(128) worker_workspace(64 + floordiv(n + 15, 16) * 64)";
  EXPECT_EQ(found(sizes, good, Stage::kPlanned), "");
  const auto broken = [&](const std::string& body, const std::string& phrase,
                          Stage stage = Stage::kPlanned) {
    const std::string text = found(sizes, body, stage);
    EXPECT_NE(text.find(phrase), std::string::npos) << body << "\n" << text;
  };
  broken("workspace s: f32[17] A[0] = 1.0", "buffer 's' has no place in the workspace");
  broken("local s: f32[17] at 0 A[0] = 1.0", "buffer 's' has a place in a workspace");
  broken("workspace s: f32[17] at 0 A[0] = 1.0", "has a place in a workspace", Stage::kFlat);
  broken("A[0] = 1.0", "a workspace of '128' bytes before it is planned", Stage::kFlat);
  broken("workspace s: f32[17] at 32 A[0] = 1.0", "'32', is no multiple of 64");
  broken("workspace s: f32[17] at 64 A[0] = 1.0", "ends at '132' of a workspace of '128' bytes");
  broken("workspace s: f32[17] at 0 workspace t: f32[1] at 64 A[0] = 1.0",
         "buffer 't' shares bytes of the workspace with 's'");
  broken("workspace s: f32[1] at 0:i32 A[0] = 1.0", "the place of buffer 's' has type i32");
}

// Members of a team run the code between phases each for itself: accesses there would race.
TEST(VerifyLoops, ATeamAccessesMemoryInItsPhasesAlone) {
  const auto found = [](const std::string& body) {
    return violations(parsed("kernel k(A: f32[64], N: i64[1]) team { " + body + " }"),
                      Stage::kFlat);
  };
  const std::string loop = "for i in 0..64 parallel { A[i] = 1.0 } ";
  EXPECT_EQ(found("for t in 0..9 { " + loop + "for once in 0..1 parallel { A[0] = A[t] } }"), "");
  const auto broken = [&](const std::string& body, const std::string& phrase) {
    const std::string text = found(body);
    EXPECT_NE(text.find(phrase), std::string::npos) << body << "\n" << text;
  };
  broken(loop + "A[0] = 2.0", "a team accesses 'A' outside of parallel loops");
  broken("for t in 0..N[0] { " + loop + "}", "a team accesses 'N' outside of parallel loops");
  broken("local L: f32[1] for i in 0..64 parallel { A[i] = L[0] }",
         "a parallel loop accesses the local 'L' of the team's member");
}

// What the instructions take (vpdpbusd): u8 times i8, four products to a sum in i32.
TEST(VerifyLoops, DotsTakeBytesInFours) {
  auto kernel = [](const std::string& value) {
    return parsed("kernel k(C: i32[4], L: i64[4], A: u8[16], B: i8[16]) { C[ramp(0, 1, 4)] = " +
                  value + " }");
  };
  const std::string sum = "dot(C[ramp(0, 1, 4)], ", a = "A[ramp(0, 1, 16)]",
                    b = "B[ramp(0, 1, 16)]";
  EXPECT_EQ(violations(kernel(sum + a + ", " + b + ")"), Stage::kFlat), "");
  EXPECT_EQ(violations(kernel(sum + "broadcast(A[ramp(3, 1, 4)], 16), " + b + ")"), Stage::kFlat),
            "");
  const std::string phrase = "dot takes i32 and four times as many lanes of u8 and of i8";
  for (const std::string& wrong :
       {sum + b + ", " + a + ")",                             // i8 before u8
        sum + a + ", " + a + ")",                             // both u8
        sum + "A[ramp(0, 1, 8)], " + b + ")",                 // too few lanes of a
        sum + a + ", B[ramp(0, 1, 8)])",                      // too few lanes of b
        sum + "A[0], B[0])",                                  // scalars
        sum + a + ", i32(" + b + "))",                        // widened already
        "i32(dot(L[ramp(0, 1, 4)], " + a + ", " + b + "))"})  // a sum in i64
    expect_violation(kernel(wrong), Stage::kFlat, phrase);
}

// What AMX takes: at most 16 rows of 64 bytes.
TEST(VerifyLoops, TilesOfDots) {
  auto found = [](const std::string& tile, Stage stage = Stage::kFlat) {
    return violations(
        parsed("kernel k(C: i32[512], L: i64[512], A: u8[1024], B: i8[1024]) { " + tile + " }"),
        stage);
  };
  EXPECT_EQ(found("dot_tile(C[0, 16], A[0, 64], B[0, 64], 16, 16, 16)"), "");
  EXPECT_EQ(found("for i in 0..2 { dot_tile(C[i * 256, 16], A[i, 64], B[0, 4], 3, 1, 2) }"), "");
  const struct {
    const char *tile, *phrase;
  } cases[] = {
      {"dot_tile(L[0, 16], A[0, 64], B[0, 64], 16, 16, 16)", "found i64, u8 and i8"},
      {"dot_tile(C[0, 16], B[0, 64], A[0, 64], 16, 16, 16)", "found i32, i8 and u8"},
      {"dot_tile(C[0, 16], A[0, 64], A[0, 64], 16, 16, 16)", "found i32, u8 and u8"},
      {"dot_tile(C[0, 16], A[0, 64], B[0, 64], 17, 16, 16)", "found 17, 16 and 16"},
      {"dot_tile(C[0, 16], A[0, 64], B[0, 64], 16, 32, 16)", "found 16, 32 and 16"},
      {"dot_tile(C[0, 16], A[0, 64], B[0, 64], 16, 16, 0)", "found 16, 16 and 0"},
      {"dot_tile(C[ramp(0, 1, 2), 16], A[0, 64], B[0, 64], 16, 16, 16)",
       "the index of a dot_tile has type i64x2"},
      {"dot_tile(C[0, 16], A[0, 64:i32], B[0, 64], 16, 16, 16)",
       "the stride of a dot_tile has type i32"},
  };
  for (const auto& c : cases) EXPECT_NE(found(c.tile).find(c.phrase), std::string::npos) << c.tile;
  EXPECT_NE(found("dot_tile(C[0, 16], A[0, 64], B[0, 64], 16, 16, 16)", Stage::kScheduled)
                .find("a dot_tile before the flat stage"),
            std::string::npos);
}

// An expression without the checks of its maker.
template <typename T>
Expr raw(T fields, ScalarType type) {
  fields.kind = T::kKind;
  fields.type = type;
  return std::make_shared<const T>(std::move(fields));
}

TEST(VerifyLoops, RulesThatOnlyNodesCanBreak) {
  Buffer a = make_buffer("A", DType::kInt64, {Expr(9)});
  Buffer other = make_buffer("other", DType::kInt64, {Expr(9)});
  Var i("i"), v("v");
  auto kernel = [&](Stmt s) { return Kernel{"k", {a}, {}, std::move(s)}; };
  auto value = [&](Expr e) { return kernel(store(a, {Expr(0)}, std::move(e))); };
  const Stage s = Stage::kBlocks;
  const ScalarType i64{}, i32{DType::kInt32};

  expect_violation(value(i), s, "variable 'i' is used outside of its definition");
  expect_violation(
      kernel(seq({for_loop(i, 2, store(a, {i}, i)), for_loop(i, 2, store(a, {i}, i))})), s,
      "variable 'i' is defined more than once");
  expect_violation(kernel(store(other, {Expr(0)}, Expr(1))), s,
                   "buffer 'other' is neither a parameter nor allocated");
  Buffer w = make_buffer("w", DType::kInt64, {Expr(9)}, Scope::kWorkspace);
  Stmt use = allocate(w, store(w, {Expr(0)}, Expr(1)));
  expect_violation(kernel(seq({use, use})), s, "buffer 'w' is allocated more than once");
  expect_violation({"k", {a, a}, {}, seq({})}, s, "parameter 'A' occurs more than once");
  expect_violation({"k", {w}, {}, seq({})}, s, "parameter 'w' has scope workspace");
  Buffer odd = make_buffer("odd", DType::kInt64, {Expr(9)}, Scope::kParam, {{1, 1, 0}});
  expect_violation({"k", {odd}, {}, seq({})}, s,
                   "the layout of buffer 'odd' does not fit its rank");
  Buffer free = make_buffer("free", DType::kInt64, {i});
  expect_violation({"k", {free}, {}, seq({})}, s, "variable 'i' is used outside of its definition");

  Binary mixed;
  mixed.a = Expr(1);
  mixed.b = int_imm(1, DType::kInt32);
  expect_violation(value(raw(mixed, i64)), s, "operands of + differ in type: i64 and i32");
  mixed.b = Expr(2);
  expect_violation(kernel(store(a, {Expr(0)}, cast(DType::kInt64, raw(mixed, i32)))), s,
                   "states type i32, its operands give i64");
  Select choice;
  choice.condition = Expr(1);
  choice.a = choice.b = Expr(2);
  expect_violation(value(raw(choice, i64)), s, "condition of select has type i64");
  Bitcast bits;
  bits.value = int_imm(1, DType::kInt32);
  expect_violation(value(raw(bits, i64)), s, "bitcast from i32, the sizes differ");
  IntImm large;
  large.value = 300;
  Cast widened;
  widened.value = raw(large, {DType::kInt8});
  expect_violation(value(raw(widened, i64)), s, "immediate 300 is outside the range of i8");
  Ramp uneven;
  uneven.base = Expr(0);
  uneven.stride = int_imm(1, DType::kInt32);
  expect_violation(value(reduce_lanes(BinaryOp::kAdd, raw(uneven, {DType::kInt64, 4}))),
                   Stage::kFlat, "base and stride of a ramp");
  Broadcast twice{};
  twice.value = broadcast(Expr(1), 4);
  EXPECT_EQ(
      violations(value(reduce_lanes(BinaryOp::kAdd, raw(twice, {DType::kInt64, 8}))), Stage::kFlat),
      "");
  expect_violation(value(reduce_lanes(BinaryOp::kAdd, raw(twice, {DType::kInt64, 6}))),
                   Stage::kFlat, "a broadcast to lanes that no number of copies gives");
  expect_violation(value(raw(Dot{}, i64)), s, "an expression is missing");
  expect_violation(kernel(if_then(Expr(1), store(a, {Expr(0)}, Expr(1)))), s,
                   "condition '1' has type i64, expected a scalar bool");
  expect_violation(kernel(let(Var("x", {DType::kFloat32}), Expr(1), store(a, {Expr(0)}, Expr(1)))),
                   s, "'x' has type f32, its value i64");
  expect_violation(kernel(nullptr), s, "a statement is missing");
  expect_violation(value(raw(Unary{}, i64)), s, "an expression is missing");
}

TEST(VerifyLoops, CollectsAllViolations) {
  Status s =
      verify(parsed("kernel k(A: i64[9]) { A[0, 0] = exp(1) A[0:i32] = 1 }"), Stage::kBlocks);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kInternal);
  EXPECT_EQ(s.error().notes.size(), 3u);
  EXPECT_EQ(s.error().location, "kernel 'k'");
}

TEST(VerifyLoops, WhatIsOfOneTaskIsNotStreamed) {
  expect_violation(parsed(R"(kernel k(A: f32[8], C: f32[8]) {
    local t: f32[8]
    t[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] streamed
    C[ramp(0, 1, 8)] = t[ramp(0, 1, 8)] streamed })"),
                   Stage::kFlat, "a streamed store to 't'");
}

}  // namespace
}  // namespace tilewright::ir
