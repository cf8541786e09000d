// Steps predicted for other numbers of ranks: laws that hold whatever a step is made of.
#include "frontends/train/scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "runtime/distributed/transport_local.h"

namespace tilewright::train {
namespace {

using distributed::RingCost;

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  double number(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  StepTimeline timeline() {
    StepTimeline t;
    t.computed = number(1e-3, 2);
    t.ended = t.computed + number(0, 0.1);
    const int ranges = static_cast<int>(number(0, 30));
    for (int k = 0; k < ranges; ++k) {
      t.starts.push_back(number(0, t.computed));
      t.bytes.push_back(static_cast<int64_t>(number(4, 1e8)));
    }
    std::ranges::sort(t.starts);
    return t;
  }
  RingCost cost() { return {number(1e-6, 1e-3), number(1e-10, 1e-7), number(0, 1e-9)}; }

 private:
  std::mt19937 random_;
};

TEST(Scaling, OneRankIsAsMeasured) {
  Draw draw(1);
  for (int n = 0; n < 200; ++n) {
    const StepTimeline t = draw.timeline();
    const Scaled s = scale(t, draw.cost(), 1, 7, true);
    EXPECT_EQ(s.step(), t.ended);
    EXPECT_EQ(s.communicating, 0);
    EXPECT_EQ(s.samples, 7);
  }
}

TEST(Scaling, AStepIsNoShorterThanItsPartsAndNoLongerThanTheirSum) {
  Draw draw(2);
  for (int n = 0; n < 500; ++n) {
    const StepTimeline t = draw.timeline();
    const RingCost cost = draw.cost();
    const int ranks = static_cast<int>(draw.number(2, 100));
    double sums = 0, last = 0;
    for (size_t k = 0; k < t.bytes.size(); ++k)
      sums += last = distributed::all_reduce_seconds(cost, t.bytes[k], ranks);
    const Scaled s = scale(t, cost, ranks, 3, false);
    EXPECT_EQ(s.samples, 3 * ranks);
    EXPECT_DOUBLE_EQ(s.communicating, sums + distributed::all_reduce_seconds(cost, 0, ranks));
    EXPECT_GE(s.step() * (1 + 1e-12), t.ended);
    EXPECT_GE(s.step() * (1 + 1e-12), s.communicating);
    if (!t.starts.empty()) { EXPECT_GE(s.step() * (1 + 1e-12), t.starts.back() + last); }
    EXPECT_LE(s.step(), (t.ended + s.communicating) * (1 + 1e-12));
    // A CPU that is shared makes no step shorter.
    EXPECT_GE(scale(t, cost, ranks, 3, true).step() * (1 + 1e-12), s.step());
    // A slower link makes no step shorter.
    EXPECT_GE(scale(t, {cost.latency * 2, cost.per_byte * 2}, ranks, 3, false).step(), s.step());
  }
}

TEST(Scaling, LinksAreRead) {
  const auto link = read_link("50us,1gbit");
  ASSERT_TRUE(link.ok());
  EXPECT_DOUBLE_EQ(link->latency, 50e-6);
  EXPECT_DOUBLE_EQ(link->per_byte, 8e-9);
  EXPECT_DOUBLE_EQ(read_link("1.5ms,200mbit")->per_byte, 4e-8);
  for (const char* bad : {"", ",", "50us", "50us,", "50,1gbit", "50us,1", "-5us,1gbit", "5us,0gbit",
                          "nan,1gbit", "5us,1gbit,", "1gbit,5us", "5us 1gbit"})
    EXPECT_FALSE(read_link(bad).ok()) << bad;
}

// Each rank's row has what that rank noted, and the last one to compute is found, though clocks differ.
TEST(StepTimes, OfAllRanksComeTogether) {
  constexpr int kRanks = 3;
  constexpr int64_t kMillisecond = 1000000;
  const auto world = distributed::LocalWorld::create(kRanks);
  std::vector<std::vector<RankTimes>> found(kRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      const auto group = distributed::make_fixed_group(world->connect(r), {});
      StepTimesLog log;
      const int64_t clock = 1000 * kMillisecond * r;
      log.set_clock_offset(-clock);
      // Rank 1 joins at step 15. Rank s % 3 is the last one in step s, by 2 ms.
      for (int64_t s = r == 1 ? 15 : 10; s < 40; ++s) {
        const int64_t begun = clock + s * 100 * kMillisecond,
                      computed = begun + (s % kRanks == r ? 7 : 5) * kMillisecond;
        log.add(s, {begun, computed, computed + 2 * kMillisecond, computed + 3 * kMillisecond,
                    8 * kMillisecond});
      }
      auto gathered = log.gather(Ranks(group.get()));
      if (gathered.ok()) found[static_cast<size_t>(r)] = *gathered;
    });
  for (auto& t : threads) t.join();
  for (const auto& ranks : found) {
    ASSERT_EQ(ranks.size(), kRanks);
    EXPECT_EQ(ranks[0].steps, 30);
    EXPECT_EQ(ranks[1].steps, 25);
    EXPECT_EQ(ranks[2].last, 10);
    for (const RankTimes& t : ranks) {
      EXPECT_NEAR(t.waiting, 2e-3, 1e-9);
      EXPECT_NEAR(t.communicating, 8e-3, 1e-9);
      EXPECT_NEAR(t.hidden(), 0.75, 1e-9);
    }
    EXPECT_NEAR(ranks[2].behind, 2e-3, 1e-6);
    EXPECT_NE(to_table(ranks).find("75 %"), std::string::npos);
  }
}

}  // namespace
}  // namespace tilewright::train
