// A store of keys that all processes of a job reach: who takes part, where each listens, which epoch counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/result.h"
#include "runtime/distributed/deadline.h"

namespace tilewright::distributed {

// Keys and values are any bytes; a key has at least one. Every call returns by its time limit (connect_store); errors
// are kIo: the store cannot be reached, or it refuses or answers something else. May be called from several threads at
// once.
class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::optional<std::string>> get(const std::string& key) = 0;
  // The keys that begin with the prefix, with their values.
  virtual Result<std::map<std::string, std::string>> list(const std::string& prefix) = 0;
  // lease 0: the key stays until it is removed; else it goes with the lease, and one that has ended is refused (kIo).
  virtual Status set(const std::string& key, const std::string& value, int64_t lease = 0) = 0;
  // Sets the key only if its value is `expected` (nothing: if there is no such key); returns whether it did. A call
  // whose answer was lost reports kIo although it may have taken effect.
  virtual Result<bool> compare_and_set(const std::string& key,
                                       const std::optional<std::string>& expected,
                                       const std::string& value, int64_t lease = 0) = 0;
  // Removes all keys that begin with the prefix; an empty one is that of all keys.
  virtual Status remove(const std::string& prefix) = 0;

  // A lease ends when it was not renewed for so many seconds, and its keys with it. At least 1; etcd makes it at least
  // its election timeout, 2 seconds by default.
  virtual Result<int64_t> grant_lease(int64_t seconds) = 0;
  // Returns false where the lease has ended.
  virtual Result<bool> renew_lease(int64_t lease) = 0;
  // Ends the lease; one that has ended is no error.
  virtual Status revoke_lease(int64_t lease) = 0;
};

// address: "etcd://HOST:PORT" (an IPv6 address in brackets). Nothing is sent before the first call. `limit`: of each
// call. Errors: kInvalid for another form of address.
Result<std::unique_ptr<Store>> connect_store(
    const std::string& address, std::chrono::milliseconds limit = std::chrono::seconds(5));

// The address of this host that the store is reached from, so that others may reach it there. Errors: as connect_store;
// kIo, the store does not answer by the deadline.
Result<std::string> address_towards(const std::string& store, Deadline deadline);

// Polls until the key is there. Errors: kIo, which names the key, at the deadline; those of the store.
Result<std::string> wait_for_key(Store& store, const std::string& key, Deadline deadline);

}  // namespace tilewright::distributed
