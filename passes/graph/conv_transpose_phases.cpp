#include "passes/graph/conv_transpose_phases.h"

#include <algorithm>

#include "ir/loops/simplify.h"
#include "ir/ops/conv_transpose.h"
#include "passes/analysis/extents.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A product of extents that ends here, before it overflows; unknown ones count as 1.
constexpr int64_t kMostElements = int64_t{1} << 32;
int64_t times(int64_t product, int64_t extent) {
  return extent > 0 && product > kMostElements / extent ? kMostElements + 1 : product * extent;
}

// Weights with zeros between and behind their elements, and the results of all phases with what
// is cropped of them.
bool fits_in_memory(const TransposedConv& t, const Expr& images) {
  int64_t weights = times(t.c, t.m);
  int64_t results = times(times(as_int(images).value_or(1), t.group), t.m);
  for (size_t d = 0; d < t.spatial(); ++d) {
    const int64_t phased = times(t.steps[d], t.strides[d]),
                  in = std::min(as_int(t.in[d]).value_or(1), kMostElements),
                  positions = in + t.span(d, t.steps[d]);
    weights = times(weights, std::max(phased, t.reach[d] + t.dilations[d] - 1));
    results = times(times(results, positions), t.strides[d]);
  }
  return weights <= kMostElements && results <= kMostElements;
}

}  // namespace

std::optional<TransposedConv> transposed_conv(const NodeView& node) {
  const TensorType &x = node.type(0), &w = node.type(1);
  const auto shape = constant_shape(w);
  const auto g = transposed_geometry(node);
  if (!shape || !g.ok()) return std::nullopt;
  TransposedConv t{.group = node.attr_int("group", 1),
                   .c = (*shape)[0],
                   .m = (*shape)[1],
                   .kernel = g->kernel,
                   .strides = g->strides,
                   .dilations = g->dilations,
                   .apart = {},
                   .reach = {},
                   .steps = {},
                   .in = {x.dims.begin() + 2, x.dims.end()},
                   .begin = g->pads_begin,
                   .out = g->out};
  for (size_t d = 0; d < t.spatial(); ++d) {
    t.apart.push_back(t.strides[d] == 1 ? t.dilations[d] : 1);
    t.reach.push_back((t.kernel[d] - 1) * (t.dilations[d] / t.apart[d]) + 1);
    t.steps.push_back((t.reach[d] + t.strides[d] - 1) / t.strides[d]);
  }
  return fits_in_memory(t, x.dims[0]) ? std::optional(std::move(t)) : std::nullopt;
}

namespace {

// May it skip more elements of x than there are? Then its results are padding alone.
bool may_skip_all(const Expr& in, const Phase& p) {
  const auto [less, more] = std::minmax(p.before, p.after);
  return less < 0 && more > 0 && as_int(in).value_or(0) + less < 0;
}

}  // namespace

Phases separate_phases(const TransposedConv& t) {
  constexpr int64_t kMostParts = 8;
  Phases phases(t.spatial());
  int64_t parts = 1;
  for (size_t d = 0; d < t.spatial(); ++d) {
    const int64_t stride = t.strides[d];
    if (parts = times(parts, stride); parts > kMostParts) return {};
    const auto begin = as_int(t.begin[d]);
    const Expr count = simplify(floordiv(t.out[d], stride));
    if (!begin || !can_prove_equal(count * Expr(stride), t.out[d])) return {};
    const auto longer = as_int(simplify(count - t.in[d]));
    for (int64_t r = 0; longer && r < stride; ++r) {
      const int64_t at = r + *begin, shift = (at >= 0 ? at : at - stride + 1) / stride;
      Phase p{.first = at - shift * stride, .shift = shift};
      p.steps = std::max<int64_t>((t.reach[d] - p.first + stride - 1) / stride, 0);
      p.before = t.span(d, p.steps) - shift;
      p.after = *longer + shift;
      if (p.steps > 0 && may_skip_all(t.in[d], p)) return {};
      phases[d].push_back(p);
    }
    if (phases[d].empty()) return {};
  }
  return phases;
}

bool separation_pays(const TransposedConv& t, const Phases& phases) {
  constexpr int64_t kChannels = 16;
  // Those of all groups lie side by side where each reads one channel.
  const int64_t together = t.c == t.group ? t.group : 1;
  auto groups = [&](int64_t c) {
    return static_cast<double>((c * together + kChannels - 1) / kChannels * kChannels);
  };
  double joint = 1, separate = groups(t.m);
  int64_t parts = 1;
  for (size_t d = 0; d < phases.size(); ++d) {
    const int64_t in = as_int(t.in[d]).value_or(kUnknownExtent);
    double taps = 0;
    for (const Phase& p : phases[d])
      taps += static_cast<double>(p.steps) * static_cast<double>(in + p.after - p.shift);
    joint *= static_cast<double>(t.steps[d]) * static_cast<double>(in + t.span(d, t.steps[d]));
    separate *= taps;
    parts *= t.strides[d];
  }
  joint *= groups(t.m * parts);
  return separate <= joint;
}

}  // namespace tilewright::passes
