// Layers with 3x3 windows, and the matrices of Winograd's forms of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <ostream>
#include <vector>

#include "tests/ops/graph_oracle.h"

namespace tilewright {

struct Layer {
  int64_t n, c, h, w, o;
  std::array<int64_t, 4> pads;  // top, left, bottom, right
  int64_t out_h() const { return h + pads[0] + pads[2] - 2; }
  int64_t out_w() const { return w + pads[1] + pads[3] - 2; }
};
inline void PrintTo(const Layer& l, std::ostream* out) {
  *out << l.n << "x" << l.c << "x" << l.h << "x" << l.w << " to " << l.o << ", pads " << l.pads[0]
       << l.pads[1] << l.pads[2] << l.pads[3];
}

// Layers with fewer elements than a tile, with tiles cut off on either side, with channels that
// fill no vector, and some as models have them.
inline constexpr std::array kSame{int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}};
inline constexpr std::array kNone{int64_t{0}, int64_t{0}, int64_t{0}, int64_t{0}};
inline const Layer kLayers[] = {
    {1, 1, 1, 1, 1, kSame},          {1, 1, 3, 3, 1, kNone},     {2, 5, 9, 11, 7, kSame},
    {1, 16, 8, 8, 16, kSame},        {1, 3, 6, 6, 64, kNone},    {1, 17, 13, 29, 33, {0, 1, 2, 1}},
    {3, 31, 7, 5, 67, {2, 2, 0, 1}}, {1, 48, 20, 28, 64, kSame}, {1, 21, 53, 4, 16, kSame},
    {1, 80, 14, 14, 96, kSame},      {4, 24, 7, 7, 40, kSame}};

// The transforms' matrices, written out.
struct Matrices {
  std::vector<std::vector<double>> b, g, a;
};
inline const Matrices& matrices(int64_t m) {
  static const Matrices two{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                            {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                            {{1, 1, 1, 0}, {0, 1, -1, -1}}};
  // The points 0, 3/4, -3/4, 3/2, -3/2 and infinity.
  static const Matrices four{{{81 / 64.0, 0, -45 / 16.0, 0, 1, 0},
                              {0, -27 / 16.0, -9 / 4.0, 3 / 4.0, 1, 0},
                              {0, 27 / 16.0, -9 / 4.0, -3 / 4.0, 1, 0},
                              {0, -27 / 32.0, -9 / 16.0, 3 / 2.0, 1, 0},
                              {0, 27 / 32.0, -9 / 16.0, -3 / 2.0, 1, 0},
                              {0, 81 / 64.0, 0, -45 / 16.0, 0, 1}},
                             {{64 / 81.0, 0, 0},
                              {-128 / 243.0, -32 / 81.0, -8 / 27.0},
                              {-128 / 243.0, 32 / 81.0, -8 / 27.0},
                              {32 / 243.0, 16 / 81.0, 8 / 27.0},
                              {32 / 243.0, -16 / 81.0, 8 / 27.0},
                              {0, 0, 1}},
                             {{1, 1, 1, 1, 1, 0},
                              {0, 3 / 4.0, -3 / 4.0, 3 / 2.0, -3 / 2.0, 0},
                              {0, 9 / 16.0, 9 / 16.0, 9 / 4.0, 9 / 4.0, 0},
                              {0, 27 / 64.0, -27 / 64.0, 27 / 8.0, -27 / 8.0, 1}}};
  return m == 2 ? two : four;
}

// A pool of windows of one element: what lies before and after a layer in a model, and lets the
// layout be chosen.
inline ir::ValueId between_layers(GraphCall& call, ir::ValueId v) {
  return call.op("max_pool", {v}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
}

inline bool is_small(const Layer& l) { return l.n * l.o * l.out_h() * l.out_w() * l.c < 30000; }

inline std::vector<Layer> small_layers() {
  std::vector<Layer> layers;
  std::copy_if(std::begin(kLayers), std::end(kLayers), std::back_inserter(layers), is_small);
  return layers;
}
inline constexpr int64_t kTiles[] = {2, 4};

// What a layer reads, in f64, with zeros around it.
struct LayerInput {
  const Layer& l;
  const HostTensor& x;
  double at(int64_t n, int64_t c, int64_t row, int64_t column) const {
    row -= l.pads[0];
    column -= l.pads[1];
    if (row < 0 || row >= l.h || column < 0 || column >= l.w) return 0;
    return element(x, ((n * l.c + c) * l.h + row) * l.w + column);
  }
  // The squares of the terms of B^T d B, at point (a, b), for the tile d that begins there.
  double squares(const Matrices& t, int64_t n, int64_t c, int64_t row, int64_t column, size_t a,
                 size_t b) const {
    double sum = 0;
    for (size_t i = 0; i < t.b.size(); ++i)
      for (size_t j = 0; j < t.b.size(); ++j)
        if (t.b[a][i] != 0 && t.b[b][j] != 0)
          sum += std::pow(
              t.b[a][i] * t.b[b][j] *
                  at(n, c, row + static_cast<int64_t>(i), column + static_cast<int64_t>(j)),
              2);
    return sum;
  }
};

}  // namespace tilewright
