// Half precision on CPUs that convert it by an instruction and on those that do not: bit for bit
// what the interpreter computes, and no call of a compiler's support library.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "codegen/backend.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

struct Case {
  DType half;
  const char* cpu;
};
class Halves : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!runs_here(GetParam().cpu))
      GTEST_SKIP() << "this machine lacks what " << GetParam().cpu << " has";
  }
  // The same bits, but that any NaN is as good as another.
  void expect_equal(const GraphCall& call) {
    auto oracle = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
    for (const bool schedule : {true, false}) {
      auto runs =
          run_compiled(call.graph, call.inputs, {true, schedule, false, GetParam().cpu}, {1});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      for (size_t k = 0; k < oracle->outputs.size(); ++k)
        for (int64_t i = 0; i < oracle->outputs[k].size(); ++i) {
          const double expected = element(oracle->outputs[k], i), found = element((*runs)[0][k], i);
          if (std::isnan(expected) && std::isnan(found)) continue;
          ASSERT_EQ(found, expected) << "output " << k << ", element " << i;
          ASSERT_EQ(std::signbit(found), std::signbit(expected)) << k << ", " << i;
        }
    }
  }
};

TEST_P(Halves, WidenAllValues) {
  GraphCall call;
  HostTensor all(GetParam().half, {65536});
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(all.bytes.data() + 2 * i, &bits, 2);
  }
  call.output(call.op("cast", {call.input(all)}, {{"to", std::string("f32")}}));
  expect_equal(call);
}

// Each half that is finite, the middle to the next one, and the floats beside that.
TEST_P(Halves, NarrowToTheNearest) {
  const DType t = GetParam().half;
  HostTensor all(DType::kFloat32, {3 * 65536});
  for (uint32_t i = 0; i < 65536; ++i) {
    uint32_t middle = (i << 16) + 0x8000;
    if (t == DType::kFloat16) middle = ((i & 0x8000) << 16) | (((i & 0x7fff) << 13) + 0x37001000);
    // Subnormal numbers of the instruction's operand may count as 0.
    if ((middle & 0x7fffffff) < 0x01000000) middle = 0x3f800000;
    for (uint32_t k = 0; k < 3; ++k) {
      const uint32_t bits = middle + k - 1;
      std::memcpy(all.bytes.data() + 4 * (3 * i + k), &bits, 4);
    }
  }
  GraphCall call;
  call.output(call.op("cast", {call.input(all)}, {{"to", std::string(name(t))}}));
  expect_equal(call);
}

// The middle between two halves, and doubles so near to it that f32 knows no difference.
TEST_P(Halves, NarrowDoublesOnce) {
  const DType t = GetParam().half;
  std::vector<double> values{NAN, HUGE_VAL, -HUGE_VAL, 1e300, -1e300, 1e-300, 0.0, -0.0};
  const int digits = t == DType::kFloat16 ? 11 : 8;
  for (int exponent = -20; exponent < 18; ++exponent)
    for (const double part : {1.0, 1.25, 1.5, 1.75, 1.984375})
      for (const double off : {0.0, 0x1p-40, -0x1p-40, 0x1p-20, -0x1p-20})
        for (const double sign : {1.0, -1.0})
          values.push_back(sign * std::ldexp(part + std::ldexp(1, -digits) + off, exponent));
  GraphCall call;
  const ir::Attributes to{{"to", std::string(name(t))}};
  const auto n = static_cast<int64_t>(values.size());
  call.output(call.op("cast", {call.input(repeated(DType::kFloat64, {n}, values))}, to));
  expect_equal(call);
}

TEST_P(Halves, Compute) {
  const DType t = GetParam().half;
  const HostTensor x = repeated(t, {37}, {1.5, -2.25, 0.0, 3.125, -0.5, 7.0}),
                   y = repeated(t, {37}, {0.75, 2.0, -1.5, 3.0, 64.0});
  GraphCall call;
  const ir::ValueId a = call.input(x), b = call.input(y);
  for (const char* op : {"add", "sub", "mul", "div", "max", "min"})
    call.output(call.op(op, {a, b}));
  for (const char* op : {"fmod", "mod"}) call.output(call.op(op, {a, b}));
  for (const char* op : {"neg", "abs", "floor", "ceil"}) call.output(call.op(op, {a}));
  call.output(call.op("less", {a, b}));
  call.output(call.op("reduce_max", {a}, {{"axes", std::vector<int64_t>{0}}}));
  expect_equal(call);
}

TEST_P(Halves, CallNothing) {
  const DType t = GetParam().half;
  GraphCall call;
  const ir::ValueId a = call.input(repeated(t, {37}, {1}));
  call.output(call.op("add", {a, call.op("cast", {call.input(repeated(DType::kFloat32, {37}, {1}))},
                                         {{"to", std::string(name(t))}})}));
  auto program = lower_graph_for(call.graph, {true, true, false, GetParam().cpu});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  auto backend = codegen::open_backend();
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  auto machine = (*backend)->describe(GetParam().cpu);
  ASSERT_TRUE(machine.ok());
  for (const ir::Kernel& k : program->kernels) {
    auto code = (*backend)->print(k, *machine, codegen::CodeForm::kAssembly);
    ASSERT_TRUE(code.ok());
    EXPECT_EQ(code->find("__"), std::string::npos) << *code;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, Halves,
    testing::Values(Case{DType::kBFloat16, "cooperlake"}, Case{DType::kBFloat16, "x86-64-v4"},
                    Case{DType::kBFloat16, "x86-64-v3"}, Case{DType::kBFloat16, "x86-64"},
                    Case{DType::kFloat16, "x86-64-v4"}, Case{DType::kFloat16, "x86-64-v3"},
                    Case{DType::kFloat16, "x86-64"}),
    [](const auto& info) {
      return std::string(name(info.param.half)) + "_" + as_test_name(info.param.cpu);
    });

}  // namespace
}  // namespace tilewright
