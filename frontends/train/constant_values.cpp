#include "frontends/train/constant_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace tilewright::train {

namespace {

constexpr float kClose = 1e-3f;

bool are_unit(float a, float b) { return std::abs(a * a + b * b - 1) < kClose; }

// Up to `most` + 1 of them.
std::set<float> distinct(const std::vector<float>& values, size_t most) {
  std::set<float> found;
  for (const float x : values)
    if (found.insert(x).second && found.size() > most) break;
  return found;
}

// An arithmetic or geometric sequence of n elements `step` apart, or one number over and over (nothing moves).
struct Line {
  bool is_sequence = false, moves = false;
};
Line line(const float* x, int64_t n, int64_t step) {
  const auto at = [&](int64_t k) { return static_cast<double>(x[k * step]); };
  const double difference = at(1) - at(0), ratio = at(0) != 0 ? at(1) / at(0) : 0;
  const double largest = std::max(std::abs(at(0)), std::abs(at(n - 1)));
  bool arithmetic = true, geometric = ratio != 0;
  for (int64_t k = 2; k < n && (arithmetic || geometric); ++k) {
    arithmetic &= std::abs(at(k) - at(0) - static_cast<double>(k) * difference) <= 1e-5 * largest;
    geometric &= std::abs(at(k) - at(k - 1) * ratio) <= 1e-4 * std::abs(at(k));
  }
  return {arithmetic || geometric, difference != 0};
}

bool has_lines(const Shape& shape, const std::vector<float>& values, size_t axis) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t n = shape[axis], block = n * inner;
  if (n < 4) return false;
  bool moves = false;
  for (size_t from = 0; from < values.size(); from += static_cast<size_t>(block))
    for (int64_t k = 0; k < inner; ++k) {
      const Line l = line(values.data() + from + k, n, inner);
      if (!l.is_sequence) return false;
      moves |= l.moves;
    }
  return moves;
}

// Along the last dimension, each pair (first, first + apart).
bool has_angles(const Shape& shape, const std::vector<float>& values, bool halves) {
  const int64_t n = shape.empty() ? 0 : shape.back(), apart = halves ? n / 2 : 1;
  if (n < 4 || n % 2 != 0 || static_cast<int64_t>(values.size()) < 2 * n) return false;
  for (size_t row = 0; row < values.size(); row += static_cast<size_t>(n))
    for (int64_t k = 0; k < n / 2; ++k) {
      const float* x = values.data() + row + (halves ? k : 2 * k);
      if (!are_unit(x[0], x[apart])) return false;
    }
  return true;
}

}  // namespace

std::vector<float> floats_of(const TensorView& tensor) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  if (tensor.dtype() != DType::kFloat32 || tensor.bytes > kMostBytes) return {};
  std::vector<float> values(tensor.bytes / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  return values;
}

bool is_mask(const std::vector<float>& values) {
  constexpr float kOff = 1e3f;
  if (std::any_of(values.begin(), values.end(), [](float x) { return !std::isfinite(x); }))
    return true;
  const std::set<float> two = distinct(values, 2);
  if (two.size() != 2 || !two.count(0)) return false;
  const float other = *two.begin() == 0 ? *two.rbegin() : *two.begin();
  return std::abs(other) == 1 || std::abs(other) >= kOff;
}

bool is_table(const Shape& shape, const std::vector<float>& values) {
  const bool halves =
      std::all_of(values.begin(), values.end(), [](float x) { return 2 * x == std::floor(2 * x); });
  if (halves && distinct(values, 2).size() > 2) return true;
  for (size_t d = 0; d < shape.size(); ++d)
    if (has_lines(shape, values, d)) return true;
  return has_angles(shape, values, false) || has_angles(shape, values, true);
}

bool are_sines_and_cosines(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || distinct(a, 3).size() < 3) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (!are_unit(a[k], b[k])) return false;
  return true;
}

}  // namespace tilewright::train
