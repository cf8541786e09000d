// The state of a store: keys, leases, and what changes them. It has no clock: whoever calls says what time it is.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/core/result.h"
#include "runtime/distributed/deadline.h"

namespace tilewright::distributed {

// The meaning of all is etcd's.
class KeyTable {
 public:
  static constexpr size_t kMostBytes = 4 << 20;  // of all keys and values, and kKeyBytes for each
  static constexpr size_t kKeyBytes = 128;
  static constexpr size_t kMostLeases = 1 << 14;
  static constexpr int64_t kMostSeconds = 1'000'000'000;  // of a lease

  struct Entry {
    std::string value;
    // Revisions of the table at which the key was created and last set, and how often it was set in between.
    int64_t created = 0, modified = 0, version = 0;
    int64_t lease = 0;  // 0: none
  };
  using Entries = std::map<std::string, Entry>;
  // [first, last) in the order of keys.
  using Range = std::pair<Entries::const_iterator, Entries::const_iterator>;

  // first_lease: the number of the first lease, at least 1. Numbers that no former table gave keep those who still have
  // its leases from renewing others'.
  explicit KeyTable(int64_t first_lease = 1) : next_lease_(first_lease) {}

  // Ends the leases whose time is up; every other call is made at the latest of these times.
  void advance(Deadline now);

  // end: "" is the key `begin` alone, a single byte 0 all keys from `begin` on.
  Range range(const std::string& begin, const std::string& end) const;
  const Entry* find(const std::string& key) const;
  // Errors: kInvalid for an empty key or a lease that there is not, kLimit beyond kMostBytes.
  Status put(const std::string& key, std::string value, int64_t lease);
  int64_t remove(const std::string& begin, const std::string& end);

  // Returns the lease. seconds: below 1 is 1. Errors: kInvalid, kLimit.
  Result<int64_t> grant(int64_t seconds);
  bool has_lease(int64_t lease) const { return leases_.count(lease) != 0; }
  // Returns its seconds; 0: there is no such lease.
  int64_t renew(int64_t lease);
  // Returns whether there was such a lease.
  bool revoke(int64_t lease);

  // Goes up by one with each change of a key.
  int64_t revision() const { return revision_; }

 private:
  struct Lease {
    int64_t seconds = 0;
    Deadline end;
    std::set<std::string> keys;
  };
  Entries::iterator erase(Entries::iterator entry);

  Deadline now_{};
  int64_t revision_ = 1;
  int64_t next_lease_;
  size_t bytes_ = 0;
  Entries entries_;
  std::map<int64_t, Lease> leases_;
  std::set<std::pair<Deadline, int64_t>> ends_;  // of the leases, the earliest first
};

}  // namespace tilewright::distributed
