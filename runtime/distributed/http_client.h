// A client of HTTP/1.1: one request at a time over a connection that is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"
#include "runtime/distributed/deadline.h"

namespace tilewright::distributed {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// For one thread at a time.
class HttpClient {
 public:
  static constexpr size_t kMostAnswer = 8 << 20;  // bytes of a body

  // Connects at the first request. host as connect_to (tcp_socket.h) takes it.
  HttpClient(std::string host, int port);

  // Whether a request may be sent twice: kOnLoss on a new connection, if the kept one ended before any byte of the
  // answer came. The peer may have done what it asked for.
  enum class Repeat : uint8_t { kNever, kOnLoss };
  // Sends a body of JSON to the path, and returns what is answered, with any status. Errors: kIo, after which the next
  // request opens a new connection.
  Result<HttpAnswer> post(std::string_view path, std::string_view body, Repeat repeat,
                          Deadline deadline);

 private:
  Result<HttpAnswer> request(const std::string& bytes, Deadline deadline, bool& lost);
  Result<HttpAnswer> read_answer(Deadline deadline, bool& lost);
  void drop_if_closed();

  const std::string host_;
  const int port_;
  Descriptor connection_;
};

// "HOST:PORT", with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, int port);

}  // namespace tilewright::distributed
