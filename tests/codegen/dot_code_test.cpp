// Which instructions a dot product becomes, by CPU. What they compute: tests/ops.
#include <gtest/gtest.h>

#include <tuple>

#include "codegen/cpu/compile_kernels.h"
#include "ir/text/parser_loops.h"

namespace tilewright::cpu {
namespace {

// The code of one dot product of `lanes` sums.
std::string code_for(const std::string& cpu, int lanes, DType left) {
  const int each = ir::dot_terms(left);
  const std::string sums = "ramp(0, 1, " + std::to_string(lanes) + ")",
                    terms = std::to_string(each * lanes), count = std::to_string(each);
  auto kernel = ir::parse_kernel("kernel k(A: " + std::string(name(left)) + "[" + count +
                                 "], B: " + std::string(name(ir::dot_partner(left))) + "[" + terms +
                                 "], C: " + std::string(name(ir::dot_sum(left))) + "[" +
                                 std::to_string(lanes) + "]) { C[" + sums + "] = dot(C[" + sums +
                                 "], broadcast(A[ramp(0, 1, " + count + ")], " + terms +
                                 "), B[ramp(0, 1, " + terms + ")]) }");
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  auto machine = describe_machine(cpu);
  EXPECT_TRUE(machine.ok()) << machine.error().to_string();
  auto code = print_code(*kernel, *machine, CodeForm::kAssembly);
  EXPECT_TRUE(code.ok()) << code.error().to_string();
  return code.ok() ? *code : "";
}

struct Choice {
  const char* cpu;
  int lanes;
  const char *instruction, *registers;
  DType left = DType::kUInt8;
};

TEST(DotCode, TakesTheWidestInstruction) {
  for (const Choice& c : {Choice{"cascadelake", 16, "vpdpbusd", "%zmm"},
                          {"cascadelake", 8, "vpdpbusd", "%ymm"},
                          {"cascadelake", 4, "vpdpbusd", "%xmm"},
                          {"alderlake", 8, "vpdpbusd", "%ymm"},
                          {"x86-64-v4", 16, "vpmaddwd", "%zmm"},
                          {"x86-64-v3", 8, "vpmaddwd", "%ymm"},
                          {"x86-64", 4, "pmaddwd", "%xmm"},
                          {"cascadelake", 16, "vpdpwssd", "%zmm", DType::kInt16},
                          {"cascadelake", 8, "vpdpwssd", "%ymm", DType::kInt16},
                          {"alderlake", 4, "vpdpwssd", "%xmm", DType::kInt16},
                          {"x86-64-v4", 16, "vpmaddwd", "%zmm", DType::kInt16},
                          {"x86-64-v3", 8, "vpmaddwd", "%ymm", DType::kInt16},
                          {"x86-64", 4, "pmaddwd", "%xmm", DType::kInt16},
                          {"cooperlake", 16, "vdpbf16ps", "%zmm", DType::kBFloat16},
                          {"cooperlake", 8, "vdpbf16ps", "%ymm", DType::kBFloat16},
                          {"znver4", 4, "vdpbf16ps", "%xmm", DType::kBFloat16}}) {
    const std::string code = code_for(c.cpu, c.lanes, c.left);
    const size_t at = code.find(c.instruction);
    ASSERT_NE(at, std::string::npos) << c.cpu << "\n" << code;
    const std::string line = code.substr(at, code.find('\n', at) - at);
    EXPECT_NE(line.find(c.registers), std::string::npos) << c.cpu << ": " << line;
  }
}

TEST(DotCode, GoesWithoutWhereThereIsNone) {
  for (const auto& [cpu, lanes] : {std::pair{"sandybridge", 8}, {"cascadelake", 3}}) {
    const std::string code = code_for(cpu, lanes, DType::kUInt8);
    EXPECT_NE(code.find("k:"), std::string::npos) << code;
    EXPECT_EQ(code.find("vpdpbusd"), std::string::npos) << cpu;
    // LLVM may find pairs of i16 by itself.
    for (const DType left : {DType::kInt16, DType::kBFloat16})
      EXPECT_NE(code_for(cpu, lanes, left).find("k:"), std::string::npos) << cpu;
  }
}

// The code of 2 x 2 tiles of sums over a reduction.
std::string code_of_tiles(const std::string& cpu, DType left) {
  const std::string depth = std::to_string(16 * ir::dot_terms(left)),
                    width = std::to_string(32 * ir::dot_terms(left)),
                    half = std::to_string(16 * ir::dot_terms(left)), lower = "16 * n * " + depth;
  const std::string sum(name(ir::dot_sum(left)));
  std::string tiles;
  for (const auto& [place, row, column] :
       {std::tuple{"0", "0", "0"}, {"16", "0", "1"}, {"512", "1", "0"}, {"528", "1", "1"}})
    tiles += "dot_tile(T[" + std::string(place) + ", 32], A[k * " + depth + " + " + row + " * (" +
             lower + "), n * " + depth + "], B[k * 16 * " + width + " + " + column + " * " + half +
             ", " + width + "], 16, 16, 16) ";
  auto kernel =
      ir::parse_kernel("kernel k(A: " + std::string(name(left)) + "[32 * n * " + depth +
                       "], B: " + std::string(name(ir::dot_partner(left))) + "[n * 16 * " + width +
                       "], C: " + sum + "[1024]) scalars(n) { local T: " + sum +
                       "[1024] for i in 0..64 { T[ramp(i * 16, 1, 16)] = " + "broadcast(" +
                       (is_float(left) ? "0.0" : "0:i32") + ", 16) } for k in 0..n { " + tiles +
                       "} for i in 0..64 { C[ramp(i * 16, 1, 16)] = T[ramp(i * 16, 1, 16)] } }");
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  auto machine = describe_machine(cpu);
  EXPECT_TRUE(machine.ok()) << machine.error().to_string();
  auto code = print_code(*kernel, *machine, CodeForm::kAssembly);
  EXPECT_TRUE(code.ok()) << code.error().to_string();
  return code.ok() ? *code : "";
}
size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(DotCode, TilesStayInTheirRegistersOverTheReduction) {
  for (const auto& [left, product] :
       {std::pair{DType::kUInt8, "tdpbusd"}, {DType::kBFloat16, "tdpbf16ps"}}) {
    const std::string code = code_of_tiles("sapphirerapids", left);
    EXPECT_EQ(count(code, "ldtilecfg"), 1u) << code;
    EXPECT_EQ(count(code, product), 4u) << code;
    EXPECT_EQ(count(code, "tileloadd"), 4u) << "each operand once a step\n" << code;
    EXPECT_EQ(count(code, "tilezero"), 4u) << "each sum once\n" << code;
    EXPECT_EQ(count(code, "tilestored"), 4u) << code;
    // From the first product back over the loop nothing is stored.
    const size_t first = code.find(product), store = code.find("tilestored");
    const size_t back = code.find("\tj", code.rfind(product));
    EXPECT_TRUE(first < back && back < store) << code;
  }
}

TEST(DotCode, TilesRunAsDotsWithoutAMatrixUnit) {
  const std::string code = code_of_tiles("cascadelake", DType::kUInt8);
  EXPECT_EQ(count(code, "tdpb"), 0u) << code;
  EXPECT_NE(code.find("vpdpbusd"), std::string::npos) << code;
  EXPECT_NE(code_of_tiles("cooperlake", DType::kBFloat16).find("vdpbf16ps"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::cpu
