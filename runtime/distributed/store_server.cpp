// One thread around poll(): it accepts connections, and lets each of them read, answer and write as far as it can
// without waiting.
#include "runtime/distributed/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <list>
#include <random>
#include <system_error>
#include <vector>

#include "runtime/distributed/etcd_service.h"
#include "runtime/distributed/server_connection.h"
#include "runtime/distributed/tcp_socket.h"

namespace tilewright::distributed {

namespace {

constexpr int kMostPause = 1000;   // ms; leases whose time is up give their memory back by then
constexpr int kMostAccepted = 64;  // before those that are there have their turn

int64_t random_lease() {
  std::random_device random;
  // Of 62 bits, so that counting on ends nowhere; the lower ones count.
  return (static_cast<int64_t>(random() & 0x3fffffff) << 32) + 1;
}

class ServerLoop {
 public:
  ServerLoop(Descriptor listener, int wake, const ServerLimits& limits)
      : listener_(std::move(listener)), wake_(wake), limits_(limits), table_(random_lease()) {}

  // Serves connections until the descriptor `wake` becomes readable.
  void run() {
    while (poll_once()) {
      const auto now = Clock::now();
      serve(now);
      if (polled_[1].revents != 0) accept_all(now);
      close_idle(now);
      close_large();
      table_.advance(now);
    }
  }

 private:
  bool poll_once();
  int pause() const;
  void serve(Deadline now);
  void accept_all(Deadline now);
  void close_longest_idle();
  void close_idle(Deadline now);
  void close_large();

  const Descriptor listener_;
  const int wake_;
  const ServerLimits limits_;
  KeyTable table_;
  std::list<ServerConnection> connections_;
  std::vector<pollfd> polled_;  // wake, listener, and the connections in order
};

int ServerLoop::pause() const {
  int pause = kMostPause;
  for (const auto& c : connections_)
    pause = c.is_ready() ? 0 : std::min(pause, milliseconds_until(c.last_done() + limits_.idle));
  return pause;
}

bool ServerLoop::poll_once() {
  polled_ = {{wake_, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const auto& c : connections_) polled_.push_back({c.socket().get(), c.events(), 0});
  const int count = ::poll(polled_.data(), polled_.size(), pause());
  if (count <= 0)
    for (pollfd& p : polled_) p.revents = 0;
  return polled_[0].revents == 0;
}

void ServerLoop::serve(Deadline now) {
  const Handler handler = [&](std::string_view path, std::string_view body) {
    return answer_etcd(table_, path, body, Clock::now());
  };
  size_t i = 2;
  for (auto c = connections_.begin(); c != connections_.end(); ++i) {
    const bool has_work = polled_[i].revents != 0 || c->is_ready();
    c = has_work && !c->serve(handler, now) ? connections_.erase(c) : std::next(c);
  }
}

void ServerLoop::accept_all(Deadline now) {
  for (int i = 0; i < kMostAccepted; ++i) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE) return;
      // The listener stays ready: without a connection to close, this waits for others to give descriptors back.
      if (connections_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return close_longest_idle();
    }
    if (connections_.size() >= limits_.connections) close_longest_idle();
    connections_.emplace_back(std::move(socket), now);
  }
}

void ServerLoop::close_longest_idle() {
  const auto idle =
      std::min_element(connections_.begin(), connections_.end(),
                       [](const auto& a, const auto& b) { return a.last_done() < b.last_done(); });
  if (idle != connections_.end()) connections_.erase(idle);
}

void ServerLoop::close_idle(Deadline now) {
  connections_.remove_if([&](const auto& c) { return c.last_done() + limits_.idle <= now; });
}

void ServerLoop::close_large() {
  size_t bytes = 0;
  for (const auto& c : connections_) bytes += c.size();
  while (bytes > limits_.bytes) {
    const auto largest =
        std::max_element(connections_.begin(), connections_.end(),
                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    bytes -= largest->size();
    connections_.erase(largest);
  }
}

}  // namespace

StoreServer::StoreServer(std::string address, int port, Descriptor wake)
    : address_(std::move(address)), port_(port), wake_(std::move(wake)) {}

StoreServer::~StoreServer() {
  const uint64_t one = 1;
  // An eventfd takes this at any time.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

std::string StoreServer::url() const { return "etcd://" + host_and_port(address_, port_); }

Result<std::unique_ptr<StoreServer>> StoreServer::start(const std::string& address, int port,
                                                        const ServerLimits& limits) {
  TW_ASSIGN(Descriptor listener, listen_on(address, port));
  TW_ASSIGN(const int bound, port_of(listener));
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return io_error("no eventfd: " + system_error_text(errno));
  const int wake_number = wake.get();
  std::unique_ptr<StoreServer> server(new StoreServer(address, bound, std::move(wake)));
  auto loop = std::make_unique<ServerLoop>(std::move(listener), wake_number, limits);
  // Signals are for the other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started;
  try {
    server->thread_ = std::thread([loop = std::move(loop)] { loop->run(); });
  } catch (const std::system_error& e) {
    started = io_error(std::string("cannot start the store's thread: ") + e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return started.error();
  return server;
}

}  // namespace tilewright::distributed
