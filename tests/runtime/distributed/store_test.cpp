// The semantics of a store, as random calls against a map: of the server in memory, and of a real etcd.
#include "runtime/distributed/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "runtime/distributed/start_process.h"
#include "runtime/distributed/store_server.h"
#include "runtime/distributed/tcp_socket.h"
#include "tests/runtime/distributed/random_bytes.h"

namespace tilewright::distributed {
namespace {

using std::chrono::milliseconds;

int free_port() {
  const auto socket = listen_on("127.0.0.1", 0);
  return *port_of(*socket);
}

// A real etcd with data of its own.
class EtcdProcess {
 public:
  ~EtcdProcess() {
    if (process_.id > 0) {
      ::kill(process_.id, SIGKILL);
      ::waitpid(process_.id, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  // Empty: it runs; else why it does not.
  std::string start() {
    const std::string client = "http://127.0.0.1:" + std::to_string(port_);
    const std::string peer = "http://127.0.0.1:" + std::to_string(free_port());
    ProcessSpec spec;
    spec.command = {"etcd",
                    "--data-dir",
                    folder_,
                    "--log-level",
                    "panic",
                    "--listen-client-urls",
                    client,
                    "--advertise-client-urls",
                    client,
                    "--listen-peer-urls",
                    peer,
                    "--initial-advertise-peer-urls",
                    peer,
                    "--initial-cluster",
                    "default=" + peer};
    sigset_t none;
    sigemptyset(&none);
    auto started = start_process(spec, none);
    if (!started) return started.error().message;
    process_ = std::move(*started);
    const auto store = connect_store(url());
    for (int i = 0; i < 300; ++i) {
      if ((*store)->get("key")) return "";
      std::this_thread::sleep_for(milliseconds(50));
    }
    ADD_FAILURE() << "etcd does not answer";
    return "";
  }
  std::string url() const { return "etcd://127.0.0.1:" + std::to_string(port_); }

 private:
  const int port_ = free_port();
  const std::string folder_ =
      testing::TempDir() + "etcd-" + std::to_string(::getpid()) + "-" + std::to_string(port_);
  StartedProcess process_;
};

class Stores : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "etcd") {
      const std::string reason = etcd_.start();
      if (!reason.empty()) GTEST_SKIP() << "needs etcd (etcd-server of Debian): " << reason;
      url_ = etcd_.url();
    } else {
      auto server = StoreServer::start("127.0.0.1", 0);
      ASSERT_TRUE(server);
      server_ = std::move(*server);
      url_ = server_->url();
    }
    store_ = connect();
  }
  std::unique_ptr<Store> connect() {
    auto store = connect_store(url_);
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  bool is_etcd() const { return server_ == nullptr; }

  EtcdProcess etcd_;
  std::unique_ptr<StoreServer> server_;
  std::string url_;
  std::unique_ptr<Store> store_;
};

// What a store is: keys with values and leases, of those that are alive.
struct Model {
  std::map<std::string, std::pair<std::string, int64_t>> keys;
  std::set<int64_t> leases;
  std::vector<int64_t> granted;

  std::map<std::string, std::string> with_prefix(const std::string& prefix) const {
    std::map<std::string, std::string> found;
    for (const auto& [key, entry] : keys)
      if (key.compare(0, prefix.size(), prefix) == 0) found[key] = entry.first;
    return found;
  }
  std::optional<std::string> value(const std::string& key) const {
    const auto found = keys.find(key);
    if (found == keys.end()) return std::nullopt;
    return found->second.first;
  }
};

// Of letters that make ranges hard: the least, the greatest and their neighbours.
std::string random_key(Random& random, size_t least) {
  std::string key(least + below(random, 3), '\0');
  for (char& c : key)
    c = "\x00\x01"
        "ab\xfe\xff"[below(random, 6)];
  return key;
}

void set_randomly(Random& random, Store& store, Model& model) {
  const std::string key = random_key(random, 1);
  const std::string value = random_bytes(random, below(random, 20));
  const int64_t lease = model.granted.empty() || below(random, 2)
                            ? 0
                            : model.granted[below(random, model.granted.size())];
  const bool alive = lease == 0 || model.leases.count(lease) != 0;
  if (below(random, 2)) {
    const Status done = store.set(key, value, lease);
    ASSERT_EQ(done.ok(), alive);
    if (alive) model.keys[key] = {value, lease};
    return;
  }
  const auto now = model.value(key);
  std::optional<std::string> expected = now;
  if (below(random, 3) == 0) expected = below(random, 2) ? std::nullopt : std::optional("other");
  const auto done = store.compare_and_set(key, expected, value, lease);
  if (!alive && now == expected) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::kIo);
  } else if (done.ok() ||
             alive) {  // a lease that has ended may be refused before values are compared
    ASSERT_TRUE(done) << done.error().to_string();
    ASSERT_EQ(*done, now == expected);
    if (*done) model.keys[key] = {value, lease};
  }
}

void change_leases(Random& random, Store& store, Model& model) {
  if (model.granted.size() < 4 || below(random, 4) == 0) {
    const auto lease = store.grant_lease(600);
    ASSERT_TRUE(lease) << lease.error().to_string();
    ASSERT_TRUE(model.leases.insert(*lease).second);
    model.granted.push_back(*lease);
    return;
  }
  const int64_t lease = model.granted[below(random, model.granted.size())];
  if (below(random, 3) != 0) {
    const auto renewed = store.renew_lease(lease);
    ASSERT_TRUE(renewed) << renewed.error().to_string();
    ASSERT_EQ(*renewed, model.leases.count(lease) != 0);
    return;
  }
  ASSERT_TRUE(store.revoke_lease(lease));
  model.leases.erase(lease);
  std::erase_if(model.keys, [&](const auto& k) { return k.second.second == lease; });
}

TEST_P(Stores, AgreeWithModel) {
  Random random(6);
  Model model;
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    const size_t what = below(random, 10);
    if (what < 5) {
      set_randomly(random, *store_, model);
    } else if (what < 7) {
      const std::string key = random_key(random, 1);
      const auto value = store_->get(key);
      ASSERT_TRUE(value) << value.error().to_string();
      ASSERT_EQ(*value, model.value(key));
    } else if (what < 8) {
      const std::string prefix = random_key(random, below(random, 20) ? 1 : 0);
      ASSERT_TRUE(store_->remove(prefix));
      for (const auto& [key, value] : model.with_prefix(prefix)) model.keys.erase(key);
    } else {
      change_leases(random, *store_, model);
    }
    if (HasFatalFailure()) return;
    const std::string prefix = random_key(random, 0);
    const auto found = store_->list(prefix);
    ASSERT_TRUE(found) << found.error().to_string();
    ASSERT_EQ(*found, model.with_prefix(prefix));
  }
}

TEST_P(Stores, LargeValues) {
  Random random(7);
  for (const size_t size : {0u, 1u, 65536u, 1000000u}) {
    const std::string value = random_bytes(random, size);
    ASSERT_TRUE(store_->set("large", value));
    ASSERT_EQ(*store_->get("large"), value);
  }
  const Status refused = store_->set("large", std::string(4 << 20, 'v'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kIo);
  EXPECT_EQ((*store_->get("large"))->size(), 1000000u);
}

// One of four wins each round, and no increment is lost.
TEST_P(Stores, CompareAndSetHasOneWinner) {
  constexpr int kThreads = 4, kRounds = 40;
  std::vector<std::atomic<int>> wins(kRounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      // Two share a client, two have their own.
      const auto own = t < 2 ? nullptr : connect();
      Store& store = own ? *own : *store_;
      for (int round = 0; round < kRounds; ++round) {
        const auto won = store.compare_and_set("round/" + std::to_string(round), std::nullopt,
                                               std::to_string(t));
        ASSERT_TRUE(won) << won.error().to_string();
        wins[static_cast<size_t>(round)] += *won;
        for (bool added = false; !added;) {
          const auto before = store.get("count");
          ASSERT_TRUE(before);
          const int count = *before ? std::stoi(**before) : 0;
          const auto set = store.compare_and_set("count", *before, std::to_string(count + 1));
          ASSERT_TRUE(set) << set.error().to_string();
          added = *set;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& count : wins) EXPECT_EQ(count, 1);
  EXPECT_EQ(*store_->get("count"), std::to_string(kThreads * kRounds));
}

TEST_P(Stores, LeasesEndOnTime) {
  const int64_t seconds = is_etcd() ? 2 : 1;
  const auto asked = Clock::now();
  const auto left = store_->grant_lease(seconds), renewed = store_->grant_lease(seconds);
  ASSERT_TRUE(left && renewed);
  ASSERT_TRUE(store_->set("left", "1", *left));
  ASSERT_TRUE(store_->set("renewed", "1", *renewed));
  const auto granted = Clock::now();
  while (*store_->get("left")) {
    ASSERT_TRUE(*store_->renew_lease(*renewed));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_GE(Clock::now() - asked, std::chrono::seconds(seconds));
  EXPECT_LE(Clock::now() - granted, std::chrono::seconds(seconds + 1));
  EXPECT_FALSE(*store_->renew_lease(*left));
  EXPECT_EQ(*store_->get("renewed"), "1");
  EXPECT_TRUE(store_->revoke_lease(*left));
  EXPECT_TRUE(store_->revoke_lease(*renewed));
  EXPECT_EQ(*store_->get("renewed"), std::nullopt);
}

TEST_P(Stores, WaitForKey) {
  const auto before = Clock::now();
  const auto missing = wait_for_key(*store_, "missing", before + milliseconds(100));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'missing'"), std::string::npos);
  EXPECT_GE(Clock::now() - before, milliseconds(100));
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(store_->set("late", "value"));
  });
  const auto late = wait_for_key(*store_, "late", Clock::now() + std::chrono::seconds(10));
  later.join();
  ASSERT_TRUE(late);
  EXPECT_EQ(*late, "value");
}

INSTANTIATE_TEST_SUITE_P(, Stores, testing::Values("server", "etcd"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ConnectStore, Addresses) {
  for (const char* good : {"etcd://127.0.0.1:2379", "etcd://[::1]:1", "etcd://node-1.local:65535"})
    EXPECT_TRUE(connect_store(good)) << good;
  for (const char* bad :
       {"", "etcd://", "127.0.0.1:2379", "http://127.0.0.1:2379", "etcd://127.0.0.1",
        "etcd://127.0.0.1:", "etcd://:2379", "etcd://h:0", "etcd://h:65536", "etcd://h:12x",
        "etcd://h:-1", "etcd://::1:2379", "etcd://[]:2379", "etcd://a b:1", "etcd://h\r\n:1"}) {
    const auto store = connect_store(bad);
    ASSERT_FALSE(store) << bad;
    EXPECT_EQ(store.error().kind, ErrorKind::kInvalid);
  }
}

// "localhost" is looked up; ::1 has brackets.
TEST(ConnectStore, NamesAndIpv6) {
  const auto server = StoreServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server);
  const auto store = connect_store("etcd://localhost:" + std::to_string((*server)->port()));
  EXPECT_TRUE((*store)->set("key", "value"));
  const auto six = StoreServer::start("::1", 0);
  if (!six) GTEST_SKIP() << "needs IPv6: " << six.error().to_string();
  EXPECT_TRUE((*connect_store((*six)->url()))->set("key", "value"));
}

}  // namespace
}  // namespace tilewright::distributed
