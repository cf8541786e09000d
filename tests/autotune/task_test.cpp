// Which kernels are one task: those of equal structure, whatever a model calls its values.
#include "autotune/database/task.h"

#include <gtest/gtest.h>

#include "ir/module_text/parser_graph.h"
#include "passes/lower.h"
#include "passes/plan_program.h"

namespace tilewright::autotune {
namespace {

using Key = std::string(const ir::Kernel&, const std::set<std::string>&);

// The keys of a graph's kernels: relu(x * w), with names of their own.
std::vector<std::string> keys_of(const std::string& x, const std::string& w, const std::string& y,
                                 int64_t columns, bool constant = true, Key* key = task_key) {
  const std::string type = "f32[64, " + std::to_string(columns) + "]";
  const std::vector<ir::ConstantRef> constants{
      ir::make_constant(DType::kFloat32, {64, columns},
                        std::vector<uint8_t>(static_cast<size_t>(64 * columns * 4), 1))};
  auto graph = ir::parse_graph(
      "graph g {\n  input '" + x + "': f32[8, 64]\n  " +
          (constant ? "const '" + w + "': " + type + " = #0" : "input '" + w + "': " + type) +
          "\n  t: f32[8, " + std::to_string(columns) + "] = matmul('" + x + "', '" + w + "')\n  '" +
          y + "': f32[8, " + std::to_string(columns) + "] = relu(t)\n  output '" + y +
          "' as \"out\"\n}\n",
      constants);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  passes::LowerOptions options;
  options.fold = false;
  auto lowered = passes::lower_graph(*graph, options);
  EXPECT_TRUE(lowered.ok()) << lowered.error().to_string();
  std::vector<std::string> keys;
  auto program = passes::plan_program(
      *lowered, options, [&](ir::Kernel k, const std::set<std::string>& known) {
        keys.push_back(key(k, known));
        return Result<passes::LoweredKernel>(passes::LoweredKernel{std::move(k), ""});
      });
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return keys;
}

TEST(TaskKey, NamesHaveNoSay) {
  const auto keys = keys_of("x", "w", "y", 32);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_TRUE(keys[0].starts_with("matmul_relu-")) << keys[0];
  // Names that operators' blocks and temporaries have, too.
  EXPECT_EQ(keys_of("matmul", "relu", "matmul_1", 32), keys);
  EXPECT_EQ(keys_of("in1", "out0", "in0", 32), keys);
}
TEST(TaskKey, ShapesAndConstantsHave) {
  const auto keys = keys_of("x", "w", "y", 32);
  EXPECT_NE(keys_of("x", "w", "y", 33), keys);
  EXPECT_NE(keys_of("x", "w", "y", 32, false), keys);
}
TEST(FamilyKey, NumbersHaveNoSay) {
  const auto keys = keys_of("x", "w", "y", 32, true, family_key);
  EXPECT_EQ(keys_of("a", "b", "c", 1057, true, family_key), keys);
  EXPECT_NE(keys_of("x", "w", "y", 32, false, family_key), keys);
  EXPECT_TRUE(keys[0].starts_with("matmul_relu-")) << keys[0];
}
TEST(DeviceKey, SaysWhatTimesDependOn) {
  ir::MachineDescription m;
  const std::string key = device_key(m, Numerics::kStandard);
  EXPECT_TRUE(key.starts_with("x86-64-v3-")) << key;
  EXPECT_TRUE(key.ends_with(", 1 thread, standard")) << key;
  m.speed.clock_ghz = 9;  // what was measured changes from day to day
  EXPECT_EQ(device_key(m, Numerics::kStandard), key);
  m.speed.given = true;  // what a file says does not
  EXPECT_NE(device_key(m, Numerics::kStandard), key);
  const auto differs = [&](auto change) {
    ir::MachineDescription other;
    change(other);
    EXPECT_NE(device_key(other, Numerics::kStandard), key);
  };
  differs([](auto& o) { o.l1_bytes *= 2; });
  differs([](auto& o) { o.l2_bytes *= 2; });
  differs([](auto& o) { o.l3_bytes *= 2; });
  differs([](auto& o) { o.vector_bytes = 16; });
  differs([](auto& o) { o.vector_registers = 32; });
  differs([](auto& o) { o.has_masks = true; });
  differs([](auto& o) { o.has_fma = false; });
  differs([](auto& o) { o.features = {"avx"}; });
  EXPECT_NE(device_key({}, Numerics::kExact), key);
}

}  // namespace
}  // namespace tilewright::autotune
