#include "runtime/distributed/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tilewright::distributed {

namespace {

constexpr size_t kPiece = 64 << 10;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

// What a lookup leaves: addresses, or getaddrinfo's error.
struct Lookup {
  int error = 0;
  std::vector<Address> addresses;
};

Lookup look_up(const std::string& host, int port, int flags) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  Lookup lookup;
  lookup.error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (lookup.error != 0) return lookup;
  for (const addrinfo* a = found; a; a = a->ai_next) {
    Address address;
    if (a->ai_addrlen > sizeof address.bytes) continue;
    std::memcpy(&address.bytes, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
    lookup.addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return lookup;
}

// A lookup that goes on when nobody waits for it any more: getaddrinfo() knows no deadline.
struct PendingLookup {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  Lookup lookup;
};

Result<Lookup> look_up_name(const std::string& host, int port, Deadline deadline) {
  auto pending = std::make_shared<PendingLookup>();
  try {
    std::thread([pending, host, port] {
      Lookup lookup = look_up(host, port, AI_ADDRCONFIG);
      std::lock_guard lock(pending->mutex);
      pending->lookup = std::move(lookup);
      pending->is_done = true;
      pending->done.notify_all();
    }).detach();
  } catch (const std::system_error& e) {
    return io_error(std::string("cannot start a thread that looks a name up: ") + e.what());
  }
  std::unique_lock lock(pending->mutex);
  if (!pending->done.wait_until(lock, deadline, [&] { return pending->is_done; }))
    return io_error("no address was found by the time limit", host);
  return pending->lookup;
}

Result<std::vector<Address>> addresses_of(const std::string& host, int port, Deadline deadline) {
  Lookup lookup = look_up(host, port, AI_NUMERICHOST);
  if (lookup.error == EAI_NONAME) { TW_ASSIGN(lookup, look_up_name(host, port, deadline)); }
  if (lookup.error != 0)
    return io_error(std::string("has no address: ") + ::gai_strerror(lookup.error), host);
  return std::move(lookup.addresses);
}

void set_flag(const Descriptor& socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket.get(), level, option, &on, sizeof on);
}

Descriptor open_socket(const Address& address) {
  return Descriptor(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

Result<Descriptor> connect_to(const Address& address, Deadline deadline) {
  Descriptor socket = open_socket(address);
  if (!socket) return io_error("no socket: " + system_error_text(errno));
  if (::connect(socket.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return io_error(system_error_text(errno));
    TW_RETURN_IF_ERROR(wait_until_ready(socket, POLLOUT, deadline));
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return io_error(system_error_text(error));
  }
  set_flag(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

}  // namespace

std::string system_error_text(int number) {
  std::string text = std::generic_category().message(number);
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

int milliseconds_until(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

Status wait_until_ready(const Descriptor& socket, short events, Deadline deadline) {
  while (Clock::now() < deadline) {
    pollfd p{socket.get(), events, 0};
    const int count = ::poll(&p, 1, milliseconds_until(deadline));
    if (count > 0) return {};
    if (count < 0 && errno != EINTR) return io_error("poll: " + system_error_text(errno));
  }
  return io_error("nothing came by the time limit");
}

Result<Descriptor> connect_to(const std::string& host, int port, Deadline deadline) {
  TW_ASSIGN(const std::vector<Address> addresses, addresses_of(host, port, deadline));
  Error error = io_error("has no address", host);
  for (const Address& address : addresses) {
    auto socket = connect_to(address, deadline);
    if (socket) return socket;
    error = std::move(socket.error());
  }
  return error;
}

Result<Descriptor> listen_on(const std::string& address, int port) {
  const Lookup lookup = look_up(address, port, AI_NUMERICHOST | AI_PASSIVE);
  if (lookup.error != 0 || lookup.addresses.empty())
    return invalid("'" + address + "' is no address to listen at, as 127.0.0.1 is");
  const std::string location = address + ":" + std::to_string(port);
  Descriptor socket = open_socket(lookup.addresses[0]);
  if (!socket) return io_error("no socket: " + system_error_text(errno), location);
  set_flag(socket, SOL_SOCKET, SO_REUSEADDR);
  if (::bind(socket.get(), lookup.addresses[0].get(), lookup.addresses[0].size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return io_error("cannot listen: " + system_error_text(errno), location);
  return socket;
}

Result<int> port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return io_error("a socket has no port: " + system_error_text(errno));
  // The port lies at the same place in both.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  sockaddr_in in{};
  std::memcpy(&in, &address, sizeof in);
  return static_cast<int>(ntohs(in.sin_port));
}

Result<std::string> address_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = "";
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return io_error("a socket has no address: " + system_error_text(errno));
  return std::string(text);
}

Status send_all(const Descriptor& socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    TW_RETURN_IF_ERROR(wait_until_ready(socket, POLLOUT, deadline));
    const ssize_t n = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0)
      bytes.remove_prefix(static_cast<size_t>(n));
    else if (errno != EAGAIN && errno != EINTR)
      return io_error("cannot send: " + system_error_text(errno));
  }
  return {};
}

Result<bool> receive_some(const Descriptor& socket, std::string& bytes, Deadline deadline) {
  char piece[kPiece];
  for (;;) {
    TW_RETURN_IF_ERROR(wait_until_ready(socket, POLLIN, deadline));
    const ssize_t n = ::recv(socket.get(), piece, sizeof piece, 0);
    if (n > 0) bytes.append(piece, static_cast<size_t>(n));
    if (n >= 0) return n > 0;
    if (errno != EAGAIN && errno != EINTR) return false;
  }
}

}  // namespace tilewright::distributed
