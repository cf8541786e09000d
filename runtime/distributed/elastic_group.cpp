// Ranks come together in epochs. A process that wants to be a rank says so under "ready/"; those that live are under
// "member/" (both by lease). When all that live are ready, and they are enough, one of them writes the next epoch:
// who has which rank. The store lets one of several such records through. A process that does not live, or does not
// answer while ranks connect, has no place in the epoch after that.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "runtime/distributed/group.h"
#include "runtime/distributed/json_text.h"
#include "runtime/distributed/lease_keeper.h"

namespace tilewright::distributed {

namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

// kFirst: how long a job that begins waits for all of its ranks, once the least number is there; kSettle: later ones.
constexpr milliseconds kPoll{20}, kFirst{3000}, kSettle{300}, kConnect{3000}, kRemind{10000};

std::string this_host() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return host;
}
// In the order of hosts, and of the processes of each.
std::string new_id(int local_rank) {
  std::random_device random;
  char text[64];
  std::snprintf(text, sizeof text, "-%07d-%d-%08x", local_rank, getpid(), random());
  return this_host() + text;
}
// Addresses at which no other host can be reached.
bool is_loopback(const std::string& address) {
  return address.empty() || address.starts_with("127.") || address == "::1";
}

struct Epoch {
  int64_t number = 0;
  std::vector<std::string> members;  // by rank
};
// Number 0 where the text is no epoch.
Epoch epoch_of(const std::optional<std::string>& text) {
  const auto json = text ? parse_object(*text) : std::nullopt;
  Epoch e;
  if (!json) return e;
  const auto number = read_int64(field(*json, "number"));
  const Json& members = field(*json, "members");
  if (!number || !members.is_array()) return e;
  for (const Json& m : members)
    if (m.is_string()) e.members.push_back(m.get<std::string>());
  e.number = *number;
  return e;
}

// A process that wants to be a rank.
struct Ready {
  std::string id;
  int64_t steps = -1, rank = -1;  // what it has done; which rank it had
};

class ElasticGroup final : public Group {
 public:
  ElasticGroup(std::unique_ptr<Store> store, const Engine& engine, ElasticOptions options)
      : store_(std::move(store)),
        engine_(engine),
        options_(std::move(options)),
        id_(new_id(options_.local_rank)),
        keeper_(*store_, options_.lease_seconds) {
    keeper_.on_renewal([this] { look_for_newcomers(); });
  }
  ~ElasticGroup() override { comm_.reset(); }

  Comm* comm() override { return comm_.get(); }
  int most() const override { return options_.most; }
  bool is_elastic() const override { return true; }
  bool has_newcomers() override { return newcomers_; }

  Result<std::string> share(const std::string& name,
                            const std::function<Result<std::string>()>& give) override {
    const std::string key = options_.prefix + "shared/" + name;
    TW_ASSIGN(std::optional<std::string> there, store_->get(key));
    if (there) return std::move(*there);
    TW_ASSIGN(std::string mine, give());
    TW_ASSIGN(const bool first, store_->compare_and_set(key, std::nullopt, mine));
    if (first) return mine;
    TW_ASSIGN(there, store_->get(key));
    return there ? std::move(*there) : std::move(mine);
  }

  Status connect(int64_t steps_done, const std::function<bool()>& stop) override {
    const int64_t rank = comm_ ? comm_->rank() : -1;
    look_out_for({});
    comm_.reset();
    newcomers_ = false;
    TW_RETURN_IF_ERROR(say_ready(steps_done, rank, stop));
    Deadline remind = Clock::now() + kRemind;
    for (std::string seen;;) {
      if (stop && stop()) return io_error("stopped while it waited for other ranks");
      const Result<bool> done = try_connect(seen);
      if (done.ok() && *done) return {};
      if (!done.ok() && done.error().kind == ErrorKind::kUnsupported) return done.error();
      if (Clock::now() >= remind) {
        remind = Clock::now() + kRemind;
        options_.note(done.ok() ? waiting_text() : done.error().to_string());
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

 private:
  std::string key(const char* of) const { return options_.prefix + of; }

  // Waits for the store as long as it takes.
  Status say_ready(int64_t steps, int64_t rank, const std::function<bool()>& stop) {
    const std::string mine = Json{{"steps", steps}, {"rank", rank}}.dump();
    Deadline remind = Clock::now() + kRemind;
    for (;;) {
      Status status = keeper_.set(key("member/") + id_, "1");
      if (status.ok()) status = keeper_.set(key("ready/") + id_, mine);
      if (status.ok()) return {};
      if (stop && stop()) return status;
      if (Clock::now() >= remind) {
        remind = Clock::now() + kRemind;
        options_.note(status.error().to_string());
      }
      std::this_thread::sleep_for(10 * kPoll);
    }
  }

  // Is this process connected in an epoch that is newer than its last one? Otherwise proposes one where it is time.
  // seen: who was ready, and since when, as the last call left it.
  Result<bool> try_connect(std::string& seen) {
    TW_ASSIGN(const std::optional<std::string> text, store_->get(key("epoch")));
    const Epoch epoch = epoch_of(text);
    const auto place = std::ranges::find(epoch.members, id_);
    if (epoch.number > last_ && place != epoch.members.end()) {
      last_ = epoch.number;
      return connect_mesh(epoch, static_cast<int>(place - epoch.members.begin()));
    }
    TW_ASSIGN(std::vector<Ready> ready, all_ready());
    std::string now;
    for (const Ready& r : ready) now += r.id + " ";
    if (now != seen) {
      seen = now;
      since_ = Clock::now();
    }
    present_ = static_cast<int>(ready.size());
    const bool full = present_ >= options_.most,
               settled = full || Clock::now() - since_ >= (text ? kSettle : kFirst);
    if (waits_ || present_ < options_.least || !settled) return false;
    ready.resize(static_cast<size_t>(std::min(present_, options_.most)));
    Json next{{"number", std::max(epoch.number, last_) + 1}, {"members", Json::array()}};
    for (const Ready& r : ready) next["members"].push_back(r.id);
    TW_ASSIGN(const bool mine, store_->compare_and_set(key("epoch"), text, next.dump()));
    (void)mine;
    return false;
  }

  // Who is ready, the one who has done the most first; waits_: somebody lives who is not.
  Result<std::vector<Ready>> all_ready() {
    TW_ASSIGN(const auto members, store_->list(key("member/")));
    TW_ASSIGN(const auto texts, store_->list(key("ready/")));
    std::vector<Ready> ready;
    for (const auto& [name, text] : texts) {
      Ready r{name.substr(key("ready/").size())};
      if (const auto json = parse_object(text)) {
        r.steps = read_int64(field(*json, "steps")).value_or(-1);
        r.rank = read_int64(field(*json, "rank")).value_or(-1);
      }
      ready.push_back(std::move(r));
    }
    std::ranges::sort(ready, {}, [](const Ready& r) {
      return std::tuple(-r.steps, r.rank < 0 ? INT64_MAX : r.rank, r.id);
    });
    waits_ = std::ranges::any_of(members, [&](const auto& m) {
      return !texts.count(key("ready/") + m.first.substr(key("member/").size()));
    });
    return ready;
  }

  Result<bool> connect_mesh(const Epoch& epoch, int rank) {
    const auto elsewhere = std::ranges::find_if(
        epoch.members, [&](const auto& m) { return !m.starts_with(this_host() + "-"); });
    if (is_loopback(options_.address) && elsewhere != epoch.members.end())
      return unsupported("this host reaches the store at " + options_.address +
                         ", where others cannot reach it; give --store an address of the network");
    ConnectOptions connect{.rank = rank,
                           .size = static_cast<int>(epoch.members.size()),
                           .store = store_.get(),
                           .prefix = key("mesh/") + std::to_string(epoch.number) + "/",
                           .address = options_.address,
                           .deadline = Clock::now() + kConnect};
    auto transport = engine_.connect(connect);
    if (!transport.ok()) return false;  // somebody is lost: the next epoch is without it
    CommOptions comm = options_.comm;
    if (!comm.record_file.empty()) comm.record_file += std::to_string(rank);
    if (rank == 0 && connect.size < options_.most) look_out_for(epoch.members);
    comm_ = std::make_unique<Comm>(std::move(*transport), std::move(comm));
    (void)keeper_.remove(key("ready/") + id_).ok();
    if (rank == 0 && epoch.number > 1)
      (void)store_->remove(key("mesh/") + std::to_string(epoch.number - 1) + "/").ok();
    return true;
  }

  // Rank 0 of an epoch that has room looks for others than these; nobody does where there are none.
  void look_out_for(std::vector<std::string> members) {
    std::lock_guard lock(watch_mutex_);
    watched_ = std::move(members);
  }
  // By the keeper's thread.
  void look_for_newcomers() {
    std::lock_guard lock(watch_mutex_);
    if (watched_.empty()) return;
    const auto texts = store_->list(key("ready/"));
    if (!texts.ok()) return;
    for (const auto& [name, text] : *texts)
      if (std::ranges::find(watched_, name.substr(key("ready/").size())) == watched_.end())
        newcomers_ = true;
  }

  std::string waiting_text() const {
    return "waiting for ranks: " + std::to_string(present_) + " of at least " +
           std::to_string(options_.least) + (present_ == 1 ? " is" : " are") + " there" +
           (waits_ ? "; others are not ready yet" : "");
  }

  const std::unique_ptr<Store> store_;
  const Engine& engine_;
  const ElasticOptions options_;
  const std::string id_;
  std::atomic<bool> newcomers_{false};
  std::unique_ptr<Comm> comm_;
  std::mutex watch_mutex_;
  std::vector<std::string> watched_;  // look_out_for
  int64_t last_ = 0;                  // epoch
  int present_ = 0;
  bool waits_ = false;
  Deadline since_{};
  LeaseKeeper keeper_;  // goes first: its thread looks at the members above
};

}  // namespace

std::unique_ptr<Group> make_elastic_group(std::unique_ptr<Store> store, const Engine& engine,
                                          ElasticOptions options) {
  return std::make_unique<ElasticGroup>(std::move(store), engine, std::move(options));
}

}  // namespace tilewright::distributed
