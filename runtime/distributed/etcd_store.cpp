// Store over the JSON gateway of etcd 3.4 and later: one POST a call, with 64-bit numbers as strings, keys and values
// in base64, and fields left out that are 0 or empty. https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway
#include <charconv>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "runtime/distributed/base64.h"
#include "runtime/distributed/http_client.h"
#include "runtime/distributed/json_text.h"
#include "runtime/distributed/store.h"
#include "runtime/distributed/tcp_socket.h"

namespace tilewright::distributed {

using nlohmann::json;

namespace {

using Repeat = HttpClient::Repeat;
constexpr size_t kMostIdle = 4;  // connections that are kept

// The end of the range of keys that begin with the prefix: the least that is greater than all of them. One byte 0
// stands for the end of all keys, also as the first key.
std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');
  ++prefix.back();
  return prefix;
}
json range_of_prefix(const std::string& prefix) {
  const std::string& first = prefix.empty() ? std::string(1, '\0') : prefix;
  return {{"key", encode_base64(first)}, {"range_end", encode_base64(end_of_prefix(prefix))}};
}

json put_of(const std::string& key, const std::string& value, int64_t lease) {
  json put{{"key", encode_base64(key)}, {"value", encode_base64(value)}};
  if (lease != 0) put["lease"] = std::to_string(lease);
  return put;
}

class EtcdStore : public Store {
 public:
  EtcdStore(std::string host, int port, std::chrono::milliseconds limit)
      : host_(std::move(host)), port_(port), limit_(limit) {}

  Result<std::optional<std::string>> get(const std::string& key) override;
  Result<std::map<std::string, std::string>> list(const std::string& prefix) override;
  Status set(const std::string& key, const std::string& value, int64_t lease) override;
  Result<bool> compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                               const std::string& value, int64_t lease) override;
  Status remove(const std::string& prefix) override;
  Result<int64_t> grant_lease(int64_t seconds) override;
  Result<bool> renew_lease(int64_t lease) override;
  Status revoke_lease(int64_t lease) override;

 private:
  // An answer of any status, as an object; the body need not be one where the status is an error.
  struct Answer {
    int status = 0;
    json object;
  };
  Result<Answer> ask(const char* path, const json& request, Repeat repeat);
  // The object of an answer with status 200.
  Result<json> call(const char* path, const json& request, Repeat repeat = Repeat::kOnLoss);
  Result<std::map<std::string, std::string>> read_range(const json& request);
  Error refused(const char* path, const Answer& answer) const;
  Error not_understood(const char* path, const char* what) const;
  std::unique_ptr<HttpClient> take_client();
  void keep_client(std::unique_ptr<HttpClient> client);

  const std::string host_;
  const int port_;
  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<HttpClient>> idle_;  // clients that no call uses
};

std::unique_ptr<HttpClient> EtcdStore::take_client() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<HttpClient>(host_, port_);
  auto client = std::move(idle_.back());
  idle_.pop_back();
  return client;
}

void EtcdStore::keep_client(std::unique_ptr<HttpClient> client) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(client));
}

// "etcdserver: requested lease not found", where the answer has such a message.
Error EtcdStore::refused(const char* path, const Answer& answer) const {
  const json& text = field(answer.object, "error");
  std::string message =
      std::string("the store refuses ") + path + " with status " + std::to_string(answer.status);
  if (text.is_string()) message += ": " + text.get<std::string>();
  return io_error(std::move(message), host_and_port(host_, port_));
}

Error EtcdStore::not_understood(const char* path, const char* what) const {
  return io_error(std::string("the store's answer to ") + path + " has " + what,
                  host_and_port(host_, port_));
}

Result<EtcdStore::Answer> EtcdStore::ask(const char* path, const json& request, Repeat repeat) {
  auto client = take_client();
  auto answer = client->post(path, request.dump(), repeat, Clock::now() + limit_);
  keep_client(std::move(client));
  if (!answer) {
    Error error = std::move(answer.error());
    error.message = std::string("the store did not answer ") + path + ": " + error.message;
    return error;
  }
  auto object = parse_object(answer->body);
  if (!object && answer->status == 200) return not_understood(path, "no object of JSON");
  return Answer{answer->status, object ? std::move(*object) : json::object()};
}

Result<json> EtcdStore::call(const char* path, const json& request, Repeat repeat) {
  TW_ASSIGN(Answer answer, ask(path, request, repeat));
  if (answer.status != 200) return refused(path, answer);
  return std::move(answer.object);
}

Result<std::map<std::string, std::string>> EtcdStore::read_range(const json& request) {
  constexpr const char* kPath = "/v3/kv/range";
  TW_ASSIGN(const json answer, call(kPath, request));
  std::map<std::string, std::string> values;
  const json& pairs = field(answer, "kvs");
  if (pairs.is_null()) return values;
  if (!pairs.is_array()) return not_understood(kPath, "no list of keys");
  for (const json& pair : pairs) {
    if (!pair.is_object()) return not_understood(kPath, "a key that is no object");
    auto key = read_bytes(field(pair, "key"));
    auto value = read_bytes(field(pair, "value"));
    if (!key || !value) return not_understood(kPath, "a key or value that is not in base64");
    values.insert_or_assign(std::move(*key), std::move(*value));
  }
  return values;
}

Result<std::optional<std::string>> EtcdStore::get(const std::string& key) {
  TW_ASSIGN(auto values, read_range({{"key", encode_base64(key)}}));
  if (values.empty()) return std::optional<std::string>();
  const auto found = values.find(key);
  if (found == values.end() || values.size() != 1)
    return not_understood("/v3/kv/range", "another key than the one that was asked for");
  return std::optional<std::string>(std::move(found->second));
}

Result<std::map<std::string, std::string>> EtcdStore::list(const std::string& prefix) {
  TW_ASSIGN(auto values, read_range(range_of_prefix(prefix)));
  for (const auto& [key, value] : values)
    if (key.compare(0, prefix.size(), prefix) != 0)
      return not_understood("/v3/kv/range", "a key without the prefix that was asked for");
  return values;
}

Status EtcdStore::set(const std::string& key, const std::string& value, int64_t lease) {
  TW_RETURN_IF_ERROR(call("/v3/kv/put", put_of(key, value, lease)));
  return {};
}

Result<bool> EtcdStore::compare_and_set(const std::string& key,
                                        const std::optional<std::string>& expected,
                                        const std::string& value, int64_t lease) {
  constexpr const char* kPath = "/v3/kv/txn";
  json compare{{"key", encode_base64(key)}, {"result", "EQUAL"}};
  if (expected) {
    compare["target"] = "VALUE";
    compare["value"] = encode_base64(*expected);
  } else {
    compare["target"] = "VERSION";  // how often the key was set since it was last removed
    compare["version"] = "0";
  }
  const json request{{"compare", json::array({std::move(compare)})},
                     {"success", json::array({json{{"request_put", put_of(key, value, lease)}}})}};
  TW_ASSIGN(const json answer, call(kPath, request, Repeat::kNever));
  const auto succeeded = read_bool(field(answer, "succeeded"));
  if (!succeeded) return not_understood(kPath, "a 'succeeded' that is neither true nor false");
  return *succeeded;
}

Status EtcdStore::remove(const std::string& prefix) {
  TW_RETURN_IF_ERROR(call("/v3/kv/deleterange", range_of_prefix(prefix)));
  return {};
}

// A grant that is asked for twice leaves a lease that nobody renews.
Result<int64_t> EtcdStore::grant_lease(int64_t seconds) {
  constexpr const char* kPath = "/v3/lease/grant";
  TW_ASSIGN(const json answer, call(kPath, {{"TTL", std::to_string(seconds)}}));
  const auto id = read_int64(field(answer, "ID"));
  if (!id || *id == 0) return not_understood(kPath, "no ID of a lease");
  return *id;
}

// The gateway sends a stream of answers, here of one; the time to live of a lease that has ended is 0.
Result<bool> EtcdStore::renew_lease(int64_t lease) {
  constexpr const char* kPath = "/v3/lease/keepalive";
  TW_ASSIGN(const json answer, call(kPath, {{"ID", std::to_string(lease)}}));
  const json& result = field(answer, "result");
  if (!result.is_object()) return not_understood(kPath, "no result");
  const auto seconds = read_int64(field(result, "TTL"));
  if (!seconds) return not_understood(kPath, "a time to live that is no number");
  return *seconds > 0;
}

Status EtcdStore::revoke_lease(int64_t lease) {
  constexpr const char* kPath = "/v3/lease/revoke";
  constexpr int64_t kNotFound = 5;  // of gRPC's status codes
  TW_ASSIGN(const Answer answer, ask(kPath, {{"ID", std::to_string(lease)}}, Repeat::kOnLoss));
  if (answer.status == 200) return {};
  if (read_int64(field(answer.object, "code")) == kNotFound) return {};
  return refused(kPath, answer);
}

}  // namespace

// Host, without brackets, and port.
static Result<std::pair<std::string, int>> parse_address(const std::string& address) {
  constexpr std::string_view kScheme = "etcd://";
  const Error error = invalid("the store's address is '" + address +
                              "', expected etcd://HOST:PORT, an IPv6 address in brackets");
  if (address.compare(0, kScheme.size(), kScheme) != 0) return error;
  std::string host = address.substr(kScheme.size());
  const size_t colon = host.rfind(':');
  if (colon == std::string::npos) return error;
  const std::string digits = host.substr(colon + 1);
  host.resize(colon);
  int port = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, failure] = std::from_chars(digits.data(), end, port);
  if (failure != std::errc() || stopped != end || port < 1 || port > 65535) return error;
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  // Anything else would also end up in the head of each request.
  constexpr const char* kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const std::string letters = std::string(kLetters) + (brackets ? ":%" : "");
  if (host.empty() || host.find_first_not_of(letters) != std::string::npos) return error;
  return std::pair(host, port);
}

Result<std::unique_ptr<Store>> connect_store(const std::string& address,
                                             std::chrono::milliseconds limit) {
  TW_ASSIGN(const auto place, parse_address(address));
  return std::unique_ptr<Store>(std::make_unique<EtcdStore>(place.first, place.second, limit));
}

Result<std::string> address_towards(const std::string& store, Deadline deadline) {
  TW_ASSIGN(const auto place, parse_address(store));
  const auto socket = connect_to(place.first, place.second, deadline);
  if (!socket.ok())
    return io_error("the store cannot be reached: " + socket.error().message, store);
  return address_of(*socket);
}

}  // namespace tilewright::distributed
