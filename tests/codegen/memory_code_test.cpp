// How kernels reach memory: squares turned over by shuffles, results stored past the caches, loads
// under a condition. What they compute: tests/ops/memory_kernels_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <sstream>

#include "codegen/cpu/compile_kernels.h"
#include "codegen/cpu/lane_indices.h"
#include "codegen/cpu/transpose_steps.h"
#include "ir/interpreter/interpreter.h"
#include "ir/text/parser_loops.h"
#include "passes/loops/loop_passes.h"
#include "runtime/kernel_abi.h"

namespace tilewright::cpu {
namespace {

ir::Kernel parsed(const std::string& text) {
  auto kernel = ir::parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  kernel->body = passes::group_accesses(kernel->body);
  return *kernel;
}
std::string code_for(const std::string& text, const std::string& cpu) {
  auto machine = describe_machine(cpu);
  EXPECT_TRUE(machine.ok()) << machine.error().to_string();
  ir::Kernel kernel = parsed(text);
  if (text.find("workspace") != std::string::npos) kernel = passes::plan_workspace(kernel);
  auto code = print_code(kernel, *machine, CodeForm::kAssembly);
  EXPECT_TRUE(code.ok()) << code.error().to_string();
  return code.ok() ? *code : "";
}
bool has(const std::string& code, const char* instruction) {
  return code.find(instruction) != std::string::npos;
}

TEST(TransposeSteps, TurnASquareOver) {
  for (const int n : {4, 8, 16, 32})
    for (int part = 2; part <= n; part *= 2) {
      std::vector<std::vector<int>> rows;
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c) {
          if (c == 0) rows.emplace_back();
          rows.back().push_back(r * n + c);
        }
      for (const auto& step : transpose_steps(n, part)) {
        std::vector<std::vector<int>> next;
        for (const Shuffle& s : step) {
          next.emplace_back();
          for (const int lane : s.lanes)
            next.back().push_back(
                rows[static_cast<size_t>(lane < n ? s.x : s.y)][static_cast<size_t>(lane % n)]);
        }
        rows = next;
      }
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c)
          EXPECT_EQ(rows[static_cast<size_t>(r)][static_cast<size_t>(c)], c * n + r)
              << "n " << n << ", part " << part;
    }
}

// n stores of strided vectors; `shift` moves the last of them.
std::string square(int n, int shift = 0, const std::string& from = "A") {
  std::string text = "kernel k(A: f32[4096], C: f32[4096]) {\n";
  for (int i = 0; i < n; ++i)
    text += "C[ramp(" + std::to_string(64 * i) + ", 1, " + std::to_string(n) + ")] = " + from +
            "[ramp(" + std::to_string(i + (i + 1 == n ? shift : 0)) + ", 64, " + std::to_string(n) +
            ")]\n";
  return text + "}";
}
TEST(StridedLoads, BecomeShuffles) {
  for (const auto& [cpu, n] : {std::pair{"x86-64-v4", 16}, {"x86-64-v3", 8}, {"x86-64", 4}}) {
    const std::string code = code_for(square(n), cpu);
    EXPECT_FALSE(has(code, "gather")) << cpu << "\n" << code;
    EXPECT_TRUE(has(code, "unpcklps")) << cpu << "\n" << code;
  }
}

// n stores of every n-th byte; the last begins at `last`.
std::string stretch(int n, int last, const std::string& from = "A", const std::string& mask = "") {
  std::string text = "kernel k(A: i8[4096], C: i8[4096]) {\n";
  for (int i = 0; i < n; ++i)
    text += "C[ramp(" + std::to_string(i + 1 == n ? last : i) + ", " + std::to_string(n) + ", 16)" +
            mask + "] = " + from + "[ramp(" + std::to_string(100 * i) + ", 1, 16)]\n";
  return text + "}";
}
TEST(StridedStores, BecomeOneStore) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3"})
    for (const char* mask : {"", " where ramp(0, 1, 16) < broadcast(5, 16)"}) {
      const std::string code = code_for(stretch(4, 3, "A", mask), cpu);
      EXPECT_TRUE(has(code, "vpmovzxbd")) << cpu << "\n" << code;
      EXPECT_FALSE(has(code, "vpextrb")) << cpu << "\n" << code;
      EXPECT_FALSE(has(code, "scatter")) << cpu << "\n" << code;
    }
}

// Three planes and pixels of three bytes, one way and the other.
TEST(Interleaving, TakesNeitherGathersNorScatters) {
  auto copy = [](bool to_pixels, const std::string& mask) {
    std::string text = "kernel k(A: u8[4096], C: u8[4096]) { ";
    for (int k = 0; k < 3; ++k) {
      const std::string plane = "[ramp(" + std::to_string(1024 * k) + ", 1, 16)" + mask + "]",
                        pixels = "[ramp(" + std::to_string(k) + ", 3, 16)" + mask + "]";
      text += "C" + (to_pixels ? pixels : plane) + " = A" + (to_pixels ? plane : pixels) + " ";
    }
    return text + "}";
  };
  for (const char* cpu : {"x86-64-v4", "x86-64-v3"})
    for (const char* mask : {"", " where ramp(0, 1, 16) < broadcast(5, 16)"})
      for (const bool to_pixels : {false, true}) {
        const std::string code = code_for(copy(to_pixels, mask), cpu);
        EXPECT_FALSE(has(code, "gather")) << cpu << "\n" << code;
        EXPECT_FALSE(has(code, "scatter")) << cpu << "\n" << code;
        EXPECT_TRUE(*mask || has(code, "vpshufb")) << cpu << "\n" << code;
      }
}

// Rows that no instruction suits, and lanes chosen of values that are no rows.
TEST(Rows, AreReadWhateverTheirForm) {
  const auto machine = describe_machine();
  ASSERT_TRUE(machine.ok());
  const std::string head = "kernel k(A: f32[4096], C: f32[4096]) { ";
  const std::string mask = "ramp(0, 1, 8) < broadcast(5, 8)";
  for (const std::string body :
       {"let r: f32x24 = A[ramp(ramp(7, 1, 3), 3, 24)] C[ramp(0, 1, 8)] = every(r, 2, 3)",
        "let r: f32x24 = A[ramp(ramp(7, 1, 3), 50, 24)] C[ramp(0, 1, 8)] = every(r, 2, 3)",
        "let r: f32x16 = A[ramp(ramp(7, 1, 4), 50, 16)] C[ramp(0, 1, 4)] = every(r, 2, 4)",
        "let r: f32x16 = A[ramp(ramp(7, 1, 4), 50, 16)] C[ramp(0, 1, 16)] = r",
        "let r: f32x16 = A[ramp(ramp(7, 1, 4), 50, 16)] C[ramp(0, 1, 8)] = every(r, 1, 2)",
        "C[ramp(0, 1, 16)] = A[ramp(ramp(7, 1, 4), 50, 16)]",
        "C[ramp(ramp(7, 1, 4), 50, 16)] = A[ramp(5, 1, 16)]",
        "C[ramp(0, 1, 8)] = every(A[ramp(5, 1, 16)] * broadcast(3.0, 16), 1, 2)",
        "C[ramp(0, 1, 8)] = interleave(A[ramp(5, 1, 4)], A[ramp(90, -3, 4)])",
        "C[ramp(0, 2, 24)] = interleave(A[ramp(5, 1, 8)], A[ramp(9, 1, 8)], A[ramp(90, 3, 8)])"}) {
    for (const bool masked : {false, true}) {
      std::string text = head + body + " }";
      const size_t at = text.find(", 3, 24)]");
      if (masked && at == std::string::npos) continue;
      if (masked)
        text.insert(at + 8, " where interleave(" + mask + ", " + mask + ", " + mask + ")");
      const ir::Kernel k = parsed(text);
      auto compiled = compile_kernels({&k}, *machine, 1);
      ASSERT_TRUE(compiled.ok()) << text << "\n" << compiled.error().to_string();
      auto code = load_code({(*compiled)[0].object});
      ASSERT_TRUE(code.ok()) << code.error().to_string();
      std::vector<float> a(4096), expected(4096), found(4096);
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
      ASSERT_TRUE(ir::interpret(k, {a.data(), expected.data()}, {}).ok()) << text;
      void* const buffers[] = {a.data(), found.data()};
      reinterpret_cast<TwKernel>((*code)->find("k"))(nullptr, buffers, nullptr);
      EXPECT_EQ(found, expected) << text;
    }
  }
}

std::string load(const std::string& index) {
  return "kernel k(A: f32[4096], C: f32[4096]) { for i in 0..16 { C[ramp(i * 16, 1, 16)] = A[" +
         index + "] } }";
}

TEST(LaneIndices, ThatAreKnownBecomeShuffles) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3"})
    for (const char* index :
         {"floordiv(ramp(i * 16, 1, 16), broadcast(2, 16))", "ramp(i * 32, 2, 16)",
          "ramp(i + 15, -1, 16)", "max(ramp(-1, 1, 16), broadcast(0, 16)) + broadcast(i * 7, 16)",
          "broadcast(i * 7, 16) + select(ramp(-2, 1, 16) < broadcast(0, 16), ramp(2, -1, 16), "
          "ramp(-2, 1, 16))",
          "ramp(i, 1, 16) + floormod(ramp(i * 4, 1, 16), broadcast(2, 16))"}) {
      const std::string code = code_for(load(index), cpu);
      EXPECT_FALSE(has(code, "gather")) << cpu << ", " << index << "\n" << code;
    }
}
TEST(LaneIndices, ThatLieApartAreGathered) {
  for (const char* index : {"ramp(i, 3, 16)", "floordiv(ramp(i, 1, 16), broadcast(2, 16))"})
    EXPECT_TRUE(has(code_for(load(index), "x86-64-v4"), "gather")) << index;
}
TEST(LaneIndices, AreNarrowBehindACommonBase) {
  const std::string code = code_for(
      "kernel k(A: f32[4096], B: i32[4096], C: f32[4096]) { for i in 0..16 { "
      "C[ramp(i * 16, 1, 16)] = A[broadcast(i * 64, 16) + i64(B[ramp(i * 16, 1, 16)])] } }",
      "x86-64-v4");
  EXPECT_TRUE(has(code, "vgatherdps")) << code;
  EXPECT_FALSE(has(code, "vgatherqps")) << code;
}
TEST(LaneIndices, AreReadWithinTheirElements) {
  // 0 0 1 2 .. 6: two overlapping reads of four elements.
  const auto read = shuffled_read({0, 0, 1, 2, 3, 4, 5, 6}, std::vector<bool>(8, true));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->first, 0);
  EXPECT_EQ(read->second, 3);
  EXPECT_EQ(read->count, 4);
  EXPECT_EQ(read->lanes, (std::vector<int>{0, 0, 1, 2, 3, 5, 6, 7}));
  EXPECT_FALSE(shuffled_read({0, 8}, {true, true}).has_value());
  EXPECT_FALSE(shuffled_read({0, 1}, {false, false}).has_value());
  EXPECT_EQ(shuffled_read({0, 800}, {true, false})->count, 1);
}

std::string copy(const std::string& index) {
  return "kernel k(A: f32[4096], C: f32[4096]) { for i in 0..16 { C[ramp(" + index +
         ")] = A[ramp(i * 32, 1, 16)] streamed } }";
}

TEST(StreamedStores, AreOfWholeAlignedVectors) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3", "x86-64"}) {
    const std::string code = code_for(copy("i * 32, 1, 16"), cpu);
    EXPECT_TRUE(has(code, "movntps")) << cpu << "\n" << code;
    EXPECT_TRUE(has(code, "sfence")) << cpu << "\n" << code;
  }
  for (const char* index : {"i * 17, 1, 16", "i * 32 + 1, 1, 16", "i, 16, 16"}) {
    const std::string code = code_for(copy(index), "x86-64-v4");
    EXPECT_FALSE(has(code, "movntps")) << index << "\n" << code;
    EXPECT_FALSE(has(code, "sfence")) << index << "\n" << code;
  }
}

TEST(StreamedStores, AreOfInterleavedVectors) {
  const auto pixels = [](const std::string& base) {
    return "kernel k(A: f32[4096], C: f32[4096]) { for i in 0..16 { C[ramp(" + base +
           ", 1, 48)] = interleave(A[ramp(i * 16, 1, 16)], A[ramp(i * 16 + 256, 1, 16)], "
           "A[ramp(i * 16 + 512, 1, 16)]) streamed } }";
  };
  const std::string code = code_for(pixels("i * 48"), "x86-64-v4");
  EXPECT_TRUE(has(code, "movntps")) << code;
  EXPECT_TRUE(has(code, "sfence")) << code;
  EXPECT_FALSE(has(code_for(pixels("i * 48 + 1"), "x86-64-v4"), "movntps"));
}

size_t count(const std::string& code, const char* instruction) {
  size_t n = 0;
  for (size_t at = code.find(instruction); at != std::string::npos;
       at = code.find(instruction, at + 1))
    ++n;
  return n;
}
size_t prefetches(const std::string& text) {
  return count(code_for(text, "x86-64-v4"), "prefetch");
}

TEST(Prefetches, AreOneForEachLineOfAVector) {
  const auto copy = [](const std::string& lanes) {
    return "kernel k(A: f32[m], C: f32[m]) scalars(m) { for i in 0..m { C[ramp(i * 64, 1, " +
           lanes + ")] = A[ramp(i * 64, 1, " + lanes + ")] ahead(4096) } }";
  };
  EXPECT_EQ(prefetches(copy("16")), 1u);
  EXPECT_EQ(prefetches(copy("64")), 4u);
}

TEST(Prefetches, AreOfTheCachesThatTheySay) {
  const auto hint = [](const char* kind) {
    return code_for(
        "kernel k(A: f32[m], C: f32[m]) scalars(m) { for i in 0..m { prefetch(A[i + 64], " +
            std::string(kind) + ") C[i] = A[i] } }",
        "x86-64-v4");
  };
  EXPECT_EQ(count(hint("near"), "prefetcht0"), 1u);
  EXPECT_EQ(count(hint("outer"), "prefetcht1"), 1u);
  EXPECT_EQ(count(hint("write"), "prefetch"), 1u);
}

// C = of(s * A + A), 16 lanes, where s is a local copy of A; the sum is one node, wherever it
// stands, and A may be read in all lanes.
ir::Kernel of_sum(const std::function<ir::Expr(const ir::Expr&)>& of) {
  const ir::Buffer a = ir::make_buffer("A", DType::kFloat32, {4096}),
                   c = ir::make_buffer("C", DType::kFloat32, {4096}),
                   s = ir::make_buffer("s", DType::kFloat32, {16}, ir::Scope::kLocal);
  const ir::Expr lanes = ir::ramp(0, 1, 16), x = ir::load(a, {lanes}, ir::bool_imm(true));
  return {
      .name = "k",
      .params = {a, c},
      .body = ir::allocate(s, ir::seq({ir::store(s, {lanes}, ir::load(a, {lanes})),
                                       ir::store(c, {lanes}, of(ir::load(s, {lanes}) * x + x))})),
      .exact = true};
}
ir::Expr clipped(const ir::Expr& x) {
  const ir::Expr zero = ir::broadcast(ir::constant(0, DType::kFloat32), 16),
                 six = ir::broadcast(ir::constant(6, DType::kFloat32), 16),
                 above = ir::select(x < zero, zero, x);
  return ir::select(six < above, six, above);
}
TEST(Selects, ComputeNothingTwice) {
  const auto machine = describe_machine("x86-64-v4");
  ASSERT_TRUE(machine.ok());
  const auto code = print_code(of_sum(clipped), *machine, CodeForm::kAssembly);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  EXPECT_EQ(count(*code, "vmulps"), 1u) << *code;
}
TEST(Selects, LeaveWhatTheyGuardAside) {
  // Lanes that the condition turns off are 0 under it, and not beside it.
  const ir::Expr on = ir::ramp(0, 1, 16) < ir::broadcast(ir::int_imm(5), 16);
  const ir::Expr zero = ir::broadcast(ir::constant(0, DType::kFloat32), 16);
  const ir::Kernel k = of_sum([&](const ir::Expr& x) { return ir::select(on, x, zero) + x; });
  const auto machine = describe_machine();
  ASSERT_TRUE(machine.ok());
  auto compiled = compile_kernels({&k}, *machine, 1);
  ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
  auto code = load_code({(*compiled)[0].object});
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  std::vector<float> a(4096), expected(4096), found(4096);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  ASSERT_TRUE(ir::interpret(k, {a.data(), expected.data()}, {}).ok());
  void* const buffers[] = {a.data(), found.data()};
  reinterpret_cast<TwKernel>((*code)->find("k"))(nullptr, buffers, nullptr);
  EXPECT_EQ(found, expected);
}

TEST(Prefetches, AreOfTheRowsOfASquare) {
  std::string text = square(16);
  for (size_t at = text.find(", 64, 16)]"); at != std::string::npos;
       at = text.find(", 64, 16)]", at + 1))
    text.insert(at + 10, " ahead(64)");
  EXPECT_EQ(prefetches(text), 16u);
}

// Sums of a tile that wait in a workspace: rows and vectors of columns, both of which loops around go over. Columns are
// an operand, or a copy of it in the same workspace.
std::string waiting_sums(const std::string& columns) {
  std::string steps_of_tile;
  for (const char* row : {"", " + 512"})
    for (const char* vector : {"", " + 8"}) {
      const std::string sum =
          std::string("W[ramp(i * 1024") + row + " + j * 16" + vector + ", 1, 8)]";
      steps_of_tile += sum + " = " + sum + " + broadcast(A[k * 64 + i * 2" + (*row ? " + 1" : "") +
                       "], 8) * " + columns + "[ramp(k * 128 + j * 16" + vector + ", 1, 8)]\n";
    }
  return R"(kernel k(A: f32[65536], B: f32[65536], C: f32[65536]) worker_workspace(98304) {
  for p in 0..4 parallel {
    workspace W: f32[16384] at 0
    workspace P: f32[8192] at 65536
    for c in 0..1024 { P[ramp(c * 8, 1, 8)] = B[ramp(c * 8, 1, 8)] }
    for j in 0..8 {
      for i in 0..16 {
        for k in 0..64 {
)" + steps_of_tile +
         R"(        }
      }
    }
    for l in 0..2048 { C[ramp(p * 16384 + l * 8, 1, 8)] = W[ramp(l * 8, 1, 8)] }
  }
})";
}
TEST(WaitingSums, StayInRegistersMeanwhile) {
  for (const char* columns : {"B", "P"}) {
    const std::string code = code_for(waiting_sums(columns), "x86-64-v3");
    const std::regex label("\n\\.LBB"), stored("vmov[au]ps\t%ymm[0-9]+, [^%]*\\(");
    size_t steps = 0;
    for (std::sregex_token_iterator part(code.begin(), code.end(), label, -1), end; part != end;
         ++part) {
      const std::string block = part->str().substr(0, part->str().find("\tj"));
      if (!has(block, "vfmadd")) continue;
      ++steps;
      EXPECT_FALSE(std::regex_search(block, stored)) << block;
    }
    EXPECT_GE(steps, 1u) << code;
  }
}

// Sums of a register tile that lie in a buffer of the kernel, in a loop over terms: `rows` by two vectors. And so often
// once more.
std::string tiles_in(const std::string& buffer, int rows, int times) {
  std::string text = "kernel k(A: f32[65536], B: f32[65536], C: f32[65536]) {\n" + buffer,
              tile = "for o in 0..4 {\nfor p in 0..2 {\nfor k in 0..64 {\n";
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 2; ++c) {
      const std::string at = "W[ramp(o * 2048 + " + std::to_string(64 * r) + " + p * 32 + " +
                             std::to_string(16 * c) + ", 1, 16)]";
      tile += at + " = " + at + " + broadcast(A[k * 64 + o * " + std::to_string(rows) + " + " +
              std::to_string(r) + "], 16) * B[ramp(k * 64 + p * 32 + " + std::to_string(16 * c) +
              ", 1, 16)]\n";
    }
  for (int n = 0; n < times; ++n) {
    text += std::regex_replace(tile, std::regex("\\b([okp])\\b"), "$1_" + std::to_string(n)) +
            "}\n}\n}\n";
  }
  return text + "C[0] = W[5]\n}";
}
// An operand is used more often than LLVM looks whether it is captured, and the index of the sums has two variables.
TEST(SumsInABuffer, StayInRegisters) {
  constexpr int kTiles = 6, kSums = 28;
  for (const char* buffer : {"workspace W: f32[65536]\n", "local W: f32[8192]\n"}) {
    std::istringstream code(code_for(tiles_in(buffer, 14, kTiles), "x86-64-v4"));
    int sums = 0, stores = 0;
    const std::regex store(R"(vmovups\s+%zmm\d+, )");
    for (std::string line; std::getline(code, line);) {
      const bool adds = line.find("vfmadd") != std::string::npos;
      sums += adds ? 1 : 0;
      if (sums % kSums > 0) stores += std::regex_search(line, store) ? 1 : 0;
    }
    EXPECT_EQ(sums, kTiles * kSums) << buffer;
    EXPECT_EQ(stores, 0) << buffer;
  }
}

}  // namespace
}  // namespace tilewright::cpu
