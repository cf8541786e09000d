#include "runtime/distributed/lease_keeper.h"

namespace tilewright::distributed {

LeaseKeeper::LeaseKeeper(Store& store, int64_t seconds) : store_(store), seconds_(seconds) {
  thread_ = std::thread([this] { run(); });
}

LeaseKeeper::~LeaseKeeper() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
  if (lease_ != 0) (void)store_.revoke_lease(lease_).ok();
}

Status LeaseKeeper::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  keys_[key] = value;
  if (lease_ == 0) return renew();
  const Status status = store_.set(key, value, lease_);
  // A lease that has ended is refused; the next renewal makes a new one for all keys.
  return status.ok() ? status : renew();
}

Status LeaseKeeper::remove(const std::string& key) {
  std::lock_guard lock(mutex_);
  keys_.erase(key);
  return store_.remove(key);
}

// With mutex_ held.
Status LeaseKeeper::renew() {
  if (lease_ != 0) {
    TW_ASSIGN(const bool alive, store_.renew_lease(lease_));
    if (alive) return {};
  }
  TW_ASSIGN(lease_, store_.grant_lease(seconds_));
  for (const auto& [key, value] : keys_) TW_RETURN_IF_ERROR(store_.set(key, value, lease_));
  return {};
}

void LeaseKeeper::run() {
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::milliseconds(seconds_ * 250);
  while (!stop_changed_.wait_for(lock, pause, [&] { return stop_.load(); })) {
    if (lease_ != 0) (void)renew().ok();
    if (!renewed_) continue;
    lock.unlock();
    renewed_();
    lock.lock();
  }
}

}  // namespace tilewright::distributed
