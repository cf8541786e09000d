// A square of elements turned over by shuffles of two vectors each.
#pragma once

#include <vector>

namespace tilewright::cpu {

// Lane i is lane lanes[i] of rows x and y, those of y counted on from those of x.
struct Shuffle {
  int x = 0, y = 0;
  std::vector<int> lanes;
};
// Steps from n rows of n lanes to n columns, n a power of two: row i of the next step is shuffle i.
// `part`: lanes of 128 bits, or n when that is less. Shuffles move elements inside parts, or whole
// parts: what x86 does in one instruction.
std::vector<std::vector<Shuffle>> transpose_steps(int n, int part);

}  // namespace tilewright::cpu
