// Calls with open extents, run with many shapes.
#pragma once

#include <algorithm>

#include "tests/frontends/run_model.h"

namespace tilewright {

// A dimension of an operand whose extent is left open.
struct Place {
  size_t operand, dim;
};
using Shapes = std::vector<Shape>;
using Random = std::mt19937_64;

// Another shape for the same call: some of the open extents changed.
inline Shapes changed(Shapes shapes, const std::vector<Place>& open, Random& random) {
  for (const Place& p : open) {
    int64_t& e = shapes[p.operand][p.dim];
    const int64_t others[] = {0, 1, 2, 3, e - 1, e + 1, e + 2, 2 * e};
    if (random() % 3 == 0) e = std::max<int64_t>(0, others[random() % std::size(others)]);
  }
  return shapes;
}
// Returns whether an open extent is 1, so that a graph with known extents may broadcast where this one may not.
inline bool has_extent_of_one(const Shapes& shapes, const std::vector<Place>& open) {
  return std::any_of(open.begin(), open.end(),
                     [&](const Place& p) { return shapes[p.operand][p.dim] == 1; });
}
inline std::string text_of(const Shapes& shapes) {
  std::string text;
  for (const Shape& s : shapes) text += (text.empty() ? "" : ", ") + to_string(s);
  return text;
}

// One run, on memory that may not be touched behind its end where it is by one thread.
inline Result<Tensors> run(const std::shared_ptr<Executable>& executable, const Tensors& inputs,
                           int threads) {
  SessionOptions options;
  options.threads = threads;
  options.guard = threads == 1 ? Guard::kBehind : Guard::kNone;
  TW_ASSIGN(std::unique_ptr<Session> session, Session::create(executable, options));
  std::vector<Tensor> given, outputs;
  for (const HostTensor& t : inputs) given.push_back(to_tensor(t));
  TW_RETURN_IF_ERROR(session->run(given, outputs));
  Tensors kept;
  for (const Tensor& t : outputs) kept.push_back(to_host(t));
  return kept;
}

}  // namespace tilewright
