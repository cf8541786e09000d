// When work is shared out: by what it takes, what a fork costs, and what caches hand over.
#include "passes/cost/fork_cost.h"

#include <gtest/gtest.h>

#include "ir/text/parser_loops.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {
namespace {

// y = x * w, n elements each.
ir::Kernel product(int64_t n) {
  const std::string e = "[" + std::to_string(n) + "]";
  auto kernel = ir::parse_kernel("kernel k(x: f32" + e + ", w: f32" + e + ", y: f32" + e +
                                 ") {\n  for i in 0.." + std::to_string(n) +
                                 " {\n    block \"b\" (v: parallel " + std::to_string(n) +
                                 " = i) {\n      y[v] = x[v] * w[v]\n    }\n  }\n}\n");
  TW_CHECK(kernel.ok());
  return *kernel;
}
SerialWork work_of(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                   const std::set<std::string>& constants = {}) {
  return serial_work(machine, *find_block(kernel.body, "b")->block,
                     [&](const ir::Buffer& b) { return constants.count(b->name) != 0; });
}

TEST(ForkCost, SmallWorkStaysOnItsThread) {
  const ir::MachineDescription machine;
  double before = 0;
  bool paid = false;
  for (int64_t n = 16; n <= int64_t{1} << 24; n *= 4) {
    const ForkCost cost = fork_cost(machine, work_of(product(n), machine));
    EXPECT_GT(cost.serial, before) << n;
    EXPECT_FALSE(paid && !cost.pays()) << n << ": less work paid";
    before = cost.serial;
    paid = cost.pays();
  }
  EXPECT_TRUE(paid);
  EXPECT_FALSE(fork_cost(machine, work_of(product(4096), machine)).pays());
}

TEST(ForkCost, WhatForksAndCachesCostHasASay) {
  const ir::Kernel kernel = product(1 << 16);
  ir::MachineDescription machine;
  machine.speed.fork_join_us = 0.01;
  machine.speed.handed_over = 1e4;
  EXPECT_TRUE(fork_cost(machine, work_of(kernel, machine)).pays());
  machine.speed.fork_join_us = 100;
  EXPECT_FALSE(fork_cost(machine, work_of(kernel, machine)).pays());
  // Small work that has to be handed its operands, and all but its constants.
  const SerialWork work = work_of(kernel, machine);
  machine.speed.fork_join_us = 0.3 * work.microseconds();
  EXPECT_DOUBLE_EQ(work.handed_bytes, 2 * 4 << 16);
  EXPECT_DOUBLE_EQ(work_of(kernel, machine, {"w"}).handed_bytes, 4 << 16);
  EXPECT_TRUE(fork_cost(machine, work).pays());
  machine.speed.handed_over = 10;
  EXPECT_FALSE(fork_cost(machine, work).pays());
}

// A part of an operand that no cache holds comes from memory, however small the part.
TEST(ForkCost, PartsOfLargeOperandsComeFromMemory) {
  const auto part_of = [](const std::string& n) {
    auto kernel = ir::parse_kernel("kernel k(x: f32[" + n +
                                   "], y: f32[4096]) {\n  for i in 0..4096 {\n    block \"b\" (v: "
                                   "parallel 4096 = i) {\n      y[v] = x[v]\n    }\n  }\n}\n");
    TW_CHECK(kernel.ok());
    return work_of(*kernel, ir::MachineDescription()).memory;
  };
  EXPECT_GT(part_of("1000000000"), 1.5 * part_of("4096"));
}

// Between two products that threads share, they meet anyway.
TEST(ForkCost, PhasesBetweenForksCostLess) {
  ir::MachineDescription machine;
  const SerialWork work = work_of(product(4096), machine);
  machine.speed.fork_join_us = work.microseconds();
  EXPECT_FALSE(fork_cost(machine, work).pays());
  EXPECT_TRUE(fork_cost_between(machine, work).pays());
  machine.speed.fork_join_us = 4 * work.microseconds();
  EXPECT_FALSE(fork_cost_between(machine, work).pays());
}

TEST(ForkCost, CostlyOperationsTakeLonger) {
  const ir::MachineDescription machine;
  EXPECT_TRUE(is_costly(ir::UnaryOp::kExp));
  EXPECT_TRUE(is_costly(ir::UnaryOp::kSqrt));
  EXPECT_FALSE(is_costly(ir::UnaryOp::kNeg));
  EXPECT_FALSE(is_costly(ir::UnaryOp::kFloor));
}

}  // namespace
}  // namespace tilewright::passes
