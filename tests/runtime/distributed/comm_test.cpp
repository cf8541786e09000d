// The suite over engines whose ranks may be threads, and how calls fail.
#include "runtime/distributed/comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "runtime/distributed/link.h"
#include "runtime/distributed/store_server.h"
#include "runtime/distributed/transport_local.h"
#include "tests/runtime/distributed/comm_suite.h"

namespace tilewright::distributed {
namespace {

// Runs a rank in each of `ranks` threads; what each returns.
std::vector<std::string> on_ranks(int ranks, const std::function<std::string(int)>& rank) {
  std::vector<std::string> said(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { said[static_cast<size_t>(r)] = rank(r); });
  for (auto& t : threads) t.join();
  return said;
}

void expect_silent(const std::vector<std::string>& said) {
  for (size_t r = 0; r < said.size(); ++r) EXPECT_EQ(said[r], "") << "rank " << r;
}

class CommOfRanks : public testing::TestWithParam<int> {};

TEST_P(CommOfRanks, LocalAgreesWithWhatAllGave) {
  const int ranks = GetParam();
  const auto world = LocalWorld::create(ranks);
  expect_silent(on_ranks(ranks, [&](int r) {
    Comm comm(world->connect(r), {});
    return run_comm_suite(comm, 17 + static_cast<uint64_t>(ranks), 300, 400000);
  }));
}

TEST_P(CommOfRanks, GlooAgreesWithWhatAllGave) {
  const int ranks = GetParam();
  const auto engine = open_engine("gloo");
  if (!engine.ok()) GTEST_SKIP() << engine.error().to_string();
  auto server = StoreServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server.ok()) << server.error().to_string();
  expect_silent(on_ranks(ranks, [&](int r) -> std::string {
    auto store = connect_store((*server)->url());
    auto transport = (*engine)->connect({.rank = r,
                                         .size = ranks,
                                         .store = store->get(),
                                         .prefix = "test/",
                                         .address = "",
                                         .deadline = Clock::now() + std::chrono::seconds(20)});
    if (!transport.ok()) return transport.error().to_string();
    Comm comm(std::move(*transport), {});
    std::string wrong = run_comm_suite(comm, 23 + static_cast<uint64_t>(ranks), 300, 400000);
    // Nobody leaves while another one still reads.
    if (const Status s = comm.barrier("end"); wrong.empty() && !s.ok())
      wrong = s.error().to_string();
    return wrong;
  }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, CommOfRanks, testing::Values(1, 2, 3, 4));

TEST(Comm, ManyCallsOnFourLocalRanks) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const int calls = 10000;
#else
  const int calls = 100000;
#endif
  const auto world = LocalWorld::create(4);
  expect_silent(on_ranks(4, [&](int r) {
    Comm comm(world->connect(r), {});
    return run_comm_suite(comm, 99, calls, 500);
  }));
}

TEST(Comm, CallsThatAreStartedEndInTheirOrder) {
  const auto world = LocalWorld::create(3);
  expect_silent(on_ranks(3, [&](int r) -> std::string {
    Comm comm(world->connect(r), {});
    comm.set_tracing(true);
    std::vector<float> values(1000, 1.0f);
    for (int k = 0; k < 10; ++k)
      comm.start("range " + std::to_string(k), 0, [&, k](const Round& round) {
        return all_reduce(round, ReduceOp::kSum, {DType::kFloat32, values.data() + 100 * k, 100});
      });
    const Status status = comm.finish();
    if (!status.ok()) return status.error().to_string();
    for (const float v : values)
      if (v != 3) return "a sum is " + std::to_string(v);
    const std::vector<CallRecord> calls = comm.trace();
    int64_t communicating = 0;
    for (size_t k = 0; k < 10; ++k) {
      const CallRecord& c = calls.at(k);
      if (c.what != "range " + std::to_string(k))
        return "call " + std::to_string(k) + ": " + c.what;
      if (c.begun < c.queued || c.ended < c.begun || (k > 0 && c.begun < calls[k - 1].ended))
        return c.what + " is out of order";
      communicating += c.ended - c.begun;
    }
    if (comm.take_times().communicating != communicating) return "times are not those of the calls";
    if (comm.take_times().communicating != 0) return "times are taken twice";
    return "";
  }));
}

// Ranks that are threads of one process have one clock.
TEST(Comm, ComparesClocks) {
  const auto world = LocalWorld::create(3);
  expect_silent(on_ranks(3, [&](int r) -> std::string {
    Comm comm(world->connect(r), {});
    const Result<int64_t> offset = clock_offset(comm);
    if (!offset.ok()) return offset.error().to_string();
    if (std::abs(*offset) > 100000000 || (r == 0 && *offset != 0))
      return "the clock is off by " + std::to_string(*offset) + " ns";
    const Result<RingCost> ring = measure_ring(comm);
    if (!ring.ok()) return ring.error().to_string();
    if (ring->latency <= 0 || ring->per_byte < 0) return "a ring of no cost";
    return "";
  }));
}

TEST(Comm, CostOfARingGrowsWithBytesAndRanks) {
  const RingCost cost{1e-4, 1e-9};
  EXPECT_EQ(all_reduce_seconds(cost, 1 << 20, 1), 0);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(cost, 1000000, 2), 2 * (1e-4 + 0.5e-3));
  for (int ranks = 2; ranks < 100; ++ranks) {
    EXPECT_LT(all_reduce_seconds(cost, 1 << 20, ranks), all_reduce_seconds(cost, 1 << 21, ranks));
    EXPECT_LT(all_reduce_seconds(cost, 1 << 20, ranks),
              all_reduce_seconds(cost, 1 << 20, ranks + 1));
  }
}

// One rank never comes: the others name it, what they waited for, and write what they did last.
TEST(Comm, NamesTheRankThatDoesNotCome) {
  const auto world = LocalWorld::create(3);
  const std::string file = testing::TempDir() + "/calls";
  const auto stays_away = world->connect(1);
  std::vector<std::thread> threads;
  std::vector<std::string> said(3);
  std::vector<std::vector<int>> missing(3);
  for (const int r : {0, 2})
    threads.emplace_back([&, r] {
      Comm comm(world->connect(r), {.deadline = std::chrono::milliseconds(300),
                                    .record_file = file + std::to_string(r)});
      const Status status = comm.barrier("the test");
      said[static_cast<size_t>(r)] = status.ok() ? "no error" : status.error().to_string();
      missing[static_cast<size_t>(r)] = comm.missing();
      const Status again = comm.barrier("later");
      EXPECT_EQ(again.ok() ? "no error" : again.error().to_string(), said[static_cast<size_t>(r)]);
    });
  for (auto& t : threads) t.join();
  for (const int r : {0, 2}) {
    EXPECT_EQ(missing[static_cast<size_t>(r)], std::vector<int>{1});
    EXPECT_THAT(said[static_cast<size_t>(r)],
                testing::ContainsRegex("call 0, barrier of the test: rank " + std::to_string(r) +
                                       " of 3 waited 0.[3-9][0-9]* s, and rank 1 does not answer"));
    std::stringstream text;
    text << std::ifstream(file + std::to_string(r)).rdbuf();
    EXPECT_NE(text.str().find("call 0: barrier of the test, 0 bytes"), std::string::npos)
        << text.str();
  }
}

TEST(Comm, TellsWhenRanksMakeDifferentCalls) {
  const auto world = LocalWorld::create(2);
  const auto said = on_ranks(2, [&](int r) -> std::string {
    Comm comm(world->connect(r), {.deadline = std::chrono::milliseconds(300)});
    float value = 1;
    const Status status = r == 0
                              ? comm.barrier("x")
                              : comm.all_reduce(ReduceOp::kSum, {DType::kFloat32, &value, 1}, "y");
    return status.ok() ? "no error" : status.error().to_string();
  });
  EXPECT_NE(said[0].find("all ranks answer"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("rank 1 is at call 0, all_reduce of y"), std::string::npos) << said[0];
}

TEST(PartTree, RunsCoverAllPartsAndSubtreesCoverRuns) {
  for (int parts = 1; parts <= 40; ++parts)
    for (int ranks = 1; ranks <= 9; ++ranks) {
      int end = 0;
      std::vector<PartRange> leaves;
      for (int r = 0; r < ranks; ++r) {
        const PartRange run = parts_of_rank(r, ranks, parts);
        EXPECT_EQ(run.begin, end);
        EXPECT_LE(std::abs(run.count() - parts / ranks), 1);
        int at = run.begin;
        for (const PartRange& node : subtrees_of(run, parts)) {
          EXPECT_EQ(node.begin, at);
          at = node.end;
          leaves.push_back(node);
        }
        EXPECT_EQ(at, end = run.end);
      }
      EXPECT_EQ(end, parts);
      // The tree over them has one addition for all but one.
      size_t additions = 0;
      add_by_tree(leaves, parts, [&](size_t, size_t) { ++additions; });
      EXPECT_EQ(additions + 1, leaves.size());
    }
}

}  // namespace
}  // namespace tilewright::distributed
