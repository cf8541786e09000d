// The part of etcd's JSON gateway that Store uses, answered from a table in memory.
#pragma once

#include <string>
#include <string_view>

#include "runtime/distributed/deadline.h"
#include "runtime/distributed/http_client.h"
#include "runtime/distributed/key_table.h"

namespace tilewright::distributed {

// Answers the body of a POST to one of /v3/kv/range, put, txn and deleterange, and /v3/lease/grant, keepalive and
// revoke. Whatever asks for more of etcd (other fields, paths, comparisons or operations of a transaction) is answered
// with status 501 or 404, never as if it had not been there.
HttpAnswer answer_etcd(KeyTable& table, std::string_view path, std::string_view body, Deadline now);

}  // namespace tilewright::distributed
