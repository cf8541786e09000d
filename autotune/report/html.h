// Pieces of a page: text of any origin made safe, and numbers as people read them.
#pragma once

#include <string>

namespace tilewright::autotune::report {

// As text of an element or of an attribute in quotes. Names come from models, which may call their
// values anything: bytes that are no UTF-8, and control characters, become U+FFFD.
std::string escape(const std::string& text);

// At most so many bytes of it, with an ellipsis where that is not all; not escaped.
std::string shorten(const std::string& text, size_t most);

// As printf has it. For numbers: no text of a model goes through here.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

// Three digits or all before the point, without an exponent: "0.0123", "1.5", "123456".
std::string number(double n);

// "0.873 (0.861 to 0.884)": a ratio and its bounds.
std::string ratio(double n, double low, double high);

}  // namespace tilewright::autotune::report
