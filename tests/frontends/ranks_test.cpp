// What ranks of a job agree on, by ranks that are threads.
#include "frontends/train/ranks.h"

#include <gtest/gtest.h>

#include <thread>

#include "frontends/train/part_sums.h"
#include "runtime/distributed/transport_local.h"

namespace tilewright::train {
namespace {

using distributed::LocalWorld;

// What each rank returns; "" for success.
std::vector<std::string> on_ranks(int count, const std::function<Status(const Ranks&)>& rank) {
  const auto world = LocalWorld::create(count);
  std::vector<std::string> said(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r)
    threads.emplace_back([&, r] {
      const auto group = distributed::make_fixed_group(world->connect(r), {});
      const Status status = rank(Ranks(group.get()));
      said[static_cast<size_t>(r)] = status.ok() ? "" : status.error().to_string();
    });
  for (auto& t : threads) t.join();
  return said;
}

TEST(Ranks, TheErrorOfOneEndsAll) {
  for (int bad = 0; bad < 4; ++bad)
    for (const std::string& text : on_ranks(4, [&](const Ranks& r) {
           return r.agree(r.rank() == bad ? Status(io_error("disk full", "x.npz")) : Status(),
                          "test");
         }))
      EXPECT_NE(text.find("x.npz: disk full"), std::string::npos) << text;
}

TEST(Ranks, TheFirstItemThatDiffersIsNamed) {
  const auto said = on_ranks(3, [&](const Ranks& r) {
    std::map<std::string, std::string> items{{"batch", "8"}, {"seed", "1"}};
    if (r.rank() == 2) items["seed"] = "2";
    return r.agree(r.compare(items), "test");
  });
  EXPECT_EQ(said[2], "this rank has seed 2, others have 1");
  for (const int r : {0, 1})
    EXPECT_EQ(said[static_cast<size_t>(r)], "rank 2 ended: this rank has seed 2, others have 1");
}

TEST(Ranks, VerifyNamesTheTensorAndTheRanks) {
  const std::vector<std::string> items{"a", "b", "c"};
  for (const std::string& text :
       on_ranks(4, [&](const Ranks& r) { return r.verify(items, {5, -7, INT64_MIN}); }))
    EXPECT_EQ(text, "");
  for (size_t item = 0; item < items.size(); ++item)
    for (const std::string& text : on_ranks(4, [&](const Ranks& r) {
           std::vector<int64_t> hashes{5, INT64_MAX, INT64_MIN};
           if (r.rank() % 2 == 1) hashes[item] ^= 1;
           return r.verify(items, hashes);
         }))
      EXPECT_EQ(text,
                items[item] + " is not the same on all ranks: rank 0 has it otherwise than 1, 3");
}

// One rank needs a buffer for each level of the tree; ranks of two parts or less need no more than two.
TEST(Ranks, PriceOfExactSums) {
  for (int levels = 0; levels < 8; ++levels) {
    EXPECT_EQ(price_of_exact(1 << levels, 1).buffers, levels + 1);
    EXPECT_EQ(price_of_exact(1 << levels, 1).traffic, 1);
  }
  for (int ranks = 1; ranks < 20; ++ranks)
    for (int parts = 1; parts <= 2 * ranks; ++parts) {
      const ExactPrice price = price_of_exact(parts, ranks);
      EXPECT_EQ(price.buffers, parts > ranks ? 2 : 1);
      EXPECT_LE(price.traffic, 1.5);
      const bool whole = parts == ranks || (parts == 2 * ranks && ranks % 2 == 0);
      EXPECT_TRUE(!whole || price.traffic == 1) << parts << " " << ranks;
    }
}

// Ranges are of whole members, one behind the other, and none but the last is smaller than asked for.
TEST(Ranks, RangesToSumCoverTheBuffer) {
  for (int n = 1; n < 200; ++n) {
    Parameters members;
    for (int k = 0; k < n % 17 + 1; ++k)
      members.members.push_back(
          {"p" + std::to_string(k), {}, 0, (n * 7919 + k * 104729) % 5000 + 1, {}});
    lay_out(members);
    for (const int64_t least : {int64_t{0}, int64_t{1}, int64_t{4000}, int64_t{1} << 40}) {
      const auto ranges = ranges_to_sum("g", members, least);
      int64_t end = 0;
      for (size_t k = 0; k < ranges.size(); ++k) {
        EXPECT_EQ(ranges[k].begin, end);
        end = ranges[k].end;
        if (k + 1 < ranges.size()) EXPECT_GE(end - ranges[k].begin, std::max<int64_t>(least, 1));
      }
      EXPECT_EQ(end, members.elements * 4);
    }
  }
}

}  // namespace
}  // namespace tilewright::train
