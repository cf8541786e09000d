// A session by what its callers see: results for every size, errors, memory, threads. The
// executables are written by hand (session_models.h), so that no compiler takes part.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/runtime/session_calls.h"
#include "tests/runtime/session_models.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// Counts what goes through operator new, for the test of the steady state.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace tilewright::testing {
namespace {

// More than one size with the same session: memory planned for one must do for the next, larger or
// smaller, and 0 is a size.
TEST(Session, CallsKernelsForEverySizeOfASymbol) {
  for (int threads : {1, 2, 3}) {
    auto session = open(add_relu_model(), {.threads = threads});
    for (int64_t batch : {1, 2, 0, 7, 1, 20, 21, 22, 23, 24, 25, 26, 27, 28, 1}) {
      std::vector<float> x(batch * 4);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i) - 5);
      std::vector<Tensor> in{floats({batch, 4}, x)}, out;
      ASSERT_TRUE(session->run(in, out).ok());
      ASSERT_EQ(out[0].shape(), (Shape{batch, 4}));
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(out[0].data_as<float>()[i], std::max(x[i], 0.0f) + float(i % 4 + 1));
    }
  }
}

TEST(Session, DescribesItsValues) {
  auto session = open(add_relu_model());
  ASSERT_EQ(session->inputs().size(), 1u);
  EXPECT_EQ(session->inputs()[0].name, "x");
  EXPECT_EQ(session->inputs()[0].extents, (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(session->inputs()[0].dim_names, (std::vector<std::string>{"batch", ""}));
  EXPECT_EQ(session->outputs()[0].name, "y");
}

// Which kernels ran is read from the profile, by the names of their nodes.
TEST(Session, TakesTheSpecialisedVariantFirst) {
  auto session = open(add_relu_two_variants(), {.threads = 1, .profile = true});
  std::vector<Tensor> two{floats({2, 4}, std::vector<float>(8, 1))},
      three{floats({3, 4}, std::vector<float>(12, 1))}, out;
  ASSERT_TRUE(session->run(two, out).ok());
  ASSERT_TRUE(session->run(three, out).ok());
  int64_t specialised = 0, general = 0;
  for (const Profiler::Row& r : session->profile().rows()) {
    if (r.nodes == "specialised") specialised += r.calls;
    if (r.nodes == "relu_0") general += r.calls;
  }
  EXPECT_EQ(specialised, 1);
  EXPECT_EQ(general, 1);
  EXPECT_NE(session->profile().table().find("add_bias: add_0"), std::string::npos);
  EXPECT_NE(session->profile().trace_json().find("\"name\":\"relu\""), std::string::npos);
}

// Old calls would otherwise add to the new ones; switched off, the profile stays to be read.
TEST(Session, ForgetsItsProfileWhenProfilingStartsAgain) {
  auto session = open(add_relu_model(), {.threads = 1, .profile = true});
  std::vector<Tensor> in{floats({3, 4}, std::vector<float>(12, 1))}, out;
  for (int i = 0; i < 2; ++i) {
    session->set_profiling(true);
    ASSERT_TRUE(session->run(in, out).ok());
    for (const Profiler::Row& r : session->profile().rows()) EXPECT_EQ(r.calls, 1);
  }
  session->set_profiling(false);
  EXPECT_FALSE(session->profile().rows().empty());
}

// The promise of session.h to latency-bound callers: the second run of a size touches no allocator.
TEST(Session, AllocatesNothingInTheSteadyState) {
  auto session = open(add_relu_model());
  std::vector<Tensor> in{floats({3, 4}, std::vector<float>(12, 1))}, out;
  ASSERT_TRUE(session->run(in, out).ok());
  void* data = out[0].data();
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->run(in, out).ok());
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(out[0].data(), data);
}

// A caller's memory is used when type and shape fit, whatever its alignment, and left alone else.
TEST(Session, WritesGivenOutputsAndReplacesOthers) {
  auto session = open(add_relu_model());
  alignas(64) float room[16] = {};
  const Tensor x = floats({2, 4}, std::vector<float>(8, 1));
  for (int offset : {0, 1}) {  // the second is not aligned to 64 bytes
    std::vector<Tensor> out{Tensor::borrow(DType::kFloat32, {2, 4}, room + offset)};
    ASSERT_TRUE(session->run(std::vector{x}, out).ok());
    EXPECT_EQ(out[0].data(), room + offset);
    EXPECT_EQ(room[offset], 2);
    EXPECT_EQ(room[offset + 7], 5);
  }
  std::vector<Tensor> out{Tensor::borrow(DType::kFloat32, {4, 2}, room)};
  ASSERT_TRUE(session->run(std::vector{x}, out).ok());
  EXPECT_NE(out[0].data(), room);
  EXPECT_EQ(out[0].shape(), (Shape{2, 4}));
}

TEST(Session, AnOutputMayLieOverAnInput) {
  auto session = open(add_relu_model());
  const Tensor x = floats({2, 4}, {1, -1, 1, -1, 5, 6, 7, 8});
  std::vector<Tensor> out{Tensor::borrow(DType::kFloat32, {2, 4}, x.data())};
  ASSERT_TRUE(session->run(std::vector{x}, out).ok());
  EXPECT_EQ(values<float>(x), (std::vector<float>{2, 2, 4, 4, 6, 8, 10, 12}));
}

// y = x + x, then z = x * x, with x of three elements; its first input, a bool, is not read.
Executable twice_and_square() {
  Executable e = branch_model();
  Variant& v = e.variants[0];
  v.buffers.push_back(v.buffers[2]);
  v.buffers[3].name = "z";
  v.outputs = {2, 3};
  v.blocks = {{call(0, {1, 2}), call(1, {1, 3})}};
  return e;
}

// What an output would overwrite may still be read by a later kernel: the whole input, its
// beginning, its end.
TEST(Session, AnOutputOverAnInputIsFilledLast) {
  for (const int x_at : {16, 14, 18}) {
    alignas(64) float room[32] = {};
    const float elements[3] = {1, 2, 3};
    std::memcpy(room + x_at, elements, sizeof(elements));
    auto session = open(twice_and_square());
    std::vector<Tensor> out{Tensor::borrow(DType::kFloat32, {3}, room + 16), {}};
    const Status s = session->run(
        std::vector{truth(true), Tensor::borrow(DType::kFloat32, {3}, room + x_at)}, out);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    EXPECT_EQ(out[0].data(), room + 16);
    EXPECT_EQ(values<float>(out[0]), (std::vector<float>{2, 4, 6})) << x_at;
    EXPECT_EQ(values<float>(out[1]), (std::vector<float>{1, 4, 9})) << x_at;
  }
}

// An input that is a result, too, is copied before another result covers it.
TEST(Session, AnInputThatIsAResultIsCopiedFirst) {
  Executable e = add_relu_model();
  e.variants[0].outputs = {3, 0};
  auto session = open(std::move(e));
  const Tensor x = floats({1, 4}, {1, -2, 3, -4});
  std::vector<Tensor> out{Tensor::borrow(DType::kFloat32, {1, 4}, x.data()), {}};
  const Status s = session->run(std::vector{x}, out);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(values<float>(out[0]), (std::vector<float>{2, 2, 6, 4}));
  EXPECT_EQ(values<float>(out[1]), (std::vector<float>{1, -2, 3, -4}));
}

// Kernels may write more than the caller's tensor holds: storage that another value shares.
TEST(Session, AnOutputSmallerThanItsStorageIsCopied) {
  Executable e = twice_and_square();
  Variant& v = e.variants[0];
  v.buffers[2].dims = {constant_size(2)};
  v.buffers.push_back(
      make_buffer("wide", DType::kFloat32, {constant_size(3)}, BufferKind::kTemporary));
  v.buffers.back().alias_of = 2;
  v.blocks = {{call(0, {1, 4}), call(1, {1, 3})}};
  auto session = open(std::move(e));
  alignas(64) float room[16];
  std::fill(std::begin(room), std::end(room), -1.0f);
  std::vector<Tensor> out{Tensor::borrow(DType::kFloat32, {2}, room), {}};
  const Status s = session->run(std::vector{truth(true), floats({3}, {1, 2, 3})}, out);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(std::vector<float>(room, room + 4), (std::vector<float>{2, 4, -1, -1}));
  EXPECT_EQ(values<float>(out[1]), (std::vector<float>{1, 4, 9}));
}

TEST(Session, OutputsThatAliasAreCopied) {
  Executable e = add_relu_model();
  Variant& v = e.variants[0];
  v.buffers.push_back(make_buffer("flat", DType::kFloat32,
                                  {{{SizeOp::kSymbol, 0}, {SizeOp::kConstant, 4}, {SizeOp::kMul}}},
                                  BufferKind::kOutput));
  v.buffers.back().alias_of = 3;
  v.outputs = {0, 3, 3, 4, 1};  // an input, an output twice, a view of it, a constant
  auto session = open(std::move(e));
  std::vector<Tensor> in{floats({1, 4}, {1, -2, 3, -4})}, out;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(session->run(in, out).ok());
    EXPECT_EQ(values<float>(out[0]), (std::vector<float>{1, -2, 3, -4}));
    for (int i : {1, 2, 3}) EXPECT_EQ(values<float>(out[i]), (std::vector<float>{2, 2, 6, 4}));
    EXPECT_EQ(out[3].shape(), Shape{4});
    EXPECT_EQ(values<float>(out[4]), (std::vector<float>{1, 2, 3, 4}));
    for (int i = 0; i < 5; ++i) {
      EXPECT_NE(out[i].data(), in[0].data());
      for (int j = 0; j < i; ++j) EXPECT_NE(out[i].data(), out[j].data());
    }
  }
}

TEST(Session, AllocatesWhatTheRunSizes) {
  auto session = open(compact_model());
  for (std::vector<float> x : std::vector<std::vector<float>>{{1, -1, 2, 3}, {-1, -2}, {}, {4}}) {
    std::vector<float> kept;
    std::copy_if(x.begin(), x.end(), std::back_inserter(kept), [](float f) { return f > 0; });
    std::vector<Tensor> in{floats({static_cast<int64_t>(x.size())}, x)}, out;
    const Status s = session->run(in, out);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    EXPECT_EQ(values<float>(out[0]), kept);
  }
}

// Sizes that depend on values come from data: both limits, of bytes and of the symbol, hold at run
// time.
TEST(Session, BoundsWhatTheRunSizes) {
  const Tensor x = floats({100}, std::vector<float>(100, 1));
  auto small = open(compact_model(), {.threads = 1, .dynamic_limit = 399});
  EXPECT_EQ(error_of(*small, {x}, ErrorKind::kLimit),
            "buffer 'y' needs 400 bytes, 0 are in use and the limit is 399");
  auto enough = open(compact_model(), {.threads = 1, .dynamic_limit = 448});
  EXPECT_EQ(error_of(*enough, {x}), "no error");
  const Tensor many = floats({1001}, std::vector<float>(1001, 1));
  EXPECT_EQ(error_of(*enough, {many}, ErrorKind::kLimit), "symbol 'n' is 1001, outside [0, 1000]");
}

TEST(Session, TakesOneBranch) {
  auto session = open(branch_model());
  std::vector<Tensor> out;
  ASSERT_TRUE(session->run(std::vector{truth(true), floats({3}, {1, 2, 3})}, out).ok());
  EXPECT_EQ(values<float>(out[0]), (std::vector<float>{2, 4, 6}));
  ASSERT_TRUE(session->run(std::vector{truth(false), floats({3}, {1, 2, 3})}, out).ok());
  EXPECT_EQ(values<float>(out[0]), (std::vector<float>{1, 4, 9}));
}

// Two carried values that depend on each other, two scans, an end by count or by condition; no
// trips, and a negative number of them, count as none.
void expect_fibonacci(bool swap_carried) {
  Executable e = fibonacci_model();
  // The same pairs in the other order overwrite a's successor first unless they are staged.
  if (swap_carried) std::swap(e.variants[0].loops[0].carried[0], e.variants[0].loops[0].carried[1]);
  auto session = open(std::move(e));
  for (const auto& [trips, limit, count] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {5, 1000, 5}, {0, 1000, 0}, {-3, 10, 0}, {1000, 50, 9}, {80, int64_t{1} << 60, 80}}) {
    std::vector<Tensor> in{integers({}, {0}), integers({}, {1}), integers({}, {trips}),
                           integers({}, {limit})},
        out;
    const Status s = session->run(in, out);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    std::vector<int64_t> seen, numbers;
    int64_t a = 0, b = 1;
    for (int64_t i = 0; i < count; ++i) {
      seen.push_back(a);
      numbers.push_back(i);
      a = std::exchange(b, a + b);
    }
    EXPECT_EQ(values<int64_t>(out[0]), std::vector{a});
    EXPECT_EQ(values<int64_t>(out[1]), std::vector{b});
    EXPECT_EQ(values<int64_t>(out[2]), seen);
    EXPECT_EQ(values<int64_t>(out[3]), numbers);
  }
}

TEST(Session, LoopsCarryAndScan) { expect_fibonacci(false); }
TEST(Session, LoopsStageCarriedValuesThatDependOnEachOther) { expect_fibonacci(true); }

// A loop's scans grow with its trips; after an error the session serves the next run.
TEST(Session, ScansObeyTheLimit) {
  auto session = open(fibonacci_model(), {.threads = 1, .dynamic_limit = 1024});
  const Tensor zero = integers({}, {0});
  EXPECT_EQ(error_of(*session, {zero, zero, integers({}, {64}), zero}), "no error");
  EXPECT_NE(error_of(*session, {zero, zero, integers({}, {65}), zero}, ErrorKind::kLimit)
                .find("the limit is 1024"),
            std::string::npos);
  EXPECT_EQ(error_of(*session, {zero, zero, integers({}, {64}), zero}), "no error");
}

// One message each: too few, undefined, too many, type, rank, extent, alignment.
TEST(Session, SaysWhatIsWrongWithInputs) {
  auto session = open(branch_model());
  const Tensor flag = truth(true), x = floats({3}, {1, 2, 3});
  EXPECT_EQ(error_of(*session, {flag}), "missing input 'x' (input 2 of 2)");
  EXPECT_EQ(error_of(*session, {Tensor(), x}), "missing input 'flag' (input 1 of 2)");
  EXPECT_EQ(error_of(*session, {flag, x, x}), "got 3 inputs, expected 2");
  EXPECT_EQ(error_of(*session, {x, x}), "input 'flag': element type is f32, expected bool");
  EXPECT_EQ(error_of(*session, {flag, floats({1, 3}, {1, 2, 3})}),
            "input 'x': rank is 2, expected 1");
  EXPECT_EQ(error_of(*session, {flag, floats({2}, {1, 2})}),
            "input 'x': extent 0 is 2, expected 3");
  alignas(8) char bytes[32] = {};
  EXPECT_EQ(error_of(*session, {flag, Tensor::borrow(DType::kFloat32, {3}, bytes + 1)}),
            "input 'x': data is not aligned to its elements");
}

// A broken program, not a broken input: it must be found, and not run into memory.
TEST(Session, UseBeforeAllocationIsAnError) {
  Executable e = compact_model();
  e.variants[0].blocks[0].erase(e.variants[0].blocks[0].begin() + 2);
  auto session = open(std::move(e));
  EXPECT_EQ(error_of(*session, {floats({1}, {1})}, ErrorKind::kInternal),
            "kernel 'keep_positive' uses 'y' before it is allocated");
}

// Executables are immutable and shared; half of the sessions share a pool of threads, too.
TEST(Session, ManySessionsOfOneExecutableRunAtOnce) {
  auto executable = std::make_shared<Executable>(add_relu_model());
  auto pool = std::make_shared<ThreadPool>(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      SessionOptions options{.threads = 2};
      if (t % 2) options.pool = pool;
      auto session = std::move(*Session::create(executable, options));
      for (int round = 0; round < 100; ++round) {
        const int64_t batch = 1 + (round + t) % 5;
        std::vector<Tensor> in{floats({batch, 4}, std::vector<float>(batch * 4, float(t)))}, out;
        ASSERT_TRUE(session->run(in, out).ok());
        for (int64_t i = 0; i < batch * 4; ++i)
          ASSERT_EQ(out[0].data_as<float>()[i], float(t) + float(i % 4 + 1));
      }
    });
  for (std::thread& t : threads) t.join();
}

// Calls from several threads wait for each other, also while the number of workers changes.
TEST(Session, OneSessionServesThreadsInTurnAndChangesItsThreads) {
  auto session = open(add_relu_model());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) {
        if (t == 0 && round % 10 == 0) session->set_threads(1 + round / 10 % 3);
        std::vector<Tensor> in{floats({2, 4}, std::vector<float>(8, float(t)))}, out;
        ASSERT_TRUE(session->run(in, out).ok());
        ASSERT_EQ(out[0].data_as<float>()[0], float(t) + 1);
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace tilewright::testing
