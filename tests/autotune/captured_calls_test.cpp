// What is kept of a run's calls, and that the run does not notice.
#include "autotune/check/captured_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "autotune/check/check_alone.h"
#include "autotune/model_compiler.h"
#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"

namespace tilewright::autotune {
namespace {

// Results that lie in parts of another's memory, rows of an unknown number, integers.
constexpr const char* kGraph = R"(graph g {
  input x: f32[n, 24]
  input i: i32[n, 24]
  const w: f32[24, 40] = #0
  a: f32[n, 40] = matmul(x, w)
  s: f32[n, 40] = softmax(a) {axis = -1}
  r: f32[n, 24] = relu(x)
  c: f32[n, 64] = concat(s, r) {axis = 1}
  k: i32[n, 24] = neg(i)
  d: f32[n, 64] = softmax(c) {axis = -1}
  output c as "c"
  output d as "d"
  output k as "k"
})";

class CaptureCalls : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<float> w(24 * 40);
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 13) / 13 - 0.4f;
    auto graph =
        ir::parse_graph(kGraph, {ir::make_constant_of<float>(DType::kFloat32, {24, 40}, w)});
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const CompileOptions options{.schedule_threads = 2};
    const auto lower = lower_options(options);
    ASSERT_TRUE(lower.ok()) << lower.error().to_string();
    compiler_ =
        std::make_unique<ModelCompiler>(*lower, assemble_options(options, lower->machine, "g"), 2);
    auto fused = passes::lower_graph(std::move(*graph), *lower);
    ASSERT_TRUE(fused.ok()) << fused.error().to_string();
    auto program = compiler_->program(plan_of(*fused), {});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    program_ = std::move(*program);
    auto executable = compiler_->assemble(program_);
    ASSERT_TRUE(executable.ok()) << executable.error().to_string();
    executable_ = *executable;
    Tensor x = Tensor::allocate(DType::kFloat32, {7, 24}).value(),
           i = Tensor::allocate(DType::kInt32, {7, 24}).value();
    for (int64_t k = 0; k < x.element_count(); ++k) {
      x.data_as<float>()[k] = static_cast<float>(k % 11) / 11 - 0.3f;
      i.data_as<int32_t>()[k] = static_cast<int32_t>(k);
    }
    inputs_ = {x, i};
  }
  CapturedCalls capture(int64_t most_bytes) {
    auto calls = capture_calls(program_, executable_, inputs_, compiler_->pool(), most_bytes);
    EXPECT_TRUE(calls.ok()) << calls.error().to_string();
    return calls.ok() ? std::move(*calls) : CapturedCalls();
  }
  std::set<std::string> kernels() const {
    std::set<std::string> names;
    for (const ir::Kernel& k : program_.kernels) names.insert(k.name);
    return names;
  }

  std::unique_ptr<ModelCompiler> compiler_;
  ir::Program program_;
  std::shared_ptr<Executable> executable_;
  std::vector<Tensor> inputs_;
};

TEST_F(CaptureCalls, KernelsComputeTheSameOnThem) {
  const CapturedCalls calls = capture(1 << 20);
  EXPECT_EQ(calls.by_kernel.size(), kernels().size());
  const auto refused = check_alone(program_, kernels(), {&calls, 1}, compiler_->assemble_options(),
                                   {.same_bits = true});
  ASSERT_TRUE(refused.ok()) << refused.error().to_string();
  EXPECT_TRUE(refused->empty()) << refused->begin()->first << ": " << refused->begin()->second;
}

TEST_F(CaptureCalls, HoldWhatTheKernelFindsAndMakes) {
  const CapturedCalls calls = capture(1 << 20);
  size_t integers = 0, rows = 0;
  for (const auto& [name, call] : calls.by_kernel) {
    for (const int64_t scalar : call.scalars) rows += scalar == 7;
    for (const CapturedOperand& o : call.operands) {
      EXPECT_EQ(o.after >= 0, o.written);
      EXPECT_EQ(o.before < 0, o.constant);
      if (o.dtype != DType::kInt32) continue;
      ++integers;
      std::vector<int32_t> before(7 * 24), after(7 * 24);
      ASSERT_EQ(o.bytes, static_cast<int64_t>(before.size() * sizeof(int32_t)));
      std::memcpy(before.data(), calls.contents.data() + o.before, static_cast<size_t>(o.bytes));
      if (!o.written) {
        EXPECT_EQ(before[5], 5);
        continue;
      }
      std::memcpy(after.data(), calls.contents.data() + o.after, static_cast<size_t>(o.bytes));
      EXPECT_EQ(after[5], -5);
      EXPECT_EQ(before[5], -1);  // ones in all bits
    }
  }
  EXPECT_EQ(integers, 2u);
  EXPECT_GT(rows, 0u);
}

// Kernels that write parts of one value each leave the others as they are.
TEST_F(CaptureCalls, LeaveTheRunItsValues) {
  const auto plain = Session::create(executable_, {.pool = compiler_->pool(), .seed = 1});
  ASSERT_TRUE(plain.ok());
  std::vector<Tensor> outputs;
  ASSERT_TRUE((*plain)->run(inputs_, outputs).ok());
  const Tensor& c = outputs[0];
  const CapturedCalls calls = capture(1 << 20);
  size_t writers = 0, readers = 0;
  for (const auto& [name, call] : calls.by_kernel)
    for (const CapturedOperand& o : call.operands) {
      if (o.dtype != DType::kFloat32 || o.bytes != c.bytes()) continue;
      const bool same = std::memcmp(calls.contents.data() + o.before, c.data(),
                                    static_cast<size_t>(o.bytes)) == 0;
      EXPECT_TRUE(o.written || same) << name;
      ++(o.written ? writers : readers);
    }
  EXPECT_GE(writers, 2u);
  EXPECT_EQ(readers, 1u);
}

TEST_F(CaptureCalls, TakeNoMoreThanTheyMay) {
  const size_t all = capture(1 << 20).by_kernel.size();
  const size_t some = capture(6000).by_kernel.size();
  EXPECT_LT(some, all);
  EXPECT_GT(some, 0u);
  EXPECT_TRUE(capture(64).by_kernel.empty());
}

}  // namespace
}  // namespace tilewright::autotune
