// The text form of programs, and each rule of verify_program.h once: a program that breaks it, and
// a phrase of the message.
#include <gtest/gtest.h>

#include <span>

#include "ir/module_text/parser_program.h"
#include "ir/module_text/printer_program.h"
#include "ir/verify_program.h"

namespace tilewright::ir {
namespace {

// One program with every instruction; the cases below change a line of it.
constexpr const char* kWhole = R"(program whole standard symbols(n, m, count) {
  input b0 "x": f32[n] elements n live 0..11
  constant b1 "w": f32[4] elements 4 live 1..11 = #0
  temporary b2 "sizes": i64[1] elements 1 live 1..2
  temporary b3 "y": f32[m] elements m dynamic live 3..10
  temporary b4 "flag": bool[] elements 1 live 1..9
  temporary b5 "i": i64[] elements 1 live 9..9
  temporary b6 "state": f32[4] elements 4 live 7..12
  temporary b7 "next": f32[4] elements 4 live 9..9
  output b8 "rows": f32[count, 4] elements count * 4 dynamic live 9..12
  temporary b9 "flat": f32[count * 4] elements count * 4 of b8 reshaped live 9..12
  run_key b10 "key": i64[2] elements 2 live 0..0
  temporary b11 "trips": i64[] elements 1 live 1..9
  temporary b12 "wide": f32[32] elements 32 live 7..7
  temporary b13 "half": f32[16] elements 16 of b12 at 64 by (1 of 0) live 7..7
  temporary b14 "square": f32[2, 2] elements 4 of b6 reshaped live 7..12
  temporary b15 "turned": f32[2, 2] layout(d1, d0) elements 4 of b14 transposed (1, 0) live 7..12
  temporary b16 "checked": f32[2, 2] layout(d1, d0) elements 4 of b15 live 7..12
  input b17 "kept": f32[4] elements 4 updated live 12..12
  inputs(b0, b17)
  outputs(b9, b6)
kernel k0_set(W: f32[4], S: i64[1], F: bool[], T: i64[]) {
  S[0] = i64(W[0])
  F[0] = W[1] < 0.0
  T[0] = 3
}
kernel k1_fill(Y: f32[m]) scalars(m) {
  for i in 0..m {
    Y[i] = 0.0
  }
}
kernel k2_add(A: f32[4], B: f32[4]) {
  B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] + broadcast(1.0, 4)
}
  schedule
    "split i 4 io ii\n"
    "vectorize ii \"x\"\n"
    "no end"
  profile "k0_set" from "a \"b\"", "c" flops 0 bytes 16
  profile "k1_fill" flops n bytes m * 4
  block {
    require at_most(n, 100) "x: extents n and 100"
    call 0(b1, b2, b4, b11) profile 0
    define m = b2[0] limit 1024
    allocate b3
    call 1(b3) scalars(m) profile 1
    check_indices b11 farthest b11 extents(n, m) dim -1 "gather"
    if b4 then 1 else 2
    copy b6 = b1
    require equals(n, m) "add"
    loop trips b11 while b4 iteration b5 body 3 until b4 carried(b6 = b7) scans(b8 = b7) count count
    copy b3 = b0
    copy b6 = b1
    start 0 b17 from 0 to 16
  }
  block {
    copy b3 = b0
  }
  block {
    fail "no"
  }
  block {
    call 2(b6, b7)
  }
}
)";

ConstantRef weights() { return make_constant_of<float>(DType::kFloat32, {4}, {1, 2, 3, 4}); }
Result<Program> parsed(const std::string& text) { return parse_program(text, {weights()}); }
// The text with one line changed; the line must be there.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}
std::string violations(const std::string& text) {
  Result<Program> p = parsed(text);
  if (!p.ok()) return "not read: " + p.error().to_string();
  Status s = verify(*p);
  return s.ok() ? "" : s.error().to_string();
}

// The program above has one of each.
TEST(ProgramText, EveryInstructionRoundTrips) {
  Result<Program> p = parsed(kWhole);
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  std::vector<ConstantRef> constants;
  EXPECT_EQ(to_text(*p, &constants), kWhole);
  EXPECT_EQ(constants.size(), 1u);
  std::set<size_t> seen;
  for (const auto& block : p->blocks)
    for (const ProgramInstruction& i : block) seen.insert(i.index());
  EXPECT_EQ(seen.size(), std::variant_size_v<ProgramInstruction>);
}

TEST(ProgramText, MistakesAreErrorsWithAPlace) {
  const struct {
    const char *from, *to, *phrase;
  } cases[] = {
      {"constant b1", "constant b2", "expected b1, found 'b2'"},
      {"= #0", "= #7", "constant #7 is not given"},
      {"define m", "define q", "symbol 'q' is not declared"},
      {"f32[m] elements m", "f32[q] elements m", "variable 'q' is not defined"},
      {"fail \"no\"", "jump b3", "expected an instruction, found 'jump'"},
      {"equals(n, m)", "equals(n)", "expected two extents, found 1"},
      {"program whole standard", "program whole fast", "expected exact, standard or relaxed"},
      {"call 0(b1,", "call 0(x1,", "expected a buffer, found 'x1'"},
      {"call 0(b1,", "call 99999999999(b1,", "the number is too large"},
  };
  for (const auto& c : cases) {
    Result<Program> p = parsed(replaced(kWhole, c.from, c.to));
    ASSERT_FALSE(p.ok()) << c.to;
    EXPECT_NE(p.error().to_string().find(c.phrase), std::string::npos) << p.error().to_string();
    EXPECT_FALSE(p.error().location.empty());
  }
}
// Whatever is cut off or replaced: an error or a program, and no crash.
TEST(ProgramText, NoPrefixCrashes) {
  const std::string text = kWhole;
  for (size_t n = 0; n + 1 < text.size(); n += 3) {  // the last line needs no end
    Result<Program> p = parsed(text.substr(0, n));
    EXPECT_FALSE(p.ok()) << n;
  }
}

TEST(VerifyProgram, EachKernelHasASchedule) {
  Result<Program> p = parsed(kWhole);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->schedules[2], "split i 4 io ii\nvectorize ii \"x\"\nno end");
  p->schedules.pop_back();
  Status s = verify(*p);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().to_string().find("3 kernels and 2 schedules"), std::string::npos);
}
// What text cannot say.
TEST(VerifyProgram, OnlyViewsBeginWithinABuffer) {
  Result<Program> p = parsed(kWhole);
  ASSERT_TRUE(p.ok());
  p->buffers[13].alias_of = -1;
  Status s = verify(*p);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().to_string().find("b13 'half' begins at byte 64 and is no view"),
            std::string::npos);
}
TEST(VerifyProgram, AGoodProgramPasses) { EXPECT_EQ(violations(kWhole), ""); }

// By one change of the good program each.
struct Change {
  const char *from, *to, *phrase;
};
void expect_refused(std::span<const Change> changes) {
  for (const Change& c : changes) {
    const std::string found = violations(replaced(kWhole, c.from, c.to));
    EXPECT_NE(found.find(c.phrase), std::string::npos)
        << c.to << "\nfound: " << found << "\nexpected: " << c.phrase;
  }
}
// One case for each way to share memory, and for each reader that knows of no layouts.
TEST(VerifyProgram, ElementsHaveOnePlace) {
  const Change changes[] = {
      {"f32[2, 2] elements 4 of b6", "f32[2, 2] layout(d1, d0) elements 4 of b6",
       "b14 'square', f32[2, 2] layout(d1, d0), has another order in memory than b6 'state'"},
      {"layout(d1, d0) elements 4 of b14", "elements 4 of b14",
       "b15 'turned', f32[2, 2] row-major, has another order in memory than b14 'square'"},
      {"transposed (1, 0)", "transposed (0, 1)", "b15 'turned', f32[2, 2] layout(d1, d0), has"},
      {"transposed (1, 0)", "transposed (1, 1)", "b15 'turned', f32[2, 2] layout(d1, d0), has"},
      {"layout(d1, d0) elements 4 of b15", "elements 4 of b15",
       "b16 'checked', f32[2, 2] row-major, has another order in memory than b15 'turned'"},
      {"f32[2, 2] layout(d1, d0) elements 4 of b15", "f32[4] elements 4 of b15",
       "b16 'checked', f32[4] row-major, has another order in memory than b15 'turned'"},
      {"\"square\": f32[2, 2] elements", "\"square\": f32[2, 2] layout(d1/2, d0, d1%2) elements",
       "b15 'turned', f32[2, 2] layout(d1, d0), has another order in memory than b14 'square'"},
      {"\"square\": f32[2, 2] elements 4", "\"square\": f32[2, 3] elements 6",
       "b14 'square', f32[2, 3] row-major, has another order in memory than b6 'state'"},
      {"\"turned\": f32[2, 2]", "\"turned\": f32[2, 3]",
       "b15 'turned', f32[2, 3] layout(d1, d0), has another order in memory than b14 'square'"},
      {"by (1 of 0)", "by (2 of 0)", "b13 'half', f32[16] row-major, has another order"},
      {"by (1 of 0)", "by (1 of 1)", "b13 'half', f32[16] row-major, has another order"},
      {"by (1 of 0)", "by ()", "b13 'half', f32[16] row-major, has another order"},
      {"f32[16] elements 16 of b12", "i32[16] elements 16 of b12", "b13 'half', i32[16] row-major"},
      {"\"next\": f32[4] elements", "\"next\": f32[2, 2] elements",
       "b6 'state', f32[4] row-major, gets the bytes of b7 'next', f32[2, 2] row-major"},
      {"copy b6 = b1", "copy b6 = b16",
       "b6 'state', f32[4] row-major, gets the bytes of b16 'checked'"},
      {"scans(b8 = b7)", "scans(b8 = b16)", "b16 'checked' is stacked by a loop and is laid out"},
      {"farthest b11", "farthest b16", "b16 'checked' tells the farthest indices and is laid out"},
      {"define m = b2[0]", "define m = b16[0]", "b16 'checked' defines a symbol and is laid out"},
      {"outputs(b9, b6)", "outputs(b9, b16)", "b16 'checked' is an output and is laid out as"},
      {"\"x\": f32[n] elements n", "\"x\": f32[n, n] layout(d1, d0) elements n * n",
       "b0 'x' is an input and is laid out as layout(d1, d0)"},
      {"(A: f32[4], B", "(A: f32[2, 2] layout(d1, d0), B",
       "b6 'state', row-major, is given to parameter 'A' of k2_add, layout(d1, d0)"},
  };
  expect_refused(changes);
}
TEST(VerifyProgram, EachRuleIsChecked) {
  const Change cases[] = {
      // Buffers.
      {" = #0", "", "b1 'w' is a constant without contents"},
      {"\"w\": f32[4]", "\"w\": f32[2, 2]", "the contents of b1 'w' are f32[4]"},
      {"of b8 reshaped", "of b9 reshaped", "b9 'flat' is a view of no buffer's storage"},
      {"of b8 reshaped", "of b99 reshaped", "b9 'flat' is a view of no buffer's storage"},
      {"of b8 reshaped live", "of b8 reshaped dynamic live", "b9 'flat' is a view and"},
      {"of b12 at 64", "of b12 at 60", "begins at byte 60, which is no multiple of 64"},
      {"of b12 at 64", "of b12 at -64", "begins at byte -64, which is no multiple of 64"},
      {"of b12 at 64", "of b12 at 128",
       "begins at byte 128 and ends behind b12 'wide' of 128 bytes"},
      {"f32[16] elements 16 of b12 at 64", "f32[64] elements 64 of b12",
       "b13 'half' begins at byte 0 and ends behind b12 'wide' of 128 bytes"},
      {"of b12 at 64", "of b8 at 64", "begins at byte 64 of what has no size that is known"},
      {"f32[16] elements 16 of b12", "f32[n] elements n of b12",
       "begins at byte 64 of what has no size that is known"},
      {"outputs(b9, b6)", "outputs(b9, b13)",
       "b13 'half' is an output and begins within what it views"},
      {"inputs(b0, b17)", "inputs(b0, b2)", "b2 'sizes' is listed as an input and is none"},
      {"inputs(b0, b17)", "inputs(b0, b0)", "b0 'x' is listed as an input twice"},
      {"inputs(b0, b17)", "inputs()", "b0 'x' is an input that is not listed"},
      {"outputs(b9, b6)", "outputs(b90)", "an output is b90, which does not exist"},
      {"elements n live", "elements i32(n) live", "is a i32, expected i64"},
      // Calls.
      {"call 2(b6", "call 9(b6", "a call of kernel 9, which does not exist"},
      {"profile 1\n    check", "profile 9\n    check", "profile 9, which does not exist"},
      {"call 2(b6, b7)", "call 2(b6)", "a call of k2_add with 1 buffers and 0 scalars"},
      {"call 1(b3) scalars(m)", "call 1(b3)", "a call of k1_fill with 1 buffers and 0 scalars"},
      {"call 2(b6, b7)", "call 2(b6, b11)", "b11 'trips' is given to parameter 'B' of k2_add"},
      {"f32[4] elements 4 live 9..9", "f32[5] elements 5 live 9..9",
       "b7 'next' of 5 elements is given to parameter 'B' of k2_add of 4"},
      {"call 2(b6, b7)", "call 2(b6, b1)", "k2_add stores to b1 'w', which cannot be written"},
      // Blocks.
      {"then 1 else 2", "then 1 else 9", "block 9 does not exist"},
      {"then 1 else 2", "then 1 else 1", "block 1 is entered more than once"},
      {"then 1 else 2", "then 0 else 2", "block 0 is entered more than once"},
      {"if b4 then 1 else 2", "allocate b3", "block 1 is never entered"},
      {"copy b6 = b1", "copy b6 = b99", "an operand is b99, which does not exist"},
      // Order.
      {"    call 0(b1, b2, b4, b11) profile 0\n    define", "    define",
       "b2 'sizes' is read before it is stored to"},
      {"define m = b2[0] limit 1024", "copy b2 = b2", "names symbol 'm' before it is defined"},
      {" count count", "", "names symbol 'count' before it is defined"},
      {"    allocate b3\n", "    copy b2 = b2\n",
       "b3 'y' is dynamic and stored to before it is allocated"},
      {"copy b6 = b1", "copy b2 = b2", "b6 'state' is read before it is stored to"},
      {"    call 2(b6, b7)\n", "    copy b5 = b5\n", "b7 'next' is read before it is stored to"},
      // Lifetimes.
      {"f32[m] elements m dynamic live 3..10", "f32[m] elements m dynamic live 3..5",
       "b3 'y' is used at 6, outside of its life 3..5"},
      {"bool[] elements 1 live 1..9", "bool[] elements 1 live 2..9",
       "b4 'flag' is used at 1, outside of its life 2..9"},
      {"dynamic live 9..12", "dynamic live 9..10", "is a result and does not live to the end"},
  };
  expect_refused(cases);
}

}  // namespace
}  // namespace tilewright::ir
