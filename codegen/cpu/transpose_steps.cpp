// Transposing n rows of n lanes in log2(n) steps of n two-operand shuffles, the butterfly known
// from SIMD transposes and from the FFT. Within 128-bit parts the steps are unpack instructions
// (UNPCKLPS, PUNPCKLBW, ...), between parts VSHUFF32X4 or VPERM2F128: none crosses parts lane by
// lane, which x86 does at a higher latency.
//
//    a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
//    b0 b1 b2 b3  ->  a2 c2 a3 c3  ->  a1 b1 c1 d1
//    c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
//    d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
#include "codegen/cpu/transpose_steps.h"

#include <cstddef>

namespace tilewright::cpu {

namespace {

// Lanes of x and y alternately, from the lower or the upper half of each part.
Shuffle interleave(int x, int y, int n, int part, bool upper) {
  Shuffle s{x, y, {}};
  for (int p = 0; p < n; p += part)
    for (int i = 0; i < part / 2; ++i) {
      const int lane = p + i + (upper ? part / 2 : 0);
      s.lanes.insert(s.lanes.end(), {lane, n + lane});
    }
  return s;
}
// Every second part of x, then of y, from the first or from the second part on.
Shuffle every_second(int x, int y, int n, int part, bool odd) {
  Shuffle s{x, y, {}};
  for (int p = odd ? part : 0; p < 2 * n; p += 2 * part)
    for (int i = 0; i < part; ++i) s.lanes.push_back(p + i);
  return s;
}

}  // namespace

// Number the elements by the bits of row and lane. Each step rotates some of these bits by one:
// first the row's low bits with those of the place in a part, then its high bits with the part's.
std::vector<std::vector<Shuffle>> transpose_steps(int n, int part) {
  const int parts = n / part;
  std::vector<std::vector<Shuffle>> steps;
  auto begin_step = [&]() -> std::vector<Shuffle>& {
    return steps.emplace_back(static_cast<size_t>(n));
  };
  auto at = [](int i) { return static_cast<size_t>(i); };
  for (int width = 1; width < part; width *= 2) {
    std::vector<Shuffle>& next = begin_step();
    for (int group = 0; group < n; group += part)
      for (int i = 0; i < part / 2; ++i)
        for (const bool upper : {false, true})
          next[at(group + 2 * i + upper)] =
              interleave(group + i, group + i + part / 2, n, part, upper);
  }
  for (int width = 1; width < parts; width *= 2) {
    std::vector<Shuffle>& next = begin_step();
    for (int k = 0; k < part; ++k)
      for (int i = 0; i < parts / 2; ++i)
        for (const bool odd : {false, true})
          next[at((i + (odd ? parts / 2 : 0)) * part + k)] =
              every_second(2 * i * part + k, (2 * i + 1) * part + k, n, part, odd);
  }
  return steps;
}

}  // namespace tilewright::cpu
