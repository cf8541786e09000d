// Bytes and damage for laws over generated inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace tilewright::distributed {

using Random = std::mt19937;

// Of [0, count).
inline size_t below(Random& random, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(random);
}

inline std::string random_bytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(below(random, 256));
  return bytes;
}

// Changes, leaves out, repeats or cuts a few bytes.
inline std::string damaged(Random& random, std::string bytes) {
  const size_t count = 1 + below(random, 4);
  for (size_t i = 0; i < count && !bytes.empty(); ++i) {
    const size_t at = below(random, bytes.size());
    switch (below(random, 5)) {
      case 0: bytes[at] = static_cast<char>(below(random, 256)); break;
      case 1: bytes.erase(at, 1 + below(random, 8)); break;
      case 2: bytes.insert(at, bytes.substr(at, 1 + below(random, 30))); break;
      case 3: bytes.resize(at); break;
      case 4: bytes[at] = "0123456789:\r\n{}[]\""[below(random, 18)]; break;
    }
  }
  return bytes;
}

}  // namespace tilewright::distributed
