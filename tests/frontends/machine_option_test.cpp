// A model compiled for a machine that a file describes: schedules follow what it says, results do
// not, and what the CPU at hand cannot run is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "autotune/database/task.h"
#include "codegen/measure/machine_file.h"
#include "frontends/compiler/compiler.h"
#include "frontends/compiler/tune.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/printer_loops.h"
#include "runtime/device_cpu.h"
#include "runtime/session.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

constexpr int64_t kRows = 96, kDepth = 1024, kColumns = 512;

ir::Graph model() {
  std::vector<float> weights(kDepth * kColumns);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 17) / 16 - 0.5f;
  auto graph = ir::parse_graph(
      "graph g {\n  input x: f32[96, 1024]\n  const w: f32[1024, 512] = #0\n"
      "  t: f32[96, 512] = matmul(x, w)\n  y: f32[96, 512] = softmax(t) {axis = 1}\n"
      "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {kDepth, kColumns}, weights)});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *graph;
}

class MachineOption : public testing::Test {
 protected:
  CompileOptions options(const std::string& text) {
    write_file(folder_ / "machine.json", text);
    CompileOptions o;
    o.machine = folder_ / "machine.json";
    return o;
  }
  // The kernels as flat loops.
  std::string loops(const CompileOptions& o) {
    const auto lower = lower_options(o);
    EXPECT_TRUE(lower.ok()) << lower.error().to_string();
    if (!lower.ok()) return {};
    const auto program = passes::lower(model(), *lower);
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    std::string text;
    if (program.ok())
      for (const ir::Kernel& k : program->kernels) text += ir::to_text(k);
    return text;
  }
  std::vector<float> results(const CompileOptions& o) {
    Tensor x = Tensor::allocate(DType::kFloat32, {kRows, kDepth}).value();
    for (int64_t i = 0; i < x.element_count(); ++i)
      x.data_as<float>()[i] = std::sin(static_cast<float>(i));
    auto executable = compile_in_memory(model(), o);
    EXPECT_TRUE(executable.ok()) << executable.error().to_string();
    if (!executable.ok()) return {};
    auto session = Session::create(*executable, {});
    EXPECT_TRUE(session.ok()) << session.error().to_string();
    std::vector<Tensor> outputs;
    const std::vector<Tensor> inputs{x};
    const Status ran = (*session)->run(inputs, outputs);
    EXPECT_TRUE(ran.ok()) << ran.error().to_string();
    const float* y = outputs[0].data_as<float>();
    return {y, y + outputs[0].element_count()};
  }
  ScratchFolder folder_;
};

TEST_F(MachineOption, SchedulesFollowIt) {
  const std::string cpu = R"("cpu": "x86-64-v4")";
  const std::string usual = loops(options("{" + cpu + "}"));
  EXPECT_EQ(loops(options("{" + cpu + R"(, "l2_bytes": 1048576})")), usual);
  EXPECT_NE(loops(options("{" + cpu + R"(, "l2_bytes": 65536})")), usual);
  EXPECT_NE(loops(options("{" + cpu + R"(, "vector_bytes": 32})")), usual);
  EXPECT_NE(loops(options("{" + cpu + R"(, "vector_registers": 16})")), usual);
}

// Fewer and narrower vectors, and caches of every size.
TEST_F(MachineOption, ResultsDoNot) {
  const std::vector<float> usual = results({});
  for (const char* text :
       {R"({"vector_bytes": 16, "vector_registers": 16, "has_masks": false, "has_fma": false})",
        R"({"vector_registers": 16})", R"({"l1_bytes": 4096, "l2_bytes": 4096, "l3_bytes": 4096})",
        R"({"l1_bytes": 5000, "l2_bytes": 77777, "l3_bytes": 77777})",
        R"({"l1_bytes": 1099511627776, "l2_bytes": 1099511627776, "l3_bytes": 1099511627776})"}) {
    const std::vector<float> found = results(options(text));
    ASSERT_EQ(found.size(), usual.size()) << text;
    for (size_t i = 0; i < usual.size(); ++i) ASSERT_NEAR(found[i], usual[i], 1e-5) << text;
  }
}

TEST_F(MachineOption, WhatTheBackendCannotDoIsRefused) {
  const auto refusal = [&](const std::string& text) {
    const auto lower = lower_options(options(text));
    return lower.ok() ? std::string() : lower.error().message;
  };
  EXPECT_EQ(refusal(R"({"features": ["mmx"]})"),
            "'features' has 'mmx', which generated code does not use");
  const std::string wide = "' needs the features avx512f, avx512vl, avx512bw and avx512dq";
  EXPECT_EQ(refusal(R"({"cpu": "x86-64-v3", "vector_bytes": 64})"), "'vector_bytes" + wide);
  EXPECT_EQ(refusal(R"({"cpu": "x86-64-v3", "vector_registers": 32})"), "'vector_registers" + wide);
  EXPECT_EQ(refusal(R"({"cpu": "x86-64-v3", "has_masks": true})"), "'has_masks" + wide);
  EXPECT_EQ(refusal(R"({"cpu": "x86-64-v2", "vector_bytes": 32})"),
            "'vector_bytes' needs the features avx");
  EXPECT_EQ(refusal(R"({"cpu": "x86-64-v2", "has_fma": true})"), "'has_fma' needs the feature fma");
}

TEST_F(MachineOption, TuningRunsOnTheCpuAtHand) {
  if (cpu_has("amx-tile")) GTEST_SKIP() << "this CPU has the feature that is to be missing";
  CompileOptions o = options(R"({"cpu": "sapphirerapids"})");
  o.database = folder_ / "tuned.jsonl";
  const auto result = tune(OnnxModel(), {}, {}, o, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(result.error().message.find("lacks "), std::string::npos) << result.error().message;
}

}  // namespace
}  // namespace tilewright
