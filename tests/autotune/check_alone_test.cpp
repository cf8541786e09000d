// Candidates are called in a process of their own: whatever is wrong with one is told, and the others are
// checked all the same.
#include "autotune/check/check_alone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "autotune/check/compare_elements.h"
#include "autotune/model_compiler.h"
#include "frontends/compiler/compiler.h"
#include "ir/interpreter/interpreter.h"
#include "ir/loops/layout.h"
#include "ir/loops/make.h"
#include "ir/loops/rewrite.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/printer_loops.h"

namespace tilewright::autotune {
namespace {

// A convolution with a bias, a product, a sum along rows and one along columns.
ir::Graph graph() {
  const auto numbers = [](Shape shape) {
    std::vector<float> w(static_cast<size_t>(element_count(shape).value()));
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 7 % 17) / 17 - 0.4f;
    return ir::make_constant_of<float>(DType::kFloat32, shape, w);
  };
  auto g = ir::parse_graph(R"(graph g {
  input x: f32[1, 5, 13, 11]
  const w: f32[19, 5, 3, 3] = #0
  const bias: f32[19, 1, 1] = #1
  const m: f32[11, 37] = #2
  a: f32[1, 19, 13, 11] = conv(x, w) {pads = [1, 1, 1, 1], strides = [1, 1]} from "conv"
  b: f32[1, 19, 13, 11] = add(a, bias) from "bias"
  c: f32[1, 19, 13, 37] = matmul(b, m) from "product"
  d: f32[1, 19, 13, 37] = softmax(c) {axis = -1} from "softmax"
  e: f32[1, 19, 37] = reduce_sum(d) {axes = [2], keepdims = 0} from "columns"
  output e as "e"
})",
                           {numbers({19, 5, 3, 3}), numbers({19, 1, 1}), numbers({11, 37})});
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  return std::move(*g);
}

// The model compiled as usual, with a call of each kernel.
class CheckAlone : public testing::Test {
 protected:
  void SetUp() override {
    const auto lower = lower_options({.schedule_threads = 2});
    ASSERT_TRUE(lower.ok()) << lower.error().to_string();
    compiler_ = std::make_unique<ModelCompiler>(*lower, autotune_options(*lower), 2);
    const auto fused = passes::lower_graph(graph(), *lower);
    ASSERT_TRUE(fused.ok()) << fused.error().to_string();
    auto program = compiler_->program(plan_of(*fused), {});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    program_ = std::move(*program);
    const auto executable = compiler_->assemble(program_);
    ASSERT_TRUE(executable.ok()) << executable.error().to_string();
    Tensor x = Tensor::allocate(DType::kFloat32, {1, 5, 13, 11}).value();
    for (int64_t i = 0; i < x.element_count(); ++i)
      x.data_as<float>()[i] = static_cast<float>(i % 23) / 23;
    const std::vector<Tensor> inputs{x};
    auto calls = capture_calls(program_, *executable, inputs, compiler_->pool());
    ASSERT_TRUE(calls.ok()) << calls.error().to_string();
    calls_ = std::move(*calls);
  }
  static codegen::AssembleOptions autotune_options(const passes::LowerOptions& lower) {
    return assemble_options({.schedule_threads = 2}, lower.machine, "g");
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const ir::Kernel& k : program_.kernels) all.insert(k.name);
    return all;
  }
  std::map<std::string, std::string> check(const ir::Program& program, CheckOptions options = {}) {
    const auto refused =
        check_alone(program, names(), {&calls_, 1}, compiler_->assemble_options(), options);
    EXPECT_TRUE(refused.ok()) << refused.error().to_string();
    return refused.ok() ? *refused : std::map<std::string, std::string>();
  }
  ir::Kernel& kernel(ir::Program& program, const std::string& part) {
    for (ir::Kernel& k : program.kernels)
      if (k.name.find(part) != std::string::npos) return k;
    ADD_FAILURE() << part;
    return program.kernels[0];
  }

  std::unique_ptr<ModelCompiler> compiler_;
  ir::Program program_;
  CapturedCalls calls_;
};

TEST_F(CheckAlone, WhatIsRightPasses) {
  ASSERT_EQ(calls_.by_kernel.size(), program_.kernels.size());
  EXPECT_GT(calls_.by_kernel.size(), 2u);
  EXPECT_TRUE(check(program_).empty());
  EXPECT_TRUE(check(program_, {.same_bits = true}).empty());
}

// Stores to the kernel's parameters, changed.
class Spoil : public ir::Rewriter {
 public:
  using ir::Rewriter::rewrite;
  explicit Spoil(std::function<void(ir::Store&)> change) : change_(std::move(change)) {}
  ir::Stmt rewrite(const ir::Stmt& s) override {
    const ir::Stmt r = ir::Rewriter::rewrite(s);
    const auto* store = r ? r.as<ir::Store>() : nullptr;
    if (!store || store->buffer->scope != ir::Scope::kParam) return r;
    ir::Store changed = *store;
    change_(changed);
    return ir::store(changed.buffer, changed.indices, changed.value, changed.mask,
                     changed.store_kind);
  }

 private:
  const std::function<void(ir::Store&)> change_;
};

TEST_F(CheckAlone, EachFaultIsToldAndTheOthersAreChecked) {
  const auto spoilt = [&](const std::string& part, const std::function<void(ir::Store&)>& change) {
    ir::Program p = program_;
    ir::Kernel& k = kernel(p, part);
    k.body = Spoil(change).rewrite(k.body);
    const auto refused = check(p, {.seconds = 0.5});
    EXPECT_EQ(refused.size(), 1u);
    return refused.empty() ? "" : refused.begin()->first + ": " + refused.begin()->second;
  };
  EXPECT_THAT(spoilt("softmax", [](ir::Store& s) { s.value = s.value + s.value; }),
              testing::HasSubstr("wrong: "));
  EXPECT_THAT(spoilt("conv",
                     [](ir::Store& s) {
                       s.indices[0] = s.indices[0] + ir::broadcast(ir::int_imm(int64_t{1} << 24),
                                                                   s.indices[0].lanes());
                     }),
              testing::HasSubstr(": ended "));  // a sanitizer reports and exits
  // One element too far touches the page behind the last one, or what pads it.
  EXPECT_THAT(spoilt("reduce_sum",
                     [](ir::Store& s) {
                       s.indices[0] =
                           s.indices[0] + ir::broadcast(ir::int_imm(1), s.indices[0].lanes());
                     }),
              testing::AnyOf(testing::HasSubstr("wrong: "), testing::HasSubstr(": ended ")));
}

// What never ends is ended, and what wants four terabytes gets none; both are told, and cost no more
// than their limits.
TEST_F(CheckAlone, HangsAndHungerEnd) {
  ir::Program hanging = program_;
  ir::Kernel& k = kernel(hanging, "softmax");
  k.body = ir::for_loop(ir::Var("again"), ir::int_imm(int64_t{1} << 50), k.body);
  auto refused = check(hanging, {.seconds = 0.3});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused.begin()->second, testing::HasSubstr("took longer than 0.3"));
  ir::Program hungry = program_;
  kernel(hungry, "softmax").workspace.call = ir::int_imm(int64_t{1} << 42);
  refused = check(hungry);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused.begin()->second, testing::HasSubstr("more memory"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The system says no; under sanitizers it is not asked to.
TEST_F(CheckAlone, ACandidateHasAsMuchMemoryAsItIsGiven) {
  ir::Program hungry = program_;
  kernel(hungry, "softmax").workspace.call = ir::int_imm(int64_t{256} << 20);
  EXPECT_TRUE(check(hungry).empty());
  const auto refused = check(hungry, {.most_bytes = int64_t{128} << 20});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused.begin()->second, testing::HasSubstr("more memory"));
}
#endif

TEST_F(CheckAlone, ManyFaultsAtOnceAreToldApart) {
  ir::Program p = program_;
  ir::Kernel &hangs = kernel(p, "conv"), &crashes = kernel(p, "matmul"),
             &wrong = kernel(p, "softmax");
  hangs.body = ir::for_loop(ir::Var("again"), ir::int_imm(int64_t{1} << 50), hangs.body);
  crashes.body = Spoil([](ir::Store& s) {
                   s.indices[0] = s.indices[0] + ir::broadcast(ir::int_imm(int64_t{1} << 24),
                                                               s.indices[0].lanes());
                 }).rewrite(crashes.body);
  wrong.body = Spoil([](ir::Store& s) { s.value = s.value + s.value; }).rewrite(wrong.body);
  kernel(p, "reduce_sum").workspace.call = ir::int_imm(int64_t{1} << 42);
  const auto refused = check(p, {.seconds = 0.3});
  ASSERT_EQ(refused.size(), 4u);
  EXPECT_THAT(refused.at(hangs.name), testing::HasSubstr("took longer"));
  EXPECT_THAT(refused.at(crashes.name), testing::HasSubstr("signal 11"));
  EXPECT_THAT(refused.at(wrong.name), testing::HasSubstr("wrong: "));
  EXPECT_THAT(refused.at(kernel(p, "reduce_sum").name), testing::HasSubstr("more memory"));
}

// One fault in flat loops: a bound, a tail's condition, an initial value or an accumulator.
class Mutant : public ir::Rewriter {
 public:
  using ir::Rewriter::rewrite;
  explicit Mutant(int site) : site_(site) {}
  int sites() const { return seen_; }
  ir::Stmt rewrite(const ir::Stmt& s) override {
    const ir::Stmt r = ir::Rewriter::rewrite(s);
    if (!r) return r;
    if (const auto* f = r.as<ir::For>(); f && is_here())
      return ir::for_loop(f->var, f->extent - 1, f->body, f->loop_kind);
    if (const auto* i = r.as<ir::If>(); i && is_here()) return i->then;
    const auto* store = r.as<ir::Store>();
    if (!store || !is_here()) return r;
    const ir::Expr one = ir::broadcast(ir::constant(1, store->buffer->dtype), store->value.lanes());
    const auto* sum = store->value.as<ir::Binary>();
    const bool adds = sum && sum->op == ir::BinaryOp::kAdd;
    return ir::store(store->buffer, store->indices, adds ? sum->b : store->value + one, store->mask,
                     store->store_kind);
  }

 private:
  bool is_here() { return seen_++ == site_; }
  const int site_;
  int seen_ = 0;
};

// Does the kernel still compute what the call did? Nothing: it leaves its operands.
std::optional<bool> is_right(const ir::Kernel& kernel, const ir::Program& program,
                             const CapturedCalls& captured) {
  const CapturedCall& call = captured.by_kernel.at(kernel.name);
  const auto& instruction =
      std::get<ir::CallInstruction>(program.blocks[call.block][call.instruction]);
  std::vector<std::vector<uint8_t>> operands;
  std::vector<void*> pointers;
  for (size_t p = 0; p < call.operands.size(); ++p) {
    const ir::ProgramBuffer& b = program.buffers[static_cast<size_t>(instruction.buffers[p])];
    const CapturedOperand& o = call.operands[p];
    const uint8_t* before = captured.contents.data() + o.before;
    operands.push_back(
        o.constant ? ir::pack(b.constant->data, b.constant->dtype, b.constant->shape, b.layout)
                   : std::vector<uint8_t>(before, before + o.bytes));
  }
  for (auto& o : operands) pointers.push_back(o.data());
  if (!ir::interpret(kernel, pointers, call.scalars, {.check_uninitialised = false}).ok())
    return std::nullopt;
  for (size_t p = 0; p < operands.size(); ++p) {
    const CapturedOperand& o = call.operands[p];
    const int64_t count = o.bytes / byte_size(o.dtype);
    if (o.written && first_difference(o.dtype, operands[p].data(),
                                      captured.contents.data() + o.after, count, false))
      return false;
  }
  return true;
}

// Every kernel of a program is another mutant. The interpreter says which of them are still right, so
// that the process has to find exactly the others: by their results, or by where they write.
TEST_F(CheckAlone, MutantsOfFlatLoopsAreRefused) {
  constexpr int kWanted = 100;
  std::mt19937 random(1);
  int wrong = 0;
  for (int round = 0; wrong < kWanted && round < 200; ++round) {
    ir::Program mutants = program_;
    std::map<std::string, std::optional<bool>> right;
    for (ir::Kernel& k : mutants.kernels) {
      Mutant count(-1);
      count.rewrite(k.body);
      ASSERT_GT(count.sites(), 0);
      k.body =
          Mutant(static_cast<int>(random() % static_cast<unsigned>(count.sites()))).rewrite(k.body);
      right[k.name] = is_right(k, program_, calls_);
    }
    const auto refused = check(mutants, {.seconds = 1});
    for (const ir::Kernel& k : mutants.kernels) {
      if (!right[k.name]) continue;
      EXPECT_EQ(refused.count(k.name), *right[k.name] ? 0u : 1u) << ir::to_text(k);
      wrong += !*right[k.name];
    }
  }
  EXPECT_GE(wrong, kWanted);
}

TEST_F(CheckAlone, AWorkerThatIsNotThereIsAnError) {
  const auto refused = check_alone(program_, names(), {&calls_, 1}, compiler_->assemble_options(),
                                   {.worker = "/nowhere/tilewright-check"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace tilewright::autotune
