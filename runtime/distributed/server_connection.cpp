#include "runtime/distributed/server_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace tilewright::distributed {

namespace {

constexpr int kMostSteps = 32;  // of one connection before it is the others' turn

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 501: return "Not Implemented";
    default: return "Bad Request";
  }
}

}  // namespace

ServerConnection::ServerConnection(Descriptor socket, Deadline now)
    : socket_(std::move(socket)),
      reader_(HttpReader::Side::kRequests, kMostRequest),
      last_done_(now) {}

short ServerConnection::events() const { return answer_.empty() ? POLLIN : POLLOUT; }

bool ServerConnection::serve(const Handler& handler, Deadline now) {
  ready_ = false;
  Step step = Step::kOn;
  bool writes = false;
  for (int i = 0; i < kMostSteps && step == Step::kOn; ++i) {
    if (writes && answer_.empty()) break;  // one answer a turn
    writes = !answer_.empty();
    step = writes ? write_answer(now) : read_request(handler);
  }
  // What the socket still has is seen by poll().
  ready_ = step == Step::kOn && reader_.size() != 0;
  return step != Step::kClose;
}

ServerConnection::Step ServerConnection::write_answer(Deadline now) {
  const std::string_view rest = std::string_view(answer_).substr(written_);
  const ssize_t n = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno == EINTR) return Step::kOn;
  if (n < 0) return errno == EAGAIN ? Step::kWait : Step::kClose;
  written_ += static_cast<size_t>(n);
  if (written_ < answer_.size()) return Step::kOn;
  if (closes_) return Step::kClose;
  answer_ = std::string();  // gives the memory back
  written_ = 0;
  last_done_ = now;
  return Step::kOn;
}

// Parses pipelined requests that are already buffered before it reads from the socket.
ServerConnection::Step ServerConnection::read_request(const Handler& handler) {
  auto complete = reader_.add("");
  if (complete && !*complete) {
    char piece[16 << 10];
    const ssize_t n = ::recv(socket_.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) return Step::kOn;
    if (n < 0) return errno == EAGAIN ? Step::kWait : Step::kClose;
    if (n == 0) return Step::kClose;
    complete = reader_.add({piece, static_cast<size_t>(n)});
  }
  if (!complete) {
    const int status = complete.error().kind == ErrorKind::kLimit ? 413 : 400;
    queue(status, complete.error().message + "\n", false);
  } else if (*complete) {
    answer(reader_.take(), handler);
  }
  return Step::kOn;
}

void ServerConnection::answer(const HttpMessage& request, const Handler& handler) {
  const std::string_view line = request.first_line;
  const size_t method_end = line.find(' '), path_end = line.rfind(' ');
  const bool is_http = method_end != std::string_view::npos && method_end < path_end &&
                       line.substr(path_end + 1, 7) == "HTTP/1.";
  if (!is_http) return queue(400, "the first line is no request of HTTP/1\n", false);
  if (line.substr(0, method_end) != "POST") return queue(405, "another method than POST\n", false);
  const HttpAnswer answer =
      handler(line.substr(method_end + 1, path_end - method_end - 1), request.body);
  queue(answer.status, answer.body, request.keep_alive);
}

void ServerConnection::queue(int status, std::string_view body, bool keep_alive) {
  answer_ = "HTTP/1.1 " + std::to_string(status) + " " + reason_of(status) +
            "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
            (keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
  answer_.append(body);
  written_ = 0;
  closes_ = !keep_alive;
}

}  // namespace tilewright::distributed
