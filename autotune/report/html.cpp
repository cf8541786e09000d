#include "autotune/report/html.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tilewright::autotune::report {

namespace {

constexpr const char* kNoText = "\xef\xbf\xbd";  // U+FFFD

// The JSON library replaces what is no UTF-8 where it prints a string.
std::string as_utf8(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace

std::string escape(const std::string& text) {
  std::string safe;
  for (const char c : as_utf8(text)) switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      case '\t':
      case '\n': safe += ' '; break;
      default:
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
          safe += kNoText;
        else
          safe += c;
    }
  return safe;
}

std::string shorten(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;  // not within a character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "\u2026";
}

std::string printed(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string number(double n) {
  if (std::isnan(n)) return "\u2013";
  if (std::isinf(n)) return n < 0 ? "-\u221e" : "\u221e";
  if (n == 0) return "0";
  const double size = std::abs(n);
  const int whole = static_cast<int>(std::floor(std::log10(size))) + 1;
  std::string text = printed("%.*f", std::clamp(3 - whole, 0, 9), n);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string ratio(double n, double low, double high) {
  return printed("%.3f (%.3f to ", n, low) +
         (std::isfinite(high) ? printed("%.3f)", high) : "\u221e)");
}

}  // namespace tilewright::autotune::report
