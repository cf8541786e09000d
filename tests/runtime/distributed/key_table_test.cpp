// Leases end at their time and no earlier, and take exactly the keys that were last set under them.
#include "runtime/distributed/key_table.h"

#include <gtest/gtest.h>

#include "tests/runtime/distributed/random_bytes.h"

namespace tilewright::distributed {
namespace {

using std::chrono::milliseconds;

TEST(KeyTable, LeasesAgainstModel) {
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    KeyTable table;
    Deadline now{};
    std::map<int64_t, std::pair<int64_t, Deadline>> leases;  // seconds, end
    std::map<std::string, int64_t> keys;                     // their leases
    const auto ended = [&](int64_t lease) { return leases.at(lease).second <= now; };
    for (int i = 0; i < 300; ++i) {
      now += milliseconds(below(random, 400));
      table.advance(now);
      std::erase_if(keys, [&](const auto& k) { return k.second != 0 && ended(k.second); });
      const std::string key(1, static_cast<char>('a' + below(random, 8)));
      const int64_t lease =
          leases.empty() ? 0 : 1 + static_cast<int64_t>(below(random, leases.size()));
      switch (below(random, 5)) {
        case 0: {
          const auto seconds = static_cast<int64_t>(1 + below(random, 5));
          const auto granted = table.grant(seconds);
          ASSERT_TRUE(granted);
          leases[*granted] = {seconds, now + std::chrono::seconds(seconds)};
          break;
        }
        case 1:
          if (lease == 0) break;
          EXPECT_EQ(table.renew(lease) > 0, !ended(lease));
          if (!ended(lease)) leases[lease].second = now + std::chrono::seconds(leases[lease].first);
          break;
        case 2:
          if (lease == 0 || below(random, 4) != 0) break;
          EXPECT_EQ(table.revoke(lease), !ended(lease));
          std::erase_if(keys, [&](const auto& k) { return k.second == lease; });
          leases[lease].second = Deadline{};
          break;
        default: {
          const int64_t owner = below(random, 3) ? lease : 0;
          const bool allowed = owner == 0 || !ended(owner);
          EXPECT_EQ(table.put(key, "v", owner).ok(), allowed);
          if (allowed) keys[key] = owner;
        }
      }
      std::map<std::string, int64_t> found;
      const auto [first, last] = table.range(std::string(1, '\0'), std::string(1, '\0'));
      for (auto e = first; e != last; ++e) found[e->first] = e->second.lease;
      ASSERT_EQ(found, keys);
    }
  }
}

TEST(KeyTable, IsBounded) {
  KeyTable table;
  const std::string value(1000, 'v');
  size_t count = 0;
  while (table.put(std::to_string(count), value, 0)) ++count;
  EXPECT_GT(count, 3000u);
  EXPECT_LE(count * (value.size() + KeyTable::kKeyBytes), KeyTable::kMostBytes);
  EXPECT_TRUE(table.put("0", "shorter", 0));
  EXPECT_EQ(table.remove(std::string(1, '\0'), std::string(1, '\0')), static_cast<int64_t>(count));
  EXPECT_TRUE(table.put("0", std::string(KeyTable::kMostBytes - KeyTable::kKeyBytes - 1, 'v'), 0));
  EXPECT_FALSE(table.grant(INT64_MAX));
  for (size_t i = 0; i < KeyTable::kMostLeases; ++i) ASSERT_TRUE(table.grant(1));
  EXPECT_FALSE(table.grant(1));
}

}  // namespace
}  // namespace tilewright::distributed
