#include "runtime/distributed/transport_local.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace tilewright::distributed {

namespace {

using Message = std::vector<std::byte>;

class World final : public LocalWorld, public std::enable_shared_from_this<World> {
 public:
  explicit World(int size) : boxes_(static_cast<size_t>(size)) {}
  std::unique_ptr<Transport> connect(int rank) override;
  int size() const { return static_cast<int>(boxes_.size()); }

  Status send(int from, int to, uint64_t tag, std::span<const std::byte> data) {
    std::lock_guard lock(mutex_);
    boxes_[static_cast<size_t>(to)].messages[{tag, from}].emplace_back(data.begin(), data.end());
    changed_.notify_all();
    return {};
  }
  Result<int> receive(int at, int from, uint64_t tag, std::span<std::byte> data,
                      Deadline deadline) {
    std::unique_lock lock(mutex_);
    Box& box = boxes_[static_cast<size_t>(at)];
    auto found = box.messages.end();
    const auto arrived = [&] {
      found = find(box, from, tag);
      return found != box.messages.end() || box.left || has_left(from);
    };
    if (!changed_.wait_until(lock, deadline, arrived))
      return io_error("timed out waiting for " +
                      (from == kAnyRank ? "any rank" : "rank " + std::to_string(from)));
    if (found == box.messages.end())
      return io_error("rank " + std::to_string(box.left ? at : from) + " has left");
    const int sender = found->first.second;
    const Message message = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) box.messages.erase(found);
    lock.unlock();
    if (message.size() != data.size())
      return invalid("rank " + std::to_string(sender) + " sent " + std::to_string(message.size()) +
                     " bytes, expected " + std::to_string(data.size()));
    if (!message.empty()) std::memcpy(data.data(), message.data(), message.size());
    return sender;
  }
  std::vector<std::optional<std::string>> roll_call(int rank, const std::string& state,
                                                    Deadline deadline) {
    std::unique_lock lock(mutex_);
    boxes_[static_cast<size_t>(rank)].state = state;
    changed_.notify_all();
    changed_.wait_until(lock, deadline, [&] {
      for (const Box& b : boxes_)
        if (!b.state && !b.left) return false;
      return true;
    });
    std::vector<std::optional<std::string>> states;
    for (const Box& b : boxes_) states.push_back(b.state);
    return states;
  }
  void leave(int rank) {
    std::lock_guard lock(mutex_);
    boxes_[static_cast<size_t>(rank)].left = true;
    changed_.notify_all();
  }

 private:
  struct Box {  // of one rank: messages by tag and sender
    std::map<std::pair<uint64_t, int>, std::deque<Message>> messages;
    std::optional<std::string> state;
    bool left = false;
  };
  bool has_left(int rank) const {
    return rank != kAnyRank && boxes_[static_cast<size_t>(rank)].left;
  }
  static std::map<std::pair<uint64_t, int>, std::deque<Message>>::iterator find(Box& box, int from,
                                                                                uint64_t tag) {
    if (from != kAnyRank) return box.messages.find({tag, from});
    const auto first = box.messages.lower_bound({tag, 0});
    return first != box.messages.end() && first->first.first == tag ? first : box.messages.end();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Box> boxes_;
};

class Sent final : public Transfer {
 public:
  explicit Sent(int to) : to_(to) {}
  Result<int> wait(Deadline) override { return to_; }

 private:
  const int to_;
};

class Arriving final : public Transfer {
 public:
  Arriving(std::shared_ptr<World> world, int at, int from, uint64_t tag, std::span<std::byte> data)
      : world_(std::move(world)), at_(at), from_(from), tag_(tag), data_(data) {}
  Result<int> wait(Deadline deadline) override {
    return world_->receive(at_, from_, tag_, data_, deadline);
  }

 private:
  const std::shared_ptr<World> world_;
  const int at_, from_;
  const uint64_t tag_;
  const std::span<std::byte> data_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~LocalTransport() override { world_->leave(rank_); }
  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string describe() const override { return "local, threads of one process"; }
  bool polls() const override { return false; }
  Result<std::unique_ptr<Transfer>> send(int to, uint64_t tag,
                                         std::span<const std::byte> data) override {
    TW_RETURN_IF_ERROR(world_->send(rank_, to, tag, data));
    return std::unique_ptr<Transfer>(std::make_unique<Sent>(to));
  }
  Result<std::unique_ptr<Transfer>> receive(int from, uint64_t tag,
                                            std::span<std::byte> data) override {
    return std::unique_ptr<Transfer>(std::make_unique<Arriving>(world_, rank_, from, tag, data));
  }
  std::vector<std::optional<std::string>> roll_call(const std::string& state,
                                                    Deadline deadline) override {
    return world_->roll_call(rank_, state, deadline);
  }
  void abort() override { world_->leave(rank_); }

 private:
  const std::shared_ptr<World> world_;
  const int rank_;
};

std::unique_ptr<Transport> World::connect(int rank) {
  return std::make_unique<LocalTransport>(shared_from_this(), rank);
}

}  // namespace

std::shared_ptr<LocalWorld> LocalWorld::create(int size) { return std::make_shared<World>(size); }

}  // namespace tilewright::distributed
