// How wide vectors are for few elements.
#pragma once

#include <cstdint>

namespace tilewright::passes {

constexpr int64_t kFewestLanes = 4;  // of a vector: 128 bits of f32, the narrowest that CPUs have

// `lanes`, halved as long as half of them hold all `n` elements: a narrower vector computes less
// for nothing.
constexpr int64_t fitting_lanes(int64_t lanes, int64_t n) {
  while (lanes > kFewestLanes && n <= lanes / 2) lanes /= 2;
  return lanes;
}

}  // namespace tilewright::passes
