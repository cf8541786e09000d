// JSON that nobody vouches for, and what etcd's gateway writes in it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::distributed {

// An object of JSON. Nothing where the text is another value or no JSON, or nests deeper than any message of etcd,
// which would take many times the text's bytes of memory.
std::optional<nlohmann::json> parse_object(std::string_view text);

// The field of an object; null where it has none, as protobuf's JSON leaves out what is 0 or empty.
const nlohmann::json& field(const nlohmann::json& object, const char* name);

// Values of fields. Nothing where the value has another form; null is 0, false or empty.
std::optional<int64_t> read_int64(
    const nlohmann::json& value);  // a string of decimal digits, or a number
std::optional<bool> read_bool(const nlohmann::json& value);
std::optional<std::string> read_bytes(const nlohmann::json& value);  // base64

}  // namespace tilewright::distributed
