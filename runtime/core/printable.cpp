#include "runtime/core/printable.h"

#include <cstdint>
#include <cstdio>

namespace tilewright {

namespace {

struct Character {
  size_t bytes = 1;  // how many there are of it, or must be
  bool is_whole = false, is_valid = false;
  uint32_t code = 0;
};

// Reads the first character of a text that is not empty (RFC 3629).
Character read_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true, true, lead};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {1, true, false};
  uint32_t code = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (i == text.size()) return {i, false, true};
    // Overlong forms, surrogates and what is above U+10FFFF show in the second byte.
    const uint8_t least = i > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t most = i > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < least || byte(i) > most) return {1, true, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {bytes, true, true, code};
}

bool is_hidden(uint32_t code) {
  if (code == '\n' || code == '\t') return false;
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void append_byte(std::string& shown, char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<uint8_t>(byte));
  shown += text;
}

}  // namespace

std::string PrintableText::add(std::string_view text) {
  const std::string joined = begun_ + std::string(text);
  begun_.clear();
  std::string shown;
  for (std::string_view rest = joined; !rest.empty();) {
    const Character c = read_character(rest);
    if (!c.is_whole) {
      begun_ = rest;
      break;
    }
    if (!c.is_valid) {
      append_byte(shown, rest[0]);
    } else if (is_hidden(c.code)) {
      char escape[12];
      std::snprintf(escape, sizeof escape, "\\u%04x", c.code);
      shown += escape;
    } else {
      shown += rest.substr(0, c.bytes);
    }
    rest.remove_prefix(c.bytes);
  }
  return shown;
}

std::string PrintableText::end() {
  std::string shown;
  for (const char byte : begun_) append_byte(shown, byte);
  begun_.clear();
  return shown;
}

std::string printable(std::string_view text) {
  PrintableText filter;
  const std::string shown = filter.add(text);
  return shown + filter.end();
}

}  // namespace tilewright
