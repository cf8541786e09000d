#include "runtime/distributed/http_client.h"

#include <sys/socket.h>

#include <cerrno>

#include "runtime/distributed/http_message.h"
#include "runtime/distributed/tcp_socket.h"

namespace tilewright::distributed {

namespace {

// The status of "HTTP/1.1 200 OK"; 0: it is none, or only announces another answer.
int status_of(std::string_view line) {
  const bool is_status = line.size() >= 12 && line.substr(0, 7) == "HTTP/1." && line[8] == ' ' &&
                         (line.size() == 12 || line[12] == ' ');
  if (!is_status) return 0;
  int status = 0;
  for (const char c : line.substr(9, 3)) {
    if (c < '0' || c > '9') return 0;
    status = 10 * status + (c - '0');
  }
  return status >= 200 ? status : 0;
}

}  // namespace

std::string host_and_port(const std::string& host, int port) {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

HttpClient::HttpClient(std::string host, int port) : host_(std::move(host)), port_(port) {}

Result<HttpAnswer> HttpClient::post(std::string_view path, std::string_view body, Repeat repeat,
                                    Deadline deadline) {
  std::string bytes = "POST ";
  bytes.append(path).append(" HTTP/1.1\r\nHost: ").append(host_and_port(host_, port_));
  bytes.append("\r\nContent-Type: application/json\r\nContent-Length: ");
  bytes.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
  drop_if_closed();
  const bool kept = static_cast<bool>(connection_);
  bool lost = false;
  auto answer = request(bytes, deadline, lost);
  if (!answer && lost && kept && repeat == Repeat::kOnLoss) answer = request(bytes, deadline, lost);
  if (answer) return answer;
  Error error = std::move(answer.error());
  connection_.reset();
  return io_error(std::move(error.message), host_and_port(host_, port_));
}

// A peer that closed the connection since the last answer gets the request on a new one: nothing was sent yet, so that
// this is safe for every request. Bytes that nobody asked for are the end of trust in the connection, too.
void HttpClient::drop_if_closed() {
  if (!connection_) return;
  char byte = 0;
  const ssize_t n = ::recv(connection_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n >= 0 || (errno != EAGAIN && errno != EINTR)) connection_.reset();
}

Result<HttpAnswer> HttpClient::request(const std::string& bytes, Deadline deadline, bool& lost) {
  lost = false;
  if (!connection_) {
    auto connection = connect_to(host_, port_, deadline);
    if (!connection) return io_error("cannot connect: " + connection.error().to_string());
    connection_ = std::move(*connection);
  }
  const Status sent = send_all(connection_, bytes, deadline);
  if (sent) return read_answer(deadline, lost);
  // Who refuses a request may answer before all of it was sent.
  auto answer = Clock::now() < deadline ? read_answer(deadline, lost) : sent.error();
  connection_.reset();
  if (answer) return answer;
  return sent.error();
}

Result<HttpAnswer> HttpClient::read_answer(Deadline deadline, bool& lost) {
  HttpReader reader(HttpReader::Side::kAnswers, kMostAnswer);
  std::string bytes;
  bool begun = false, complete = false;
  while (!complete) {
    bytes.clear();
    TW_ASSIGN(const bool open, receive_some(connection_, bytes, deadline));
    if (!open) {
      connection_.reset();
      lost = !begun;
      return io_error(begun ? "the connection was closed within an answer"
                            : "the connection was closed without an answer");
    }
    begun = true;
    auto added = reader.add(bytes);
    if (!added) return io_error("no answer of HTTP: " + added.error().message);
    complete = *added;
  }
  HttpMessage message = reader.take();
  const int status = status_of(message.first_line);
  if (status == 0) return io_error("no answer of HTTP: the first line has no status");
  if (!message.keep_alive || reader.size() != 0) connection_.reset();
  return HttpAnswer{status, std::move(message.body)};
}

}  // namespace tilewright::distributed
