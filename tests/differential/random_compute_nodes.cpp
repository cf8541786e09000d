// Nodes that compute: pointwise, reductions, contractions, pooling, normalisation.
#include <algorithm>
#include <cmath>

#include "ir/graph/op.h"
#include "tests/differential/graph_generator.h"

namespace tilewright {

using ir::Expr;
using ir::ValueId;

bool GraphGenerator::unary(const Known& x) {
  switch (below(8)) {
    case 0: return add("neg", {x.id}, {}, x.bound);
    case 1: return add("abs", {x.id}, {}, x.bound);
    case 2: return add("relu", {x.id}, {}, x.bound);
    case 3: return add("sigmoid", {x.id}, {}, 1);
    case 4: return add("tanh", {x.id}, {}, 1);
    case 5: return add("erf", {x.id}, {}, 1);
    case 6: return add("sin", {x.id}, {}, 1);
    default: return x.bound > 3 ? false : add("exp", {x.id}, {}, std::exp(x.bound));
  }
}

// Another value that broadcasts with x: one of the same type, or a new input with some extents 1
// or fewer dimensions.
GraphGenerator::Known GraphGenerator::partner(const Known& x) {
  if (chance(0.5)) {
    std::vector<Known> same;
    for (const Known& k : live_)
      if (shape(k.id) == shape(x.id) && ir::to_string(type(k.id)) == ir::to_string(type(x.id)))
        same.push_back(k);
    if (same.size() > 1) return same[static_cast<size_t>(below(static_cast<int64_t>(same.size())))];
  }
  Shape s = shape(x.id);
  const auto& dims = type(x.id).dims;
  for (size_t d = 0; d < s.size(); ++d)
    if (chance(0.4) || !ir::as_int(dims[d])) s[d] = 1;
  s.erase(s.begin(), s.begin() + below(static_cast<int64_t>(s.size()) + 1));
  if (chance(0.5)) return {add_weight(s, 1), 1};
  return {add_input(s), 1};
}

bool GraphGenerator::binary(const Known& x) {
  Known a = x, b = partner(x);
  if (chance(0.5)) std::swap(a, b);
  switch (below(5)) {
    case 0: return add("add", {a.id, b.id}, {}, a.bound + b.bound);
    case 1: return add("sub", {a.id, b.id}, {}, a.bound + b.bound);
    case 2: return add("mul", {a.id, b.id}, {}, a.bound * b.bound);
    case 3: return add("max", {a.id, b.id}, {}, std::max(a.bound, b.bound));
    default: return add("min", {a.id, b.id}, {}, std::max(a.bound, b.bound));
  }
}

bool GraphGenerator::reduce(const Known& x) {
  const Shape s = shape(x.id);
  if (s.empty()) return false;
  std::vector<int64_t> axes;
  double n = 1;
  for (size_t d = 0; d < s.size(); ++d)
    if (chance(0.5) || (axes.empty() && d + 1 == s.size())) {
      axes.push_back(chance(0.3) ? static_cast<int64_t>(d) - static_cast<int64_t>(s.size())
                                 : static_cast<int64_t>(d));
      n *= static_cast<double>(s[d]);
    }
  const ir::Attributes attributes{{"axes", axes}, {"keepdims", below(2)}};
  if (n < 1) return add("reduce_sum", {x.id}, attributes, 0);
  switch (below(4)) {
    case 0: return n * x.bound > 1000 ? false : add("reduce_sum", {x.id}, attributes, n * x.bound);
    case 1: return add("reduce_max", {x.id}, attributes, x.bound);
    case 2: return add("reduce_min", {x.id}, attributes, x.bound);
    default: return add("reduce_mean", {x.id}, attributes, x.bound);
  }
}

bool GraphGenerator::matmul(const Known& x) {
  const Shape s = shape(x.id);
  if (s.empty()) return false;
  const int64_t n = any_extent(), k = s.back();
  if (element_count(s).value() * n > kMostProducts || !ir::as_int(type(x.id).dims.back()))
    return false;
  const bool transposed = chance(0.3);
  Shape w = transposed ? Shape{n, k} : Shape{k, n};
  if (s.size() > 2 && is_static(x.id) && chance(0.3))
    w.insert(w.begin(), chance(0.5) ? s[s.size() - 3] : 1);
  ir::Attributes attributes;
  if (transposed) attributes["trans_b"] = int64_t{1};
  const double bound = x.bound * std::sqrt(static_cast<double>(k));
  return add("matmul", {x.id, add_weight(w, k)}, attributes, bound);
}

bool GraphGenerator::conv(const Known& x) {
  const Shape s = shape(x.id);
  if (s.size() < 3 || !ir::as_int(type(x.id).dims[1])) return false;
  const size_t spatial = s.size() - 2;
  std::vector<int64_t> kernel, pads(2 * spatial), strides, dilations;
  int64_t fan_in = s[1], group = 1;
  if (chance(0.3))
    group = s[1];
  else if (s[1] % 2 == 0 && chance(0.3))
    group = 2;
  if (group == 0) return false;
  fan_in /= group;
  for (size_t d = 0; d < spatial; ++d) {
    kernel.push_back(1 + below(3));
    strides.push_back(1 + below(2));
    dilations.push_back(1 + below(2));
    pads[d] = below(3);
    pads[d + spatial] = below(3);
    fan_in *= kernel.back();
    if (!ir::as_int(type(x.id).dims[d + 2])) return false;
    if (s[d + 2] + pads[d] + pads[d + spatial] < (kernel.back() - 1) * dilations.back() + 1)
      return false;
  }
  const int64_t out = group * (1 + below(group > 3 ? 2 : 9));
  if (fan_in == 0 ||
      element_count(s).value() / std::max<int64_t>(s[1], 1) * out * fan_in > kMostProducts)
    return false;
  Shape w{out, s[1] / group};
  w.insert(w.end(), kernel.begin(), kernel.end());
  const double bound = x.bound * std::sqrt(static_cast<double>(fan_in));
  add("conv", {x.id, add_weight(w, fan_in)},
      {{"pads", pads}, {"strides", strides}, {"dilations", dilations}, {"group", group}}, bound);
  Shape bias(spatial + 1, 1);
  bias[0] = out;
  return chance(0.5) ? add("add", {live_.back().id, add_weight(bias, 1)}, {}, bound + 1) : true;
}

bool GraphGenerator::pool(const Known& x) {
  const Shape s = shape(x.id);
  if (s.size() < 3) return false;
  const size_t spatial = s.size() - 2;
  std::vector<int64_t> kernel, pads(2 * spatial), strides;
  for (size_t d = 0; d < spatial; ++d) {
    kernel.push_back(1 + below(3));
    strides.push_back(1 + below(3));
    for (size_t side : {d, d + spatial}) pads[side] = below(kernel.back());
    if (s[d + 2] + pads[d] + pads[d + spatial] < kernel.back() ||
        !ir::as_int(type(x.id).dims[d + 2]))
      return false;
  }
  const ir::Attributes attributes{{"kernel_shape", kernel}, {"pads", pads}, {"strides", strides}};
  return add(chance(0.5) ? "max_pool" : "average_pool", {x.id}, attributes, x.bound);
}

bool GraphGenerator::normalize(const Known& x) {
  const Shape s = shape(x.id);
  if (s.empty() || element_count(s) == 0) return false;
  const int64_t axis = below(static_cast<int64_t>(s.size()));
  if (chance(0.5))
    return add(chance(0.7) ? "softmax" : "log_softmax", {x.id}, {{"axis", axis}}, 2 * x.bound + 6);
  Shape scale;
  for (size_t d = static_cast<size_t>(axis); d < s.size(); ++d) {
    if (!ir::as_int(type(x.id).dims[d])) return false;
    scale.push_back(s[d]);
  }
  if (element_count(scale).value() < 5)
    return false;  // the variance of so few may vanish: ill-conditioned
  std::vector<ValueId> operands{x.id};
  if (chance(0.7)) {
    operands.push_back(add_weight(scale, 1));
    operands.push_back(add_weight(scale, 1));
  }
  return add("layer_norm", operands, {{"axis", axis}}, 10);
}

}  // namespace tilewright
