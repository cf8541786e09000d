#include "runtime/distributed/json_text.h"

#include <charconv>

#include "runtime/core/parse_json.h"
#include "runtime/distributed/base64.h"

namespace tilewright::distributed {

using nlohmann::json;

namespace {

constexpr int kMostDepth = 16;

}  // namespace

std::optional<json> parse_object(std::string_view text) {
  json value = parse_json<json>(text, kMostDepth);
  if (!value.is_object()) return std::nullopt;
  return value;
}

const json& field(const json& object, const char* name) {
  static const json null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

std::optional<int64_t> read_int64(const json& value) {
  if (value.is_null()) return 0;
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::optional<bool> read_bool(const json& value) {
  if (value.is_null()) return false;
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

std::optional<std::string> read_bytes(const json& value) {
  if (value.is_null()) return std::string();
  if (!value.is_string()) return std::nullopt;
  return decode_base64(value.get_ref<const std::string&>());
}

}  // namespace tilewright::distributed
