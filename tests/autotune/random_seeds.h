// Seeds of random cases: TILEWRIGHT_SEED=n is n alone, TILEWRIGHT_GRAPHS=n are those below n.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace tilewright {

inline std::vector<uint32_t> random_seeds(uint32_t count) {
  const auto number = [](const char* text) {
    return static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
  };
  if (const char* one = std::getenv("TILEWRIGHT_SEED")) return {number(one)};
  if (const char* asked = std::getenv("TILEWRIGHT_GRAPHS")) count = number(asked);
  std::vector<uint32_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), 0u);
  return seeds;
}

}  // namespace tilewright
