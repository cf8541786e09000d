// Nodes that move elements.
#include <algorithm>

#include "ir/graph/op.h"
#include "tests/differential/graph_generator.h"

namespace tilewright {

using ir::Expr;
using ir::ValueId;

bool GraphGenerator::transpose(const Known& x) {
  std::vector<int64_t> perm(shape(x.id).size());
  for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d);
  std::shuffle(perm.begin(), perm.end(), random_);
  return add("transpose", {x.id}, {{"perm", perm}}, x.bound);
}

bool GraphGenerator::reshape(const Known& x) {
  if (!is_static(x.id)) return false;
  Shape s = shape(x.id);
  int64_t n = element_count(s).value();
  if (n == 0) return false;
  if (chance(0.3)) return add("reshape", {x.id, add_ints({-1})}, {}, x.bound);
  std::vector<int64_t> to;
  for (int64_t d : {2, 3, 8, 13})
    if (n % d == 0 && chance(0.6)) {
      to.push_back(d);
      n /= d;
    }
  to.push_back(n);
  std::shuffle(to.begin(), to.end(), random_);
  return add("reshape", {x.id, add_ints(to)}, {}, x.bound);
}

bool GraphGenerator::slice(const Known& x) {
  const Shape s = shape(x.id);
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t d = 0; d < s.size(); ++d) {
    if (!ir::as_int(type(x.id).dims[d]) || s[d] < 2 || chance(0.4)) continue;
    const int64_t a = below(s[d]), b = below(s[d]);
    axes.push_back(static_cast<int64_t>(d));
    const bool backwards = chance(0.25);
    starts.push_back(backwards ? std::max(a, b) : std::min(a, b));
    ends.push_back(backwards ? std::min(a, b) - 1 - s[d] : std::max(a, b) + 1);
    steps.push_back(backwards ? -1 - below(2) : 1 + below(3));
  }
  if (axes.empty()) return false;
  return add("slice", {x.id, add_ints(starts), add_ints(ends), add_ints(axes), add_ints(steps)}, {},
             x.bound);
}

bool GraphGenerator::concat(const Known& x) {
  const Shape s = shape(x.id);
  if (s.empty() || !is_static(x.id)) return false;
  const int64_t axis = below(static_cast<int64_t>(s.size()));
  std::vector<ValueId> parts{x.id};
  double bound = x.bound;
  for (int64_t k = 1 + below(2); k > 0; --k) {
    if (chance(0.3)) {
      parts.push_back(x.id);
      continue;
    }
    Shape other = s;
    other[static_cast<size_t>(axis)] = any_extent();
    if (element_count(other).value() > kMostElements) return false;
    parts.push_back(add_input(other));
    bound = std::max(bound, 1.0);
  }
  std::shuffle(parts.begin(), parts.end(), random_);
  const bool alike = std::all_of(parts.begin(), parts.end(), [&](ValueId v) { return v == x.id; });
  return add("concat", parts, {{"axis", axis}, {"interleave", int64_t{alike && chance(0.5)}}},
             bound);
}

}  // namespace tilewright
