// However many threads lower kernels, the program is the same, and so are its errors.
#include <atomic>
#include <mutex>
#include <thread>

#include "ir/module_text/printer_program.h"
#include "tests/passes/plan_check.h"

namespace tilewright::passes {
namespace {

// Kernels before, within and behind control flow; some are called again after others.
constexpr const char* kGraph = R"(graph ahead {
  input c: bool[]
  input n: i64[]
  input x: f32[3, 5]
  a: f32[3, 5] = exp(x) group 0
  b: f32[3, 5] = neg(a) group 1
  d: f32[3, 5] = exp(b) group 2
  m: f32[3, 1] = reduce_max(d) {axes = [1]} group 3
  y: f32[3, 5] = if(c, a) with [
    graph then {
      input v: f32[3, 5]
      t: f32[3, 5] = neg(v) group 0
      w: f32[3, 5] = tanh(t) group 1
      output w as "w"
    }
    graph otherwise {
      input v: f32[3, 5]
      t: f32[3, 5] = relu(v) group 0
      output t as "t"
    }
  ] group 4
  z: f32[3, 5] = loop(n, _, y) {carried = 1, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f32[3, 5]
      e: f32[3, 5] = exp(u) group 0
      l: f32[3, 1] = reduce_min(e) {axes = [1]} group 1
      s: f32[3, 5] = sub(e, l) group 2
      output s as "s"
    }
  ] group 5
  k: f32[3, 1] = reduce_min(z) {axes = [1]} group 6
  r: f32[3, 5] = sub(z, k) group 7
  o: f32[3, 5] = mul(r, m) group 8
  output o as "o"
}
)";

class LowerAhead : public testing::Test {
 protected:
  void SetUp() override {
    auto graph = ir::parse_graph(kGraph);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    graph_ = std::move(*graph);
  }
  ir::Graph graph_;
  LowerOptions options_;
};

TEST_F(LowerAhead, ThreadsChangeNothing) {
  std::string first;
  for (const int threads : {1, 2, 3, 64}) {
    options_.threads = threads;
    std::mutex mutex;
    std::multiset<size_t> told;
    options_.on_kernel = [&](size_t done) {
      std::lock_guard lock(mutex);
      told.insert(done);
    };
    auto program = lower_fused(graph_, options_);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    EXPECT_EQ(told.size(), program->kernels.size());
    EXPECT_EQ(std::set<size_t>(told.begin(), told.end()).size(), told.size());
    const std::string text = ir::to_text(*program);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << threads << " threads";
  }
}

// Somebody else's function may keep what it likes, unless it says that it bears threads.
TEST_F(LowerAhead, OneThreadLowersInTheOrderOfNumbers) {
  options_.threads = 8;
  std::vector<std::string> names;
  const auto here = std::this_thread::get_id();
  auto program = plan_program(
      graph_, options_, [&](ir::Kernel k, const std::set<std::string>&) -> Result<LoweredKernel> {
        EXPECT_EQ(std::this_thread::get_id(), here);
        names.push_back(k.name);
        return LoweredKernel{std::move(k), ""};
      });
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  ASSERT_EQ(names.size(), program->kernels.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], program->kernels[i].name);
}

// Of several that fail, the first in the order of numbers; what is thrown is an error, too.
TEST_F(LowerAhead, ErrorsAreThoseOfOneThread) {
  std::atomic<int> calls{0};
  const auto fails = [&](ir::Kernel k, const std::set<std::string>&) -> Result<LoweredKernel> {
    ++calls;
    if (k.name.starts_with("k1_") || k.name.starts_with("k2_"))
      return unsupported("no " + k.name, "kernel");
    return LoweredKernel{std::move(k), ""};
  };
  for (const int threads : {1, 3}) {
    calls = 0;
    auto program = plan_program(graph_, options_, fails, threads);
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().message, "no k1_neg") << threads << " threads";
    EXPECT_LE(calls, 3);
  }
}

}  // namespace
}  // namespace tilewright::passes
