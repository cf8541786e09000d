// The passes from blocks to flat loops, each on the cases of its file.
#include "passes/loops/loop_passes.h"

#include <gtest/gtest.h>

#include "passes/lower.h"
#include "tests/passes/golden.h"

namespace tilewright::passes {
namespace {

using ir::Stage;
using ir::Stmt;

template <auto pass>
ApplySteps on_kernel() {
  return [](const ir::Kernel& k, const std::string&) -> Result<ir::Kernel> {
    ir::Kernel after = k;
    after.body = pass(k.body);
    return after;
  };
}
constexpr auto kSimplify = [](const Stmt& s) { return simplify_loops(s); };

TEST(LoopPasses, AutoVectorize) {  // on 8 lanes of f32
  check_golden("auto_vectorize", {Stage::kScheduled, Stage::kScheduled},
               [](const ir::Kernel& k, const std::string&) -> Result<ir::Kernel> {
                 ir::Kernel after = k;
                 after.body = auto_vectorize(k.body, ir::MachineDescription{});
                 return after;
               });
}
TEST(LoopPasses, LowerBlocks) {
  check_golden("lower_blocks", {Stage::kScheduled, Stage::kScheduled}, on_kernel<lower_blocks>());
}
TEST(LoopPasses, PlaceBuffers) {
  check_golden("place_buffers", {Stage::kScheduled, Stage::kScheduled}, on_kernel<place_buffers>());
}
TEST(LoopPasses, FlattenBuffers) {
  check_golden("flatten_buffers", {Stage::kScheduled, Stage::kFlat},
               [](const ir::Kernel& k, const std::string&) -> Result<ir::Kernel> {
                 return flatten_buffers(k);
               });
}
TEST(LoopPasses, SimplifyLoops) {
  check_golden("simplify_loops", {Stage::kScheduled, Stage::kScheduled}, on_kernel<kSimplify>());
}
TEST(LoopPasses, PartitionTails) {
  check_golden("partition_tails", {Stage::kFlat, Stage::kFlat}, on_kernel<partition_tails>());
}
TEST(LoopPasses, UnswitchLoops) {
  check_golden("unswitch_loops", {Stage::kFlat, Stage::kFlat}, on_kernel<unswitch_loops>());
}
TEST(LoopPasses, PeelBorders) {
  check_golden("peel_borders", {Stage::kFlat, Stage::kFlat}, on_kernel<peel_borders>());
}
TEST(LoopPasses, VectorizeLoops) {
  check_golden("vectorize_loops", {Stage::kFlat, Stage::kFlat}, on_kernel<vectorize_loops>());
}
TEST(LoopPasses, UnguardLoads) {
  check_golden("unguard_loads", {Stage::kFlat, Stage::kFlat}, on_kernel<unguard_loads>());
}
TEST(LoopPasses, LowerDots) {
  check_golden("lower_dots", {Stage::kFlat, Stage::kFlat}, on_kernel<lower_dots>());
}
TEST(LoopPasses, UnrollLoops) {
  check_golden("unroll_loops", {Stage::kFlat, Stage::kFlat}, on_kernel<unroll_loops>());
}
TEST(LoopPasses, GroupAccesses) {
  check_golden("group_accesses", {Stage::kFlat, Stage::kFlat}, on_kernel<group_accesses>());
}
TEST(LoopPasses, FormPhases) {
  check_golden("form_phases", {Stage::kFlat, Stage::kFlat},
               [](const ir::Kernel& k, const std::string&) { return form_phases(k); });
}
TEST(LoopPasses, PlanWorkspace) {
  check_golden("plan_workspace", {Stage::kFlat, Stage::kPlanned},
               [](const ir::Kernel& k, const std::string&) { return plan_workspace(k); });
}
TEST(LoopPasses, FactorLongSums) {
  check_golden("factor_long_sums", {Stage::kFlat, Stage::kFlat},
               [](const ir::Kernel& k, const std::string&) { return factor_long_sums(k); });
}
// All of them in a row.
TEST(LoopPasses, LowerToFlat) {
  check_golden("lower_to_flat", {Stage::kScheduled, Stage::kPlanned},
               [](const ir::Kernel& k, const std::string&) { return lower_to_flat(k, {}); });
}

}  // namespace
}  // namespace tilewright::passes
