// Base64 (RFC 4648, section 4): bytes as text, in which etcd's JSON gateway writes keys and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilewright::distributed {

std::string encode_base64(std::string_view bytes);
// Nothing where the text is not what encode_base64 returns for some bytes: another character, missing padding,
// bits behind the last byte that are not 0.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tilewright::distributed
