// Words of the tables of operators.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace tilewright::onnx {

// The pieces of a text between separators; no text has none.
inline std::vector<std::string_view> words(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    found.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

}  // namespace tilewright::onnx
