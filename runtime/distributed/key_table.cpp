#include "runtime/distributed/key_table.h"

#include <algorithm>

namespace tilewright::distributed {

namespace {

size_t bytes_of(const std::string& key, const std::string& value) {
  return KeyTable::kKeyBytes + key.size() + value.size();
}

}  // namespace

void KeyTable::advance(Deadline now) {
  now_ = std::max(now_, now);
  while (!ends_.empty() && ends_.begin()->first <= now_) revoke(ends_.begin()->second);
}

KeyTable::Range KeyTable::range(const std::string& begin, const std::string& end) const {
  const auto first = entries_.lower_bound(begin);
  if (end.empty()) {
    const bool is_there = first != entries_.end() && first->first == begin;
    return {first, is_there ? std::next(first) : first};
  }
  if (end == std::string_view("\0", 1)) return {first, entries_.end()};
  return {first, end <= begin ? first : entries_.lower_bound(end)};
}

const KeyTable::Entry* KeyTable::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Status KeyTable::put(const std::string& key, std::string value, int64_t lease) {
  if (key.empty()) return invalid("key is not provided");
  const auto owner = leases_.find(lease);
  if (lease != 0 && owner == leases_.end()) return invalid("requested lease not found");
  auto entry = entries_.find(key);
  const size_t before = entry == entries_.end() ? 0 : bytes_of(key, entry->second.value);
  const size_t bytes = bytes_ - before + bytes_of(key, value);
  if (bytes > kMostBytes) return limit_error("database space exceeded");
  bytes_ = bytes;
  ++revision_;
  if (entry == entries_.end()) {
    entry = entries_.emplace(key, Entry{}).first;
    entry->second.created = revision_;
  }
  Entry& e = entry->second;
  if (e.lease != 0 && e.lease != lease) leases_.at(e.lease).keys.erase(key);
  if (lease != 0) owner->second.keys.insert(key);
  e.value = std::move(value);
  e.lease = lease;
  e.modified = revision_;
  ++e.version;
  return {};
}

KeyTable::Entries::iterator KeyTable::erase(Entries::iterator entry) {
  bytes_ -= bytes_of(entry->first, entry->second.value);
  if (entry->second.lease != 0) leases_.at(entry->second.lease).keys.erase(entry->first);
  return entries_.erase(entry);
}

int64_t KeyTable::remove(const std::string& begin, const std::string& end) {
  const auto [first, last] = range(begin, end);
  int64_t count = 0;
  // An empty range as iterators that may be changed.
  for (auto entry = entries_.erase(first, first); entry != last; ++count) entry = erase(entry);
  if (count > 0) ++revision_;
  return count;
}

Result<int64_t> KeyTable::grant(int64_t seconds) {
  if (seconds > kMostSeconds) return invalid("too large lease TTL");
  if (leases_.size() >= kMostLeases) return limit_error("too many leases");
  const int64_t id = next_lease_++;
  Lease lease{std::max<int64_t>(seconds, 1), {}, {}};
  lease.end = now_ + std::chrono::seconds(lease.seconds);
  ends_.emplace(lease.end, id);
  leases_.emplace(id, std::move(lease));
  return id;
}

int64_t KeyTable::renew(int64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return 0;
  Lease& lease = found->second;
  ends_.erase({lease.end, id});
  lease.end = now_ + std::chrono::seconds(lease.seconds);
  ends_.emplace(lease.end, id);
  return lease.seconds;
}

bool KeyTable::revoke(int64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return false;
  const std::set<std::string> keys = std::move(found->second.keys);
  ends_.erase({found->second.end, id});
  found->second.keys.clear();
  for (const std::string& key : keys) erase(entries_.find(key));
  if (!keys.empty()) ++revision_;
  leases_.erase(found);
  return true;
}

}  // namespace tilewright::distributed
