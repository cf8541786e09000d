// Which kernels become phases of one fork, and what these are.
#include "codegen/cpu/phases.h"

#include <gtest/gtest.h>

#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_loops.h"

namespace tilewright::cpu {
namespace {

constexpr const char* kHead = "kernel k(A: f32[64], B: f32[64], N: i64[1]) {\n";

// The phases of a body, as text; "" where it has none.
std::string phases_of(const std::string& body) {
  auto kernel = ir::parse_kernel(kHead + body + "}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string() << body;
  if (!kernel.ok()) return "?";
  const ir::Stmt phases = as_phases(kernel->body);
  if (!phases) return "";
  kernel->body = phases;
  auto verified = ir::verify(*kernel, ir::Stage::kFlat);
  EXPECT_TRUE(verified.ok()) << verified.error().to_string();
  const std::string text = ir::to_text(*kernel);
  return text.substr(text.find('\n') + 1, text.rfind('}') - text.find('\n') - 1);
}

const std::string kLoop = "  for i in 0..64 parallel {\n    A[i] = 1.0\n  }\n",
                  kOther = "  for j in 0..64 parallel {\n    B[j] = A[j]\n  }\n";

TEST(Phases, SeveralParallelLoopsShareAFork) {
  EXPECT_EQ(phases_of(kLoop + kOther), kLoop + kOther);
}
TEST(Phases, OneParallelLoopOrNoneHasItsOwn) {
  EXPECT_EQ(phases_of(kLoop), "");
  EXPECT_EQ(phases_of("  A[0] = 1.0\n"), "");
  EXPECT_EQ(phases_of("  A[0] = 1.0\n  B[0] = 1.0\n"), "");
}
TEST(Phases, StepsWithSerialWorkBetween) {
  const std::string serial = "    A[0] = B[t]\n    A[1] = B[t]\n";
  const std::string before = "  for t in 0..9 {\n" + kLoop + serial + "  }\n";
  EXPECT_EQ(phases_of(before),
            "  for t in 0..9 {\n    for i in 0..64 parallel {\n      A[i] = 1.0\n    }\n"
            "    for once in 0..1 parallel {\n      A[0] = B[t]\n      A[1] = B[t]\n    }\n  }\n");
}
TEST(Phases, AWayThroughThatDependsOnMemoryIsOneWorkers) {
  EXPECT_EQ(phases_of("  for t in 0..N[0] {\n" + kLoop + "  }\n"), "");
  EXPECT_EQ(phases_of("  if N[0] < 3 {\n" + kLoop + kOther + "  }\n"), "");
  EXPECT_EQ(phases_of("  let n = N[0]\n" + kLoop + kOther), "");
}
TEST(Phases, RegistersOfOneWorkerAreNotTheOthers) {
  const std::string local = "  local L: f32[64]\n", alone = "  L[0] = 1.0\n";
  EXPECT_EQ(phases_of(local + kLoop + "  for j in 0..64 parallel {\n    B[j] = L[j]\n  }\n"), "");
  EXPECT_EQ(phases_of(local + alone + kLoop),
            local + "  for once in 0..1 parallel {\n    L[0] = 1.0\n  }\n" + kLoop);
}

}  // namespace
}  // namespace tilewright::cpu
