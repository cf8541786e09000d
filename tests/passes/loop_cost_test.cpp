// What flat loops cost: instructions counted by hand, footprints of accesses that are known, and
// decisions that are priced by the loops that follow from them.
#include "passes/cost/loop_cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/parser_loops.h"
#include "passes/cost/cache_traffic.h"
#include "passes/cost/core_cycles.h"
#include "passes/cost/tile_cost.h"
#include "passes/price_decisions.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::passes {
namespace {

ir::MachineDescription machine() {
  ir::MachineDescription m;
  m.vector_bytes = 64;
  m.vector_registers = 32;
  m.l1_bytes = 32 << 10, m.l2_bytes = 1 << 20, m.l3_bytes = 32 << 20;
  return m;  // two multiply-adds of four cycles' latency at once
}
ir::Kernel parsed(const std::string& params, const std::string& body) {
  auto kernel = ir::parse_kernel("kernel k(" + params + ") {\n" + body + "}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  return *kernel;
}
double cycles(const std::string& params, const std::string& body) {
  return core_cycles(machine(), parsed(params, body).body);
}
CacheTraffic traffic(const std::string& params, const std::string& body) {
  return cache_traffic(machine(), parsed(params, body).body);
}

// A GEMM tile of `rows` x `vectors` accumulators, 1024 terms.
std::string tile(int rows, int vectors) {
  std::string body =
      "  local c: f32[" + std::to_string(rows * vectors * 16) + "]\n  for k in 0..1024 {\n";
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const std::string at = "c[ramp(" + std::to_string((r * vectors + v) * 16) + ", 1, 16)]";
      body += "    " + at + " = " + at + " + broadcast(a[k * 64 + " + std::to_string(r) +
              "], 16) * b[ramp(k * 512 + " + std::to_string(v * 16) + ", 1, 16)]\n";
    }
  return body + "  }\n";
}
const std::string kGemm = "a: f32[65536], b: f32[524288]";

TEST(CoreCycles, ATileOfAccumulatorsIsBoundByMultiplyAdds) {
  EXPECT_NEAR(cycles(kGemm, tile(4, 4)) / 1024, 8, 0.8);
  EXPECT_NEAR(cycles(kGemm, tile(4, 6)) / 1024, 12, 1.0);
}
TEST(CoreCycles, FewAccumulatorsAreBoundByLatency) {
  EXPECT_NEAR(cycles(kGemm, tile(1, 1)) / 1024, 4, 0.1);
  EXPECT_NEAR(cycles(kGemm, tile(2, 2)) / 1024, 4, 0.1);
}
TEST(CoreCycles, MoreAccumulatorsThanRegistersAreSpilled) {
  EXPECT_GT(cycles(kGemm, tile(12, 4)) / 48, 1.05 * cycles(kGemm, tile(6, 4)) / 24);
}
TEST(CoreCycles, VectorsAreFasterThanElements) {
  const std::string params = "x: f32[4096], y: f32[4096]";
  const double vectors = cycles(params,
                                "  for i in 0..256 {\n    y[ramp(i * 16, 1, 16)] = "
                                "x[ramp(i * 16, 1, 16)] * broadcast(2.0, 16)\n  }\n");
  const double elements = cycles(params, "  for i in 0..4096 {\n    y[i] = x[i] * 2.0\n  }\n");
  EXPECT_NEAR(elements / vectors, 16, 1);
}
TEST(CoreCycles, ThreadsTakeTheirShare) {
  ir::MachineDescription m = machine();
  m.threads = 3;
  const ir::Kernel k = parsed("x: f32[40], y: f32[40]",
                              "  for i in 0..10 parallel {\n    for j in 0..4 {\n"
                              "      y[i * 4 + j] = x[i * 4 + j]\n    }\n  }\n");
  EXPECT_NEAR(core_cycles(m, k.body) / core_cycles(machine(), k.body), 0.4, 0.02);
}

TEST(CoreCycles, BranchesCountAsOftenAsTheyRun) {
  const auto with = [](const std::string& condition) {
    return cycles("x: f32[64, 64], y: f32[64, 64]",
                  "  for i in 0..64 {\n    if " + condition +
                      " {\n      for j in 0..64 {\n        y[i * 64 + j] = x[i * 64 + j]\n      }\n"
                      "    }\n  }\n");
  };
  const double always = with("i >= 0");
  EXPECT_NEAR(with("i < 16") / always, 0.25, 0.01);
  EXPECT_NEAR(with("i == 3") / always, 1.0 / 64, 0.02);
  EXPECT_NEAR(with("i != 3 and i < 32") / always, 0.5, 0.02);
  EXPECT_NEAR(with("i > 64") / always, 0, 0.02);
}

TEST(CacheTraffic, WhatFitsACacheComesFromNowhere) {
  const CacheTraffic t =
      traffic("x: f32[1024], y: f32[1024]", "  for i in 0..1024 {\n    y[i] = x[i]\n  }\n");
  EXPECT_EQ(t, (CacheTraffic{0, 0, 0}));
}
TEST(CacheTraffic, AStreamComesOnce) {
  constexpr double kBytes = 2.0 * 4 * (1 << 20);  // fits the third cache
  const CacheTraffic t = traffic("x: f32[1048576], y: f32[1048576]",
                                 "  for i in 0..1048576 {\n    y[i] = x[i]\n  }\n");
  EXPECT_NEAR(t[0], kBytes, 256);
  EXPECT_NEAR(t[1], kBytes, 256);
  EXPECT_EQ(t[2], 0);
}
TEST(CacheTraffic, WhatIsReadAgainComesAgainFromWhereItFits) {
  // 256 KiB, 100 times: from beyond the first cache each time, never from beyond the second.
  const CacheTraffic t = traffic("x: f32[65536], y: f32[100]",
                                 "  for i in 0..100 {\n    for j in 0..65536 {\n"
                                 "      y[i] = y[i] + x[j]\n    }\n  }\n");
  EXPECT_NEAR(t[0], 100 * 262144.0, 100 * 256);
  EXPECT_EQ(t[1], 0);
}
TEST(CacheTraffic, TilesBringLessThanRows) {
  const auto transpose = [](int tile) {
    const std::string t = std::to_string(tile), n = std::to_string(4096 / tile);
    return traffic("x: f32[4096, 4096], y: f32[4096, 4096]",
                   "  for io in 0.." + n + " {\n    for jo in 0.." + n + " {\n      for i in 0.." +
                       t + " {\n        for j in 0.." + t + " {\n          y[(jo * " + t +
                       " + j) * 4096 + io * " + t + " + i] = x[(io * " + t +
                       " + i) * 4096 + jo * " + t + " + j]\n        }\n      }\n    }\n  }\n");
  };
  EXPECT_GT(transpose(1)[0], 4 * transpose(32)[0]);
}

// 1024 columns of f32: all rows of a tile lie in one set of a cache of 12 ways, or of 8.
TEST(TileCost, RowsAPageApartAreFew) {
  const auto rows_at = [](int64_t row_bytes, int64_t ways = 12) {
    ir::MachineDescription m = machine();
    m.l1_bytes = ways << 12;
    return choose_tile(
               m, {.rows = 196, .columns = 256, .lanes = 16, .within = 14, .row_bytes = row_bytes})
        .best;
  };
  const TileCost usual = rows_at(0);
  EXPECT_EQ(usual.rows, 14);
  EXPECT_EQ(rows_at(4096 + 64).rows, usual.rows);
  for (const int64_t bytes : {4096, 8192, 12288}) {
    EXPECT_EQ(rows_at(bytes).rows, 7) << bytes;
    EXPECT_EQ(rows_at(bytes).vectors, usual.vectors) << bytes;
  }
  EXPECT_EQ(rows_at(1024).rows, usual.rows);  // every fourth row
  EXPECT_EQ(rows_at(4096, 8).rows, 7);
  EXPECT_EQ(rows_at(2048, 12).rows, usual.rows);  // every other row: 7 in a set
  EXPECT_EQ(rows_at(2048, 8).rows, 7);            // that leave one way for all else
}

// A tile of the width of given panels; of rows in panels it reads whole ones.
TEST(TileCost, PanelsOfBothOperandsSayWhatATileReads) {
  const TileSizes own{.rows = 768, .columns = 768, .lanes = 16, .depth = 1024, .steps = 1024};
  TileSizes lines = own;
  lines.panel_rows = 16;
  for (const int64_t vectors : {2, 3, 4})
    EXPECT_EQ(tile_with(machine(), own, 16 * vectors).vectors, vectors);
  EXPECT_EQ(tile_with(machine(), own, 7).vectors, choose_tile(machine(), own).best.vectors);
  for (const TileCost& t : tiles_of(machine(), own, 2))
    for (const TileCost& of_lines : tiles_of(machine(), lines, 2))
      if (t.rows == of_lines.rows && t.rows < 16) EXPECT_LT(t.stream, of_lines.stream) << t.rows;
}

// 64 rows are whole tiles of 4; those begin again more often than larger ones, which leave a row over.
TEST(TileCost, SumsThatWaitMakeLargeTilesBetter) {
  TileSizes sizes{.rows = 64, .columns = 256, .lanes = 16};
  EXPECT_EQ(choose_tile(machine(), sizes).best.rows, 4);
  sizes.block = 112;
  const TileCost best = choose_tile(machine(), sizes).best;
  EXPECT_GT(best.rows * best.vectors, 16);
  sizes.block = 1 << 20;
  EXPECT_EQ(choose_tile(machine(), sizes).best.rows, 4);
}

TEST(PriceDecisions, EachValueHasItsCost) {
  const ir::Kernel k =
      parsed("x: f32[4, 1024], y: f32[4]",
             "  for i in 0..4 {\n    for j in 0..1024 {\n      block \"sum\" (vi: "
             "parallel 4 = i, vj: reduce 1024 = j) init {\n        y[vi] = 0.0\n"
             "      } body {\n        y[vi] = y[vi] + x[vi, vj]\n      }\n    }\n  }\n");
  LowerOptions options;
  options.machine = machine();
  auto choice = choose_trace(k, {.machine = &options.machine, .constants = {}, .answers = {}});
  ASSERT_TRUE(choice.ok()) << choice.error().to_string();
  price_decisions(choice->decisions, k, {}, options);
  const Decision* vectors = nullptr;
  for (const Decision& d : choice->decisions) {
    EXPECT_EQ(d.microseconds.size(), d.values.size()) << d.name;
    for (size_t i = 0; i < d.values.size(); ++i)
      EXPECT_FALSE(d.values[i] == d.answer && std::isnan(d.microseconds[i])) << d.name;
    if (d.name == "sum.partial_vectors") vectors = &d;
  }
  ASSERT_NE(vectors, nullptr);
  const auto cost_of = [&](int64_t value) {
    const auto at = std::find(vectors->values.begin(), vectors->values.end(), value);
    return vectors->microseconds[static_cast<size_t>(at - vectors->values.begin())];
  };
  // One element after the other; one vector, bound by latency; four of them.
  EXPECT_GT(cost_of(0), 4 * cost_of(1));
  EXPECT_GT(cost_of(1), 1.5 * cost_of(4));
}

}  // namespace
}  // namespace tilewright::passes
