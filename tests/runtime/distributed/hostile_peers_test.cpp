// Peers that send what they should not, stop in the middle, or go away: every call returns by its limit, and a server
// goes on serving the others.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <list>
#include <thread>

#include "runtime/distributed/base64.h"
#include "runtime/distributed/store.h"
#include "runtime/distributed/store_server.h"
#include "runtime/distributed/tcp_socket.h"
#include "tests/runtime/distributed/random_bytes.h"

namespace tilewright::distributed {
namespace {

using std::chrono::milliseconds;

// On a busy machine.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kSlack = milliseconds(10000);
#else
constexpr auto kSlack = milliseconds(1500);
#endif

// Accepts connections, and answers what comes on each with bytes of the test's choice.
class FakeServer {
 public:
  struct Reply {
    std::string bytes;
    bool closes = false;
  };
  explicit FakeServer(std::function<Reply()> reply) : reply_(std::move(reply)) {
    auto listener = listen_on("127.0.0.1", 0);
    port_ = *port_of(*listener);
    thread_ = std::thread([this, l = std::move(*listener)] { run(l); });
  }
  ~FakeServer() {
    stop_ = true;
    thread_.join();
  }
  std::unique_ptr<Store> connect(milliseconds limit) const {
    return std::move(*connect_store("etcd://127.0.0.1:" + std::to_string(port_), limit));
  }

 private:
  void run(const Descriptor& listener) {
    std::list<Descriptor> open;
    while (!stop_) {
      std::vector<pollfd> polled{{listener.get(), POLLIN, 0}};
      for (const Descriptor& d : open) polled.push_back({d.get(), POLLIN, 0});
      if (::poll(polled.data(), polled.size(), 10) <= 0) continue;
      size_t i = 1;
      for (auto d = open.begin(); d != open.end(); ++i)
        d = polled[i].revents != 0 && !serve(*d) ? open.erase(d) : std::next(d);
      if (polled[0].revents != 0)
        open.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
  }
  bool serve(const Descriptor& socket) {
    char bytes[8192];
    if (::recv(socket.get(), bytes, sizeof bytes, 0) <= 0) return false;
    const Reply reply = reply_();
    ::send(socket.get(), reply.bytes.data(), reply.bytes.size(), MSG_NOSIGNAL);
    return !reply.closes;
  }

  std::function<Reply()> reply_;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::string answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Any call; whether it succeeded.
bool call(Random& random, Store& store) {
  switch (below(random, 7)) {
    case 0: return store.get("key").ok();
    case 1: return store.list("k").ok();
    case 2: return store.set("key", "value").ok();
    case 3: return store.compare_and_set("key", std::nullopt, "value").ok();
    case 4: return store.grant_lease(1).ok();
    case 5: return store.renew_lease(1).ok();
    default: return store.revoke_lease(1).ok();
  }
}

TEST(Client, DamagedAnswers) {
  Random random(8);
  const std::string bodies[] = {
      R"({"header":{"revision":"7"},"kvs":[{"key":"a2V5","value":"dg==","version":"1"}],"count":"1"})",
      R"({"header":{"revision":"7"},"succeeded":true,"responses":[{"response_put":{}}]})",
      R"({"result":{"header":{"revision":"7"},"ID":"12","TTL":"5"},"ID":"12","TTL":"5"})", "{}"};
  FakeServer server([&, random = Random(9)]() mutable {
    std::string bytes = answer(bodies[below(random, 4)]);
    if (below(random, 8)) bytes = damaged(random, std::move(bytes));
    return FakeServer::Reply{std::move(bytes), below(random, 2) == 0};
  });
  constexpr milliseconds kLimit{20};
  const auto store = server.connect(kLimit);
  int good = 0;
  for (int i = 0; i < 300; ++i) {
    const auto before = Clock::now();
    good += call(random, *store);
    ASSERT_LE(Clock::now() - before, kLimit + kSlack);
  }
  EXPECT_GT(good, 10);
  EXPECT_LT(good, 250);
}

TEST(Client, WrongTypes) {
  for (const std::string& body : std::vector<std::string>{
           "[]", "3", "", "{", R"({"kvs":{}})", R"({"kvs":[3]})", R"({"kvs":[{"key":3}]})",
           R"({"kvs":[{"key":"@"}]})", R"({"kvs":[{"key":"YQ=="}]})"}) {
    FakeServer server([&] { return FakeServer::Reply{answer(body), false}; });
    const auto value = server.connect(milliseconds(500))->get("key");
    ASSERT_FALSE(value) << body;
    EXPECT_EQ(value.error().kind, ErrorKind::kIo);
  }
  const std::string deep(1 << 20, '[');
  FakeServer server([&] { return FakeServer::Reply{answer("{\"kvs\":" + deep), true}; });
  EXPECT_FALSE(server.connect(milliseconds(2000))->get("key"));
}

TEST(Client, EndlessAndMissingAnswers) {
  for (const std::string& bytes :
       {std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Le"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")}) {
    FakeServer server([&] { return FakeServer::Reply{bytes, false}; });
    const auto before = Clock::now();
    const auto value = server.connect(milliseconds(100))->get("key");
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().kind, ErrorKind::kIo);
    EXPECT_GE(Clock::now() - before, milliseconds(100));
    EXPECT_LE(Clock::now() - before, milliseconds(100) + kSlack);
  }
}

// The second request on a connection is lost before its answer begins: reads are repeated, compare-and-set is not, as
// it may have taken effect.
TEST(Client, LostConnections) {
  std::atomic<int> requests{0};
  FakeServer server([&] {
    return ++requests == 2 ? FakeServer::Reply{"", true} : FakeServer::Reply{answer("{}"), false};
  });
  const auto reader = server.connect(milliseconds(2000));
  EXPECT_TRUE(reader->get("key"));
  EXPECT_TRUE(reader->get("key"));
  EXPECT_EQ(requests, 3);
  requests = 0;
  const auto writer = server.connect(milliseconds(2000));
  EXPECT_TRUE(writer->get("key"));
  const auto set = writer->compare_and_set("key", std::nullopt, "value");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind, ErrorKind::kIo);
  EXPECT_EQ(requests, 2);
  EXPECT_TRUE(writer->compare_and_set("key", std::nullopt, "value"));
}

// A connection that the server closed in between is not used, whatever the call.
TEST(Client, IdleConnectionsAreReplaced) {
  ServerLimits limits;
  limits.idle = milliseconds(30);
  const auto server = StoreServer::start("127.0.0.1", 0, limits);
  ASSERT_TRUE(server);
  const auto store = std::move(*connect_store((*server)->url()));
  for (int i = 0; i < 5; ++i) {
    const auto set = store->compare_and_set("key" + std::to_string(i), std::nullopt, "value");
    ASSERT_TRUE(set) << set.error().to_string();
    EXPECT_TRUE(*set);
    std::this_thread::sleep_for(milliseconds(100));
  }
}

TEST(Client, ServerGoesAway) {
  for (int round = 0; round < 5; ++round) {
    auto server = StoreServer::start("127.0.0.1", 0);
    ASSERT_TRUE(server);
    const auto store = std::move(*connect_store((*server)->url(), milliseconds(500)));
    ASSERT_TRUE(store->set("key", "value"));
    std::thread end([&] {
      std::this_thread::sleep_for(milliseconds(20));
      server->reset();
    });
    Status status;
    auto before = Clock::now();
    while (status) {
      before = Clock::now();
      status = store->set("key", std::string(100000, 'v'));
    }
    EXPECT_LE(Clock::now() - before, milliseconds(500) + kSlack);
    EXPECT_EQ(status.error().kind, ErrorKind::kIo);
    end.join();
  }
}

// --- The server. ---

Descriptor connect_raw(const StoreServer& server) {
  auto socket = connect_to("127.0.0.1", server.port(), Clock::now() + std::chrono::seconds(5));
  EXPECT_TRUE(socket);
  return std::move(*socket);
}

std::string request(Random& random) {
  const std::string key = encode_base64(random_bytes(random, below(random, 4)));
  const std::string value = encode_base64(random_bytes(random, below(random, 60)));
  const std::string put = R"({"key":")" + key + R"(","value":")" + value + R"("})";
  const std::pair<std::string, std::string> all[] = {
      {"range", R"({"key":")" + key + R"(","range_end":"AA=="})"},
      {"put", put},
      {"txn",
       R"({"compare":[{"key":")" + key +
           R"(","target":"VERSION","result":"EQUAL","version":"0"}],"success":[{"request_put":)" +
           put + "}]}"},
      {"deleterange", R"({"key":")" + key + R"("})"},
      {"grant", R"({"TTL":"1"})"},
      {"keepalive", R"({"ID":"1"})"},
      {"revoke", R"({"ID":"1"})"}};
  const size_t i = below(random, 7);
  return "POST /v3/" + std::string(i < 4 ? "kv/" : "lease/") + all[i].first +
         " HTTP/1.1\r\nContent-Length: " + std::to_string(all[i].second.size()) + "\r\n\r\n" +
         all[i].second;
}

TEST(Server, DamagedRequests) {
  Random random(10);
  ServerLimits limits;
  limits.connections = 16;
  limits.idle = std::chrono::seconds(5);
  const auto server = StoreServer::start("127.0.0.1", 0, limits);
  ASSERT_TRUE(server);
  const auto store = std::move(*connect_store((*server)->url()));
  std::list<Descriptor> open;
  for (int i = 0; i < 1500; ++i) {
    open.push_back(connect_raw(**server));
    if (open.size() > 40) open.pop_front();
    std::string bytes = request(random);
    while (below(random, 3) == 0) bytes += request(random);
    if (below(random, 8)) bytes = damaged(random, std::move(bytes));
    ::send(open.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (i % 50 != 0) continue;
    const auto before = Clock::now();
    ASSERT_TRUE(store->set("good/key", std::to_string(i)));
    const auto value = store->get("good/key");
    ASSERT_TRUE(value) << value.error().to_string();
    ASSERT_LE(Clock::now() - before, kSlack);
  }
}

// Requests in one piece are answered in order, and an answer that nobody takes holds up nobody else.
TEST(Server, PipelinedAndUntakenAnswers) {
  const auto server = StoreServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server);
  const auto store = std::move(*connect_store((*server)->url()));
  ASSERT_TRUE(store->set("large", std::string(300000, 'v')));
  const std::string body = R"({"key":"AA==","range_end":"AA=="})";
  const std::string one =
      "POST /v3/kv/range HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body;
  std::string many;
  for (int i = 0; i < 200; ++i) many += one;
  std::list<Descriptor> open;
  for (int i = 0; i < 6; ++i) {
    open.push_back(connect_raw(**server));
    ::send(open.back().get(), many.data(), many.size(), MSG_NOSIGNAL);
  }
  for (int i = 0; i < 20; ++i) {
    const auto before = Clock::now();
    ASSERT_TRUE(store->set("key", "value"));
    ASSERT_LE(Clock::now() - before, kSlack);
  }
  const Descriptor socket = connect_raw(**server);
  const std::string five = one + one + one + one + one;
  ASSERT_TRUE(send_all(socket, five, Clock::now() + std::chrono::seconds(5)));
  std::string bytes;
  size_t answers = 0;
  while (answers < 5) {
    ASSERT_TRUE(*receive_some(socket, bytes, Clock::now() + std::chrono::seconds(5)));
    answers = 0;
    for (size_t at = 0; (at = bytes.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++answers;
  }
}

TEST(Server, ClosesIdleConnections) {
  ServerLimits limits;
  limits.idle = milliseconds(200);
  const auto server = StoreServer::start("127.0.0.1", 0, limits);
  ASSERT_TRUE(server);
  for (const std::string& half :
       std::vector<std::string>{"", "POST /v3/kv/put HTTP/1.1\r\nContent-",
                                "POST /v3/kv/put HTTP/1.1\r\nContent-Length: 20\r\n\r\n{"}) {
    const Descriptor socket = connect_raw(**server);
    ::send(socket.get(), half.data(), half.size(), MSG_NOSIGNAL);
    std::string bytes;
    const auto before = Clock::now();
    const auto open = receive_some(socket, bytes, before + milliseconds(200) + kSlack);
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_FALSE(*open);
    EXPECT_GE(Clock::now() - before, milliseconds(100));
  }
}

TEST(Server, RefusesWhatItDoesNotServe) {
  const auto server = StoreServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server);
  const std::pair<std::string, std::string> requests[] = {
      {"POST /v3/watch HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", " 404 "},
      {"GET /v3/kv/put HTTP/1.1\r\n\r\n", " 405 "},
      {"POST /v3/kv/range HTTP/1.1\r\nContent-Length: 26\r\n\r\n{\"key\":\"YQ==\",\"limit\":\"1\"}",
       " 501 "},
      {"POST /v3/kv/range HTTP/1.1\r\nContent-Length: 3\r\n\r\n[1]", " 400 "},
      {"POST /v3/kv/put HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", " 413 "},
      {"\r\n\r\n", " 400 "}};
  for (const auto& [bytes, status] : requests) {
    const Descriptor socket = connect_raw(**server);
    ASSERT_TRUE(send_all(socket, bytes, Clock::now() + std::chrono::seconds(5)));
    std::string received;
    ASSERT_TRUE(receive_some(socket, received, Clock::now() + std::chrono::seconds(5)));
    EXPECT_NE(received.find(status), std::string::npos) << bytes << "\n" << received;
  }
}

TEST(Server, Addresses) {
  const auto first = StoreServer::start("127.0.0.1", 0);
  ASSERT_TRUE(first);
  const auto taken = StoreServer::start("127.0.0.1", (*first)->port());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::kIo);
  const auto name = StoreServer::start("no address", 0);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace tilewright::distributed
