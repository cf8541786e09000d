// A connection of a server of HTTP, between two calls of poll().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/descriptor.h"
#include "runtime/distributed/deadline.h"
#include "runtime/distributed/http_client.h"
#include "runtime/distributed/http_message.h"

namespace tilewright::distributed {

// Answers a POST to a path.
using Handler = std::function<HttpAnswer(std::string_view path, std::string_view body)>;

// One connection to a client: requests are answered in order, and none is read while an answer waits to be taken.
class ServerConnection {
 public:
  static constexpr size_t kMostRequest = 2 << 20;  // bytes of a body, as etcd has it

  ServerConnection(Descriptor socket, Deadline now);

  const Descriptor& socket() const { return socket_; }
  // What poll() is to wait for.
  short events() const;
  // Reads, answers and writes as far as this goes without waiting, at most one request. Returns false when the
  // connection is to be closed.
  bool serve(const Handler& handler, Deadline now);
  // There is a request that serve() has not come to.
  bool is_ready() const { return ready_; }
  // When it was opened, or an answer was last taken as a whole.
  Deadline last_done() const { return last_done_; }
  size_t size() const { return reader_.size() + answer_.size(); }

 private:
  enum class Step : uint8_t { kOn, kWait, kClose };
  Step write_answer(Deadline now);
  Step read_request(const Handler& handler);
  void answer(const HttpMessage& request, const Handler& handler);
  void queue(int status, std::string_view body, bool keep_alive);

  Descriptor socket_;
  HttpReader reader_;
  std::string answer_;
  size_t written_ = 0;
  bool closes_ = false;  // after the answer
  bool ready_ = false;
  Deadline last_done_;
};

}  // namespace tilewright::distributed
