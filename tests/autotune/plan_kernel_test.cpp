// Kernels by themselves: the same task as in their model, and the same results.
#include "passes/plan_kernel.h"

#include <gtest/gtest.h>

#include <cstring>

#include "autotune/database/task.h"
#include "codegen/assemble_executable.h"
#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "runtime/session.h"

namespace tilewright {
namespace {

ir::ConstantRef weights() {
  std::vector<float> w(24 * 40);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 13) / 13 - 0.4f;
  return ir::make_constant_of<float>(DType::kFloat32, {24, 40}, w);
}
ir::Graph model() {
  auto graph = ir::parse_graph(
      "graph g {\n  input x: f32[n, 24]\n  const w: f32[24, 40] = #0\n"
      "  t: f32[n, 40] = matmul(x, w)\n  y: f32[n, 40] = relu(t)\n  output y as \"y\"\n}\n",
      {weights()});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return std::move(*graph);
}
Tensor run(std::shared_ptr<Executable> executable) {
  auto session = Session::create(std::move(executable), {.threads = 1});
  EXPECT_TRUE(session.ok()) << session.error().to_string();
  Tensor x = Tensor::allocate(DType::kFloat32, {7, 24}).value();
  for (int64_t i = 0; i < x.element_count(); ++i)
    x.data_as<float>()[i] = static_cast<float>(i % 11) / 11 - 0.3f;
  std::vector<Tensor> outputs;
  const Status ran = (*session)->run(std::vector<Tensor>{x}, outputs);
  EXPECT_TRUE(ran.ok()) << ran.error().to_string();
  return outputs.at(0);
}

TEST(PlanKernel, IsTheTaskThatItIsInItsModel) {
  const auto lower = lower_options({});
  ASSERT_TRUE(lower.ok());
  std::string text, key;
  const auto keep = [&](ir::Kernel k, const std::set<std::string>& constants) {
    text = ir::to_text(k);
    key = autotune::task_key(k, constants);
    EXPECT_EQ(constants, std::set<std::string>{"in1"});
    return passes::lower_kernel(std::move(k), constants, *lower);
  };
  auto fused = passes::lower_graph(model(), *lower);
  ASSERT_TRUE(fused.ok()) << fused.error().to_string();
  ASSERT_TRUE(passes::lower_fused(*fused, *lower, keep).ok());
  const auto kernel = ir::parse_kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const std::string in_model = key;
  auto program = passes::plan_kernel(*kernel, {{"in1", weights()}}, *lower, keep);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_EQ(key, in_model);
  EXPECT_NE(ir::as_int(program->profile[0].bytes), 0);
  // And it computes what the model does.
  std::vector<ir::Program> programs;
  programs.push_back(std::move(*program));
  const auto alone =
      codegen::assemble_in_memory(std::move(programs), assemble_options({}, lower->machine, "k"));
  ASSERT_TRUE(alone.ok()) << alone.error().to_string();
  const auto whole = compile_in_memory(model(), {});
  ASSERT_TRUE(whole.ok());
  const Tensor a = run(*alone), b = run(*whole);
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0);
}

TEST(PlanKernel, RefusesWhatIsNoFunction) {
  const auto lower = lower_options({});
  ASSERT_TRUE(lower.ok());
  const auto lower_one = [&](ir::Kernel k, const std::set<std::string>& constants) {
    return passes::lower_kernel(std::move(k), constants, *lower);
  };
  const std::pair<const char*, const char*> cases[] = {
      {"kernel k(a: f32[4]) {\n  for i in 0..4 {\n    block \"b\" (v: parallel 4 = i) {\n"
       "      a[v] = a[v] + 1.0\n    }\n  }\n}\n",
       "parameter 'a' is read and written"},
      {"kernel k(a: f32[4], b: f32[n]) scalars(n) {\n  for i in 0..n {\n"
       "    block \"b\" (v: parallel n = i) {\n      b[v] = a[0]\n    }\n  }\n}\n",
       "no input has extent 'n'"}};
  for (const auto& [text, why] : cases) {
    const auto kernel = ir::parse_kernel(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    const auto program = passes::plan_kernel(*kernel, {}, *lower, lower_one);
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().message, why);
  }
}

}  // namespace
}  // namespace tilewright
