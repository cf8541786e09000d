// A key that says that this process lives: it goes, by its lease, soon after the process has ended or is frozen.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/distributed/store.h"

namespace tilewright::distributed {

// Renews the lease by a thread of its own, and makes a new one where it has ended meanwhile. A store that cannot be
// reached changes nothing: it is tried again.
class LeaseKeeper {
 public:
  // The store must be good for several threads. Nothing is sent before set().
  LeaseKeeper(Store& store, int64_t seconds);
  ~LeaseKeeper();  // gives the lease back
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Keys that live with the lease; a value replaces the one before.
  Status set(const std::string& key, const std::string& value);
  Status remove(const std::string& key);
  // Called about four times in the lease's time, by the thread that renews; set once, before set().
  void on_renewal(std::function<void()> f) { renewed_ = std::move(f); }

 private:
  using Milliseconds = std::chrono::milliseconds;
  void run();
  Status renew();

  Store& store_;
  const int64_t seconds_;
  std::function<void()> renewed_;
  std::mutex mutex_;  // of the members below, and of calls that name the lease
  std::condition_variable stop_changed_;
  int64_t lease_ = 0;
  std::map<std::string, std::string> keys_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tilewright::distributed
