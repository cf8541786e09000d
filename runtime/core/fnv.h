// FNV-1a (Fowler, Noll, Vo), 64 bits: the same on every machine. It finds damage and names files; it
// keeps nobody out.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright {

inline uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace tilewright
