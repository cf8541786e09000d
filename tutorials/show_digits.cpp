// Shows what a digit classifier saw: each image as text art, the answer, its probability and the
// time. usage: show_digits IMAGES.npz ANSWERS.npz LABELS.txt BENCH.json
//   IMAGES.npz   one f32 array [n, 1, 28, 28]; ANSWERS.npz: one f32 array [n, 10] of logits
//   LABELS.txt   n digits; BENCH.json: the last line of `tilewright bench --json`
// Exit status 1 when an answer differs from its label.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "frontends/tensor_files/npz.h"

namespace tilewright {
namespace {

constexpr int kSide = 28, kClasses = 10, kPerRow = 5;
constexpr int kColumns = kSide / 2 + 4;  // of one digit: a character stands for 2 x 2 pixels

struct Answer {
  int digit = 0;
  double probability = 0;
};

// The most probable class, by softmax of ten logits (the largest is subtracted so that exp cannot
// overflow).
Answer answer_of(const float* logits) {
  const float* best = std::max_element(logits, logits + kClasses);
  double sum = 0;
  for (int k = 0; k < kClasses; ++k) sum += std::exp(static_cast<double>(logits[k]) - *best);
  return {static_cast<int>(best - logits), 1 / sum};
}

// Line `row` (two pixel rows) of an image: darker characters for more ink.
std::string art_line(const float* image, int row, float most_ink) {
  static const std::string shades = " .:+*#@";
  std::string line;
  for (int column = 0; column < kSide; column += 2) {
    const float* p = image + 2 * row * kSide + column;
    float ink = (p[0] + p[1] + p[kSide] + p[kSide + 1]) / 4 / most_ink;
    ink = std::clamp(ink, 0.0f, 1.0f);
    line += shades[static_cast<size_t>(std::lround(ink * static_cast<float>(shades.size() - 1)))];
  }
  return line;
}

std::string padded(std::string text) {
  text.resize(std::max<size_t>(text.size(), kColumns), ' ');
  return text;
}

Result<HostTensor> read_only_array(const std::string& path, const Shape& row) {
  TW_ASSIGN(NamedTensors arrays, read_npz(path));
  if (arrays.size() != 1)
    return invalid("expected one array, found " + std::to_string(arrays.size()), path);
  HostTensor tensor = std::move(arrays.front().second);
  bool fits = tensor.dtype == DType::kFloat32 && !tensor.shape.empty() &&
              Shape(tensor.shape.begin() + 1, tensor.shape.end()) == row;
  if (!fits)
    return invalid("expected f32 rows of " + to_string(row) + ", found " + to_string(tensor.shape),
                   path);
  return tensor;
}

std::vector<int> read_labels(const std::string& path) {
  std::ifstream file(path);
  std::vector<int> labels;
  for (int label; file >> label;) labels.push_back(label);
  return labels;
}

// The number after "key": in a line of JSON, or a negative one.
double json_number(const std::string& json, const std::string& key) {
  size_t at = json.find("\"" + key + "\"");
  at = at == std::string::npos ? at : json.find(':', at);
  return at == std::string::npos ? -1 : std::strtod(json.c_str() + at + 1, nullptr);
}

void print_row(const float* images, const float* logits, const std::vector<int>& labels,
               size_t first) {
  size_t last = std::min(first + kPerRow, labels.size());
  const float most_ink =
      *std::max_element(images + first * kSide * kSide, images + last * kSide * kSide);
  for (int row = 0; row < kSide / 2; ++row) {
    std::string line;
    for (size_t i = first; i < last; ++i)
      line += padded(art_line(images + i * kSide * kSide, row, std::max(most_ink, 1e-6f)));
    std::printf("  %s\n", line.c_str());
  }
  std::string line;
  for (size_t i = first; i < last; ++i) {
    Answer a = answer_of(logits + i * kClasses);
    char text[64];
    std::snprintf(text, sizeof text, "%d  %5.1f %%%s", a.digit, 100 * a.probability,
                  a.digit == labels[i] ? "" : " WRONG");
    line += padded(text);
  }
  std::printf("  %s\n\n", line.c_str());
}

Result<int> show(char** paths) {
  TW_ASSIGN(HostTensor images, read_only_array(paths[0], {1, kSide, kSide}));
  TW_ASSIGN(HostTensor answers, read_only_array(paths[1], {kClasses}));
  std::vector<int> labels = read_labels(paths[2]);
  const auto count = static_cast<int64_t>(labels.size());
  if (count == 0 || images.shape[0] != count || answers.shape[0] != count)
    return invalid(
        "images, answers and labels differ in number: " + std::to_string(images.shape[0]) + ", " +
        std::to_string(answers.shape[0]) + " and " + std::to_string(count));
  for (size_t i = 0; i < labels.size(); i += kPerRow)
    print_row(images.data<float>(), answers.data<float>(), labels, i);

  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    right += answer_of(answers.data<float>() + i * kClasses).digit == labels[i];
  std::ifstream bench_file(paths[3]);
  std::stringstream bench;
  bench << bench_file.rdbuf();
  const double ms = json_number(bench.str(), "median_ms");
  if (!(ms > 0)) return invalid("no \"median_ms\" found", paths[3]);
  std::printf(
      "%d of %zu right; %.3f ms for all of them at once on one thread (median), %.1f us an image\n",
      right, labels.size(), ms, 1000 * ms / static_cast<double>(count));
  return right == static_cast<int>(labels.size()) ? 0 : 1;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: show_digits IMAGES.npz ANSWERS.npz LABELS.txt BENCH.json\n");
    return 2;
  }
  auto status = tilewright::show(argv + 1);
  if (status) return *status;
  std::fprintf(stderr, "show_digits: %s\n", status.error().to_string().c_str());
  return 1;
}
