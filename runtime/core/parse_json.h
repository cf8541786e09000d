// Reads JSON of unknown origin. The parser takes any depth, but what walks over its result recurses.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace tilewright {

inline constexpr int kMostJsonDepth = 64;

// Whether arrays and objects are nested at most so deep. Counts brackets outside of strings, so that text which is no
// JSON gives some answer.
inline bool is_shallow_json(std::string_view text, int most = kMostJsonDepth) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

// A discarded value (is_discarded; no object, array or scalar) for text that is no JSON or nested too deep.
template <typename Json>
Json parse_json(std::string_view text, int most_depth = kMostJsonDepth) {
  if (!is_shallow_json(text, most_depth)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tilewright
