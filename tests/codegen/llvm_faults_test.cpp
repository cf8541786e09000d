// No form of LLVM IR that LLVM 22.1 translates wrongly is left in what it is given.
#include <gtest/gtest.h>

#include "codegen/cpu/compile_kernels.h"
#include "ir/text/parser_loops.h"

namespace tilewright::cpu {
namespace {

std::string llvm_for(const std::string& text) {
  auto kernel = ir::parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  auto machine = describe_machine("x86-64-v4");
  EXPECT_TRUE(machine.ok()) << machine.error().to_string();
  auto code = print_code(*kernel, *machine, CodeForm::kLlvm);
  EXPECT_TRUE(code.ok()) << code.error().to_string();
  return code.ok() ? *code : "";
}
int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
// The first `on` of 16 elements, converted.
std::string first_elements(const std::string& from, const std::string& to, int on) {
  const std::string mask = " where ramp(0, 1, 16) < broadcast(" + std::to_string(on) + ", 16)]";
  return "kernel k(A: " + from + "[16], C: " + to + "[16]) {\n  C[ramp(0, 1, 16)" + mask + " = " +
         to + "(A[ramp(0, 1, 16)" + mask + ")\n}";
}

TEST(LlvmFaults, NarrowedElementsAreStoredInRuns) {
  for (const char* to : {"i8", "u16", "i32"})
    for (int on = 1; on < 16; ++on) {
      SCOPED_TRACE(std::string(to) + ", " + std::to_string(on) + " of 16");
      const std::string code = llvm_for(first_elements("i64", to, on));
      EXPECT_EQ(count(code, "call void @llvm.masked.store"), 0);
      EXPECT_EQ(count(code, "\n  store "), __builtin_popcount(static_cast<unsigned>(on)));
    }
}

TEST(LlvmFaults, FloatsAreStoredUnderMasks) {
  EXPECT_EQ(count(llvm_for(first_elements("i32", "f32", 9)), "call void @llvm.masked.store"), 1);
}

TEST(LlvmFaults, MasksOfTheRunStay) {
  const std::string code = llvm_for(
      "kernel k(A: i64[n], C: i32[n]) scalars(n) {\n"
      "  C[ramp(0, 1, 16) where ramp(0, 1, 16) < broadcast(n, 16)] = "
      "i32(A[ramp(0, 1, 16) where ramp(0, 1, 16) < broadcast(n, 16)])\n}");
  EXPECT_EQ(count(code, "call void @llvm.masked.store"), 1);
}

}  // namespace
}  // namespace tilewright::cpu
