#include "runtime/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace tilewright {
namespace {

TEST(Arena, BuffersThatLiveTogetherNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<LiveInterval> intervals(1 + random() % 40);
    int64_t sum = 0, largest = 0;
    for (LiveInterval& i : intervals) {
      i.first = static_cast<int32_t>(random() % 30);
      i.last = i.first + static_cast<int32_t>(random() % 10);
      i.bytes = random() % 5 == 0 ? 0 : static_cast<int64_t>(random() % 5000);
      sum += align_up(i.bytes);
      largest = std::max(largest, align_up(i.bytes));
    }
    const ArenaPlan plan = plan_arena(intervals).value();
    EXPECT_LE(plan.bytes, sum);
    EXPECT_GE(plan.bytes, largest);
    for (size_t a = 0; a < intervals.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % kAlignment, 0);
      EXPECT_LE(plan.offsets[a] + intervals[a].bytes, plan.bytes);
      for (size_t b = 0; b < a; ++b) {
        const LiveInterval &x = intervals[a], &y = intervals[b];
        if (x.last < y.first || y.last < x.first || x.bytes == 0 || y.bytes == 0) continue;
        EXPECT_TRUE(plan.offsets[a] + x.bytes <= plan.offsets[b] ||
                    plan.offsets[b] + y.bytes <= plan.offsets[a])
            << "intervals " << a << " and " << b << " of round " << round;
      }
    }
  }
}

TEST(Arena, AChainNeedsRoomForTwoNeighbours) {
  std::vector<LiveInterval> chain;
  for (int i = 0; i < 20; ++i) chain.push_back({6400, i, i + 1});
  EXPECT_EQ(plan_arena(chain)->bytes, 2 * 6400);
}

TEST(Arena, TakesTheTightestGap) {
  // 0, 2 and 4 stay; 1 (of 640) and 3 (of 320) leave gaps; the last one of 128 belongs into the
  // smaller.
  const std::vector<LiveInterval> v{{1024, 0, 9}, {640, 0, 1}, {600, 0, 9},
                                    {320, 0, 1},  {256, 0, 9}, {128, 5, 6}};
  const ArenaPlan plan = plan_arena(v).value();
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
}

TEST(Arena, MemoryOfEverySizeIsAlignedAndWritable) {
  for (const int64_t bytes : {int64_t{1}, int64_t{64}, int64_t{4097}, (int64_t{4} << 20) - 1,
                              int64_t{4} << 20, (int64_t{7} << 20) + 12345}) {
    const Storage s = allocate_storage(bytes).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s.data) % kAlignment, 0u);
    EXPECT_GE(s.capacity, bytes);
    std::memset(s.data, 7, static_cast<size_t>(s.capacity));
    EXPECT_EQ(s.data[0] + s.data[s.capacity - 1], 14);
  }
}

TEST(Arena, RefusesImpossibleSizes) {
  const std::vector<LiveInterval> huge(3, LiveInterval{kLargestAllocation / 2, 0, 1});
  EXPECT_EQ(plan_arena(huge).error().kind, ErrorKind::kLimit);
  EXPECT_EQ(plan_arena(std::vector<LiveInterval>{{-1, 0, 1}}).error().kind, ErrorKind::kLimit);
  EXPECT_EQ(allocate_storage(kLargestAllocation + 1).error().kind, ErrorKind::kLimit);
  EXPECT_EQ(allocate_storage(-1).error().kind, ErrorKind::kLimit);
  EXPECT_NE(allocate_storage(0)->data, nullptr);
}

TEST(GuardedArena, EachIntervalLiesAtAGuard) {
  const std::vector<LiveInterval> v{{100, 0, 9}, {0, 0, 9}, {5000, 0, 1}, {4096, 0, 1}};
  for (const Guard guard : {Guard::kBefore, Guard::kBehind}) {
    const ArenaPlan plan = plan_guarded_arena(v, guard).value();
    const Storage s = allocate_guarded_storage(plan.bytes, plan.guards).value();
    for (size_t i = 0; i < v.size(); ++i) {
      uint8_t* first = s.data + plan.offsets[i];
      EXPECT_EQ(plan.offsets[i] % kAlignment, 0);
      std::memset(first, 7, static_cast<size_t>(align_up(v[i].bytes)));
      uint8_t* beyond = guard == Guard::kBefore ? first - 1 : first + align_up(v[i].bytes);
      EXPECT_DEATH(*static_cast<volatile uint8_t*>(beyond) = 1, "");
    }
  }
}

}  // namespace
}  // namespace tilewright
