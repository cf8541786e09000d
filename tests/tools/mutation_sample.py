"""A small project for mutation_test.py, in which each kind of place occurs, and no other fault than its
tests' own: `weak` runs all and looks at nothing, `away` reaches nothing."""
SHAPES = """#include "sample/shapes.h"
#define TW_UNLESS(condition) if (condition) return -1
namespace tilewright {
enum class Order { kRows, kColumns };
constexpr int kMost = 4 + 4;            // constant
static_assert(kMost == 8, "constant");  // constant
template <int n> struct Box { int value[n]; };
struct Pair { int first, second; };
constexpr int twice(int x) { return x < 3 ? x * 2 : x + x; }  // constant
static int difference(int a, int b) { return a - b; }
static Order order_of(int x) { return x > 5 ? Order::kRows : Order::kColumns; }
int area(int rows, int columns) {
  Box<3 + 2> box{};  // constant
  const int size = 5;
  Box<size> cells{};
  auto& table = cells.value;
  table[0] = rows;
  if (rows < columns && rows != 7 || columns == 2) box.value[0] += 5;
  if (!(rows >= columns)) {
    box.value[1] = difference(rows, columns);
  } else {
    box.value[1] = 1;
  }
  TW_UNLESS(rows == 8 && columns == 8);
  if (const int more = rows - columns) box.value[2] = more * columns;
  if (const int half = (columns + 1) / 2; half > rows) table[2] += half;
  int left = columns;
  while (left > 4) {
    ::usleep(1);
    --left;
  }
  for (const int value : box.value) table[1] += value + left;
  for (int i = 0; i < columns; ++i) {
    if (i == 3) continue;
    table[1] += (i + 1) % 4;
  }
  const Pair pair{rows, columns};
  const bool is_flat = (rows + 20) / 2 > columns + 10;
  if (is_flat) table[2] = -pair.first;
  switch (order_of(rows)) {
    case Order::kRows:  // constant
      table[2] += 2;
      break;
    case Order::kColumns:  // constant
      table[2] -= pair.second - 3;
  }
  return box.value[0] + 10 * box.value[1] + 100 * box.value[2] + table[0] + table[1] * 7 + table[2] * twice(3);
}
int unused(int x) { return x + 1; }
}  // namespace tilewright
"""
HEADER = """#pragma once
#include <unistd.h>

#include <algorithm>
namespace tilewright {
int area(int rows, int columns);
inline int capped(int x) { return std::min(x, 6); }
}
"""
PRINT = """
#include <cstdio>
int main() {
  for (int r = -3; r < 10; ++r)
    for (int c = 0; c < 9; ++c) std::printf("%d ", tilewright::area(r, c));
}
"""
STRONG = """
int main() {
  long sum = 0;
  for (int r = -3; r < 10; ++r)
    for (int c = 0; c < 9; ++c) sum = (sum * 31 + tilewright::area(r, c) + tilewright::capped(c)) % 1000003;
  return sum == EXPECTED ? 0 : 1;
}
"""
WEAK = STRONG.replace("sum == EXPECTED", "sum < 1000003")
BUILD = """cmake_minimum_required(VERSION 3.25)
project(sample LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include_directories(${CMAKE_SOURCE_DIR})
add_library(shapes STATIC sample/shapes.cpp)
set_target_properties(shapes PROPERTIES UNITY_BUILD ON)
enable_testing()
foreach(test strong weak away)
  add_executable(${test} ${test}.cpp)
  target_link_libraries(${test} shapes)
  add_test(NAME ${test} COMMAND ${test})
endforeach()
"""
PRESETS = """{"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build", "cacheVariables": {"CMAKE_BUILD_TYPE": "Debug"}}]}
"""


def files(expected):
    include = '#include "sample/shapes.h"'
    return {"sample/shapes.cpp": SHAPES, "sample/shapes.h": HEADER, "weak.cpp": include + WEAK,
            "strong.cpp": include + STRONG.replace("EXPECTED", str(expected)),
            "away.cpp": "int main() {}\n", "CMakeLists.txt": BUILD, "CMakePresets.json": PRESETS,
            "tests/tools/mutation/equivalent.txt": "Mutants that change nothing.\n",
            "tests/tools/mutation/finds_none.txt": "# None.\n",
            ".gitignore": "/build/\n"}
