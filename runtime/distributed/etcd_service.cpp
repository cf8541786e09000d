#include "runtime/distributed/etcd_service.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/distributed/base64.h"
#include "runtime/distributed/json_text.h"

namespace tilewright::distributed {

using nlohmann::json;

namespace {

// How etcd says that something went wrong: a status of HTTP, and one of gRPC.
struct Refusal {
  int status = 0, code = 0;
  std::string message;
};
const Refusal kOtherForm{400, 3, "a field has another form"};
const Refusal kNoKey{400, 3, "etcdserver: key is not provided"};
const Refusal kNoLease{404, 5, "etcdserver: requested lease not found"};
Refusal unsupported_part(const std::string& what) {
  return {501, 12, what + " is not supported by this store"};
}
Refusal refusal_of(const Error& error) {
  const bool is_limit = error.kind == ErrorKind::kLimit;
  return {is_limit ? 429 : 400, is_limit ? 8 : 3, "etcdserver: " + error.message};
}

using Reply = std::variant<json, Refusal>;

// The name is not repeated: it may be anything.
bool has_others(const json& object, std::initializer_list<std::string_view> names) {
  for (const auto& item : object.items())
    if (std::find(names.begin(), names.end(), item.key()) == names.end()) return true;
  return false;
}
const Refusal kOtherField = unsupported_part("a field of the request");

struct RangeRequest {
  std::string begin, end;
};
std::variant<RangeRequest, Refusal> read_range(const json& request) {
  if (has_others(request, {"key", "range_end"})) return kOtherField;
  auto key = read_bytes(field(request, "key"));
  auto end = read_bytes(field(request, "range_end"));
  if (!key || !end) return kOtherForm;
  if (key->empty()) return kNoKey;
  return RangeRequest{std::move(*key), std::move(*end)};
}

struct PutRequest {
  std::string key, value;
  int64_t lease = 0;
};
std::variant<PutRequest, Refusal> read_put(const KeyTable& table, const json& request) {
  if (!request.is_object()) return kOtherForm;
  if (has_others(request, {"key", "value", "lease"})) return kOtherField;
  auto key = read_bytes(field(request, "key"));
  auto value = read_bytes(field(request, "value"));
  const auto lease = read_int64(field(request, "lease"));
  if (!key || !value || !lease) return kOtherForm;
  if (key->empty()) return kNoKey;
  if (*lease != 0 && !table.has_lease(*lease)) return kNoLease;
  return PutRequest{std::move(*key), std::move(*value), *lease};
}

json with_header(const KeyTable& table, json reply = json::object()) {
  reply["header"] = {{"revision", std::to_string(table.revision())}};
  return reply;
}

Reply reply_range(KeyTable& table, const json& request) {
  const auto read = read_range(request);
  if (const auto* refusal = std::get_if<Refusal>(&read)) return *refusal;
  const auto& [begin, end] = std::get<RangeRequest>(read);
  const auto [first, last] = table.range(begin, end);
  json pairs = json::array();
  for (auto entry = first; entry != last; ++entry) {
    json pair{{"key", encode_base64(entry->first)},
              {"create_revision", std::to_string(entry->second.created)},
              {"mod_revision", std::to_string(entry->second.modified)},
              {"version", std::to_string(entry->second.version)}};
    if (!entry->second.value.empty()) pair["value"] = encode_base64(entry->second.value);
    if (entry->second.lease != 0) pair["lease"] = std::to_string(entry->second.lease);
    pairs.push_back(std::move(pair));
  }
  if (pairs.empty()) return with_header(table);
  const std::string count = std::to_string(pairs.size());
  return with_header(table, {{"kvs", std::move(pairs)}, {"count", count}});
}

Reply reply_put(KeyTable& table, const json& request) {
  auto read = read_put(table, request);
  if (const auto* refusal = std::get_if<Refusal>(&read)) return *refusal;
  auto& put = std::get<PutRequest>(read);
  const Status done = table.put(put.key, std::move(put.value), put.lease);
  if (!done) return refusal_of(done.error());
  return with_header(table);
}

Reply reply_remove(KeyTable& table, const json& request) {
  const auto read = read_range(request);
  if (const auto* refusal = std::get_if<Refusal>(&read)) return *refusal;
  const auto& [begin, end] = std::get<RangeRequest>(read);
  const int64_t count = table.remove(begin, end);
  if (count == 0) return with_header(table);
  return with_header(table, {{"deleted", std::to_string(count)}});
}

// Whether a comparison holds: of a number, which is 0 where there is no such key, or of a value, where none holds then.
std::variant<bool, Refusal> compare(const KeyTable& table, const json& comparison) {
  if (!comparison.is_object()) return kOtherForm;
  const auto key = read_bytes(field(comparison, "key"));
  const json& target = field(comparison, "target");
  if (!key) return kOtherForm;
  if (field(comparison, "result") != "EQUAL") return unsupported_part("another result than EQUAL");
  const KeyTable::Entry* entry = table.find(*key);
  if (target == "VALUE") {
    if (has_others(comparison, {"key", "target", "result", "value"})) return kOtherField;
    const auto value = read_bytes(field(comparison, "value"));
    if (!value) return kOtherForm;
    return entry && entry->value == *value;
  }
  const bool is_version = target == "VERSION";
  if (!is_version && target != "CREATE") return unsupported_part("a target of a comparison");
  const char* name = is_version ? "version" : "create_revision";
  if (has_others(comparison, {"key", "target", "result", name})) return kOtherField;
  const auto number = read_int64(field(comparison, name));
  if (!number) return kOtherForm;
  return *number == (!entry ? 0 : is_version ? entry->version : entry->created);
}

// One comparison and one put: what compare_and_set needs.
Reply reply_transaction(KeyTable& table, const json& request) {
  if (has_others(request, {"compare", "success"})) return kOtherField;
  const json &comparisons = field(request, "compare"), &puts = field(request, "success");
  if (!comparisons.is_array() || !puts.is_array()) return kOtherForm;
  if (comparisons.size() != 1 || puts.size() != 1)
    return unsupported_part("a transaction of other than one comparison and one put");
  const json& operation = puts[0];
  if (!operation.is_object() || operation.size() != 1 || !operation.contains("request_put"))
    return unsupported_part("another operation of a transaction than request_put");
  const auto holds = compare(table, comparisons[0]);
  if (const auto* refusal = std::get_if<Refusal>(&holds)) return *refusal;
  if (!std::get<bool>(holds)) return with_header(table);
  Reply put = reply_put(table, operation["request_put"]);
  if (std::holds_alternative<Refusal>(put)) return put;
  json response{{"response_put", std::get<json>(std::move(put))}};
  return with_header(table,
                     {{"succeeded", true}, {"responses", json::array({std::move(response)})}});
}

Reply reply_grant(KeyTable& table, const json& request) {
  if (has_others(request, {"TTL"})) return kOtherField;
  const auto seconds = read_int64(field(request, "TTL"));
  if (!seconds) return kOtherForm;
  const auto lease = table.grant(*seconds);
  if (!lease) return refusal_of(lease.error());
  const std::string granted = std::to_string(table.renew(*lease));
  return with_header(table, {{"ID", std::to_string(*lease)}, {"TTL", granted}});
}

Reply reply_renew(KeyTable& table, const json& request) {
  if (has_others(request, {"ID"})) return kOtherField;
  const auto lease = read_int64(field(request, "ID"));
  if (!lease) return kOtherForm;
  json result{{"ID", std::to_string(*lease)}};
  if (const int64_t seconds = table.renew(*lease)) result["TTL"] = std::to_string(seconds);
  return json{{"result", with_header(table, std::move(result))}};
}

Reply reply_revoke(KeyTable& table, const json& request) {
  if (has_others(request, {"ID"})) return kOtherField;
  const auto lease = read_int64(field(request, "ID"));
  if (!lease) return kOtherForm;
  if (!table.revoke(*lease)) return kNoLease;
  return with_header(table);
}

struct Method {
  std::string_view path;
  Reply (*reply)(KeyTable&, const json&);
};
constexpr Method kMethods[] = {
    {"/v3/kv/range", reply_range},      {"/v3/kv/put", reply_put},
    {"/v3/kv/txn", reply_transaction},  {"/v3/kv/deleterange", reply_remove},
    {"/v3/lease/grant", reply_grant},   {"/v3/lease/keepalive", reply_renew},
    {"/v3/lease/revoke", reply_revoke},
};

Reply reply_to(KeyTable& table, std::string_view path, std::string_view body) {
  for (const Method& method : kMethods) {
    if (method.path != path) continue;
    const auto request = parse_object(body);
    if (!request) return Refusal{400, 3, "the request is no object of JSON"};
    return method.reply(table, *request);
  }
  return Refusal{404, 12, "there is no such path"};
}

}  // namespace

HttpAnswer answer_etcd(KeyTable& table, std::string_view path, std::string_view body,
                       Deadline now) {
  table.advance(now);
  const Reply reply = reply_to(table, path, body);
  if (const auto* object = std::get_if<json>(&reply)) return {200, object->dump()};
  const auto& refusal = std::get<Refusal>(reply);
  const json object{
      {"error", refusal.message}, {"message", refusal.message}, {"code", refusal.code}};
  return {refusal.status, object.dump()};
}

}  // namespace tilewright::distributed
