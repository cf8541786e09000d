// ConvTranspose as ordinary convolutions. Output position y = q * stride + r of phase r uses only
// the kernel elements k = j * stride + r, so the phases are output channels of one convolution with
// stride 1 over q (its kernel runs backwards over j), whose result is interleaved and then cropped;
// or, where they differ in what they read, convolutions of their own.
#include <array>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/windows.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;
using Ints = std::vector<int64_t>;

struct Transposed {
  size_t n = 0;  // spatial dimensions
  int64_t group = 1;
  Ints kernel;  // with its dilation written out
  Ints strides, dilations;
  Ints steps;                    // kernel elements of one phase, rounded up
  std::vector<Expr> begin, out;  // cropped at the start; output extents
};

// The extents of the result and what is cut off before it.
void crop(NodeImport& n, Transposed& t, ValueId x) {
  const Ints pads = n.ints_attr("pads", Ints(2 * t.n, 0)),
             more = n.ints_attr("output_padding", Ints(t.n, 0)),
             wanted = n.ints_attr("output_shape");
  const AutoPad mode = auto_pad(n);
  if (pads.size() != 2 * t.n || more.size() != t.n || (!wanted.empty() && wanted.size() < t.n))
    n.fail("pads, output_padding or output_shape do not fit " + std::to_string(t.n) +
           " spatial dimensions");
  for (size_t d = 0; d < t.n; ++d) {
    const Expr in = n.dim(x, static_cast<int>(d) + 2);
    const Expr full = (in - 1) * Expr(t.strides[d]) + Expr(more[d] + t.kernel[d]);
    const bool same = is_same(mode), valid = mode == AutoPad::kValid;
    Expr out, begin = valid ? 0 : pads[d];
    if (!wanted.empty())
      out = wanted[d + wanted.size() - t.n];
    else if (same)
      out = in * Expr(t.strides[d]);
    else
      out = full - begin - Expr(valid ? 0 : pads[d + t.n]);
    if (same || !wanted.empty()) {
      Expr total = max(full - out, 0), half = floordiv(total, 2);
      begin = mode == AutoPad::kSameUpper ? half : total - half;
    }
    t.begin.push_back(simplify(begin));
    t.out.push_back(simplify(out));
    if (auto e = ir::as_int(t.out.back()); e && *e < 0)
      n.fail("output extent " + std::to_string(*e));
  }
}

// What the attributes and shapes say, checked; extents of w must be known, those of x need not.
Transposed geometry(NodeImport& n, ValueId x, ValueId w) {
  Transposed t;
  if (n.rank(x) < 3 || n.rank(w) != n.rank(x))
    n.fail("x is " + to_string(n.type(x)) + ", w is " + to_string(n.type(w)));
  t.n = static_cast<size_t>(n.rank(x)) - 2;
  t.group = n.int_attr("group", 1);
  t.strides = n.ints_attr("strides", Ints(t.n, 1));
  t.dilations = n.ints_attr("dilations", Ints(t.n, 1));
  if (t.strides.size() != t.n || t.dilations.size() != t.n)
    n.fail("strides or dilations do not fit " + std::to_string(t.n) + " spatial dimensions");
  for (int d = 0; d < 2 + static_cast<int>(t.n); ++d)
    if (!ir::as_int(n.dim(w, d))) n.needs_value("the shape of w is not known at compile time");
  const int64_t c = *ir::as_int(n.dim(w, 0)), cx = ir::as_int(n.dim(x, 1)).value_or(c);
  if (t.group < 1 || c % t.group || c != cx)
    n.fail("channels do not fit: x is " + to_string(n.type(x)) + ", w is " + to_string(n.type(w)) +
           ", group is " + std::to_string(t.group));
  for (size_t d = 0; d < t.n; ++d) {
    if (t.strides[d] < 1 || t.dilations[d] < 1) n.fail("strides and dilations must be at least 1");
    t.kernel.push_back((*ir::as_int(n.dim(w, static_cast<int>(d) + 2)) - 1) * t.dilations[d] + 1);
    t.steps.push_back((t.kernel[d] + t.strides[d] - 1) / t.strides[d]);
  }
  crop(n, t, x);
  return t;
}

// `more[d]` zeros after dimension d + first of v; negative: cut off.
ValueId extended(NodeImport& n, ValueId v, size_t first, const Ints& more) {
  Ints pads(2 * static_cast<size_t>(n.rank(v)), 0);
  bool any = false;
  for (size_t d = 0; d < more.size(); ++d)
    any |= (pads[static_cast<size_t>(n.rank(v)) + first + d] = more[d]) != 0;
  return any ? n.op("pad", {v, n.ints(pads)}) : v;
}

// w: [c, m, k...] with zeros between the elements of the kernel.
ValueId dilated(NodeImport& n, ValueId w, const Transposed& t) {
  if (t.dilations == Ints(t.n, 1)) return w;
  Ints apart{*ir::as_int(n.dim(w, 0)), *ir::as_int(n.dim(w, 1))}, joined = apart,
                                                                  between(2 * t.n, 0), after(t.n);
  for (size_t d = 0; d < t.n; ++d) {
    const int64_t k = *ir::as_int(n.dim(w, static_cast<int>(d) + 2));
    apart.insert(apart.end(), {k, 1});
    joined.push_back(k * t.dilations[d]);
    between[2 * d + 1] = t.dilations[d] - 1;
    after[d] = t.kernel[d] - k * t.dilations[d];
  }
  return extended(n, n.reshape(extended(n, n.reshape(w, apart), 2, between), joined), 2, after);
}

// [c, m, k...] to [m * phases, c / group, steps...], backwards along steps.
ValueId phase_weights(NodeImport& n, ValueId w, const Transposed& t) {
  const int64_t c = *ir::as_int(n.dim(w, 0)), m = *ir::as_int(n.dim(w, 1));
  Ints more(t.n), split{t.group, c / t.group, m}, order{0, 2}, result{t.group * m, c / t.group};
  w = dilated(n, w, t);
  for (size_t d = 0; d < t.n; ++d) more[d] = t.steps[d] * t.strides[d] - t.kernel[d];
  w = extended(n, w, 2, more);
  for (size_t d = 0; d < t.n; ++d) {
    split.insert(split.end(), {t.steps[d], t.strides[d]});
    order.push_back(static_cast<int64_t>(2 * d + 4));
    result[0] *= t.strides[d];
    result.push_back(t.steps[d]);
  }
  order.push_back(1);
  for (size_t d = 0; d < t.n; ++d) order.push_back(static_cast<int64_t>(2 * d + 3));
  w = n.reshape(n.transpose(n.reshape(w, split), order), result);
  for (size_t d = 0; d < t.n; ++d)
    if (t.steps[d] > 1) w = n.slice(w, static_cast<int>(d) + 2, -1, INT64_MIN, -1);
  return w;
}

// [b, m * phases, q...] to [b, m, q * stride...].
ValueId interleaved(NodeImport& n, ValueId y, const Transposed& t, const Expr& channels) {
  if (t.strides == Ints(t.n, 1)) return y;
  std::vector<Expr> split{n.dim(y, 0), channels}, joined = split;
  for (int64_t s : t.strides) split.push_back(s);
  Ints order{0, 1};
  for (size_t d = 0; d < t.n; ++d) {
    const Expr q = n.dim(y, static_cast<int>(d) + 2);
    split.push_back(q);
    joined.push_back(simplify(q * Expr(t.strides[d])));
    order.insert(order.end(), {static_cast<int64_t>(2 + t.n + d), static_cast<int64_t>(2 + d)});
  }
  return n.reshape(n.transpose(n.reshape(y, split), order), joined);
}

// A convolution, rounded once where a bias follows.
ValueId summed_phases(NodeImport& n, ValueId x, ValueId w, ir::Attributes attributes) {
  return n.has(2) ? n.product("conv", {x, w}, std::move(attributes))
                  : n.op("conv", {x, w}, std::move(attributes));
}

// All phases as the channels of one convolution, interleaved and cropped.
ValueId jointly(NodeImport& n, ValueId x, ValueId w, const Transposed& t, const Expr& channels) {
  Ints pads;
  for (size_t d = 0; d < 2 * t.n; ++d) pads.push_back(t.steps[d % t.n] - 1);
  ValueId y = summed_phases(n, x, phase_weights(n, w, t), {{"group", t.group}, {"pads", pads}});
  y = interleaved(n, y, t, channels);
  std::vector<Expr> cut(2 * (t.n + 2), Expr(0));
  bool any = false;
  for (size_t d = 0; d < t.n; ++d) {
    const Expr made = n.dim(y, static_cast<int>(d) + 2);
    cut[d + 2] = simplify(Expr(0) - t.begin[d]);
    cut[d + 4 + t.n] = simplify(t.begin[d] + t.out[d] - made);
    any |= !ir::is_zero(cut[d + 2]) || !ir::is_zero(cut[d + 4 + t.n]);
  }
  return any ? n.op("pad", {y, n.dims(cut)}) : y;
}

// One phase of one dimension: position q of its results is result q * stride + its number, made of
// x[q + shift - j] and kernel element j * stride + first for each j below `steps`.
struct Phase {
  int64_t first = 0, shift = 0, steps = 0;
  int64_t before = 0, after = 0;  // padding of x; negative: elements that it does not read
};
using Phases = std::vector<std::vector<Phase>>;  // by dimension

// Empty where a phase has no kernel element, or extents are not known well enough.
Phases separate_phases(NodeImport& n, ValueId x, const Transposed& t) {
  Phases phases(t.n);
  for (size_t d = 0; d < t.n; ++d) {
    const int64_t stride = t.strides[d];
    const auto begin = ir::as_int(t.begin[d]);
    const Expr count = simplify(floordiv(t.out[d], stride));
    if (!begin || !can_prove_equal(count * Expr(stride), t.out[d])) return {};
    const auto longer = ir::as_int(simplify(count - n.dim(x, static_cast<int>(d) + 2)));
    for (int64_t r = 0; longer && r < stride; ++r) {
      const int64_t at = r + *begin, shift = (at >= 0 ? at : at - stride + 1) / stride;
      Phase p{.first = at - shift * stride, .shift = shift};
      p.steps = (t.kernel[d] - p.first + stride - 1) / stride;
      p.before = p.steps - 1 - shift;
      p.after = *longer + shift;
      if (p.steps < 1) return {};
      phases[d].push_back(p);
    }
    if (phases[d].empty()) return {};
  }
  return phases;
}

// Do separate convolutions compute no more than a joint one, which takes as many kernel elements
// for each phase and computes what is cropped, too? Channels are computed in groups, some of it for
// nothing.
bool pays(NodeImport& n, ValueId x, ValueId w, const Transposed& t, const Phases& phases) {
  constexpr int64_t kMostParts = 8, kUnknownExtent = 64, kChannels = 16;
  const int64_t channels = ir::as_int(n.dim(w, 1)).value_or(kUnknownExtent);
  auto groups = [&](int64_t c) {
    return static_cast<double>((c + kChannels - 1) / kChannels * kChannels);
  };
  double joint = 1, separate = groups(channels);
  int64_t parts = 1;
  for (size_t d = 0; d < phases.size(); ++d) {
    const int64_t in = ir::as_int(n.dim(x, static_cast<int>(d) + 2)).value_or(kUnknownExtent);
    int64_t taps = 0;
    for (const Phase& p : phases[d]) taps += p.steps * (in + p.after - p.shift);
    joint *= static_cast<double>(t.steps[d] * (in + t.steps[d] - 1));
    separate *= static_cast<double>(taps);
    parts *= t.strides[d];
  }
  joint *= groups(channels * parts);
  return !phases.empty() && parts <= kMostParts && separate <= joint;
}

// The convolution of one phase in each dimension.
ValueId phase_conv(NodeImport& n, ValueId x, ValueId w, Transposed t,
                   const std::vector<Phase>& phase) {
  Ints pads(2 * t.n), cut(2 * (t.n + 2), 0);
  for (size_t d = 0; d < t.n; ++d) {
    const Phase& p = phase[d];
    if (t.strides[d] > 1) w = n.slice(w, static_cast<int>(d) + 2, p.first, INT64_MAX, t.strides[d]);
    t.kernel[d] = t.steps[d] = p.steps;
    pads[d] = std::max<int64_t>(p.before, 0);
    pads[d + t.n] = std::max<int64_t>(p.after, 0);
    cut[d + 2] = std::min<int64_t>(p.before, 0);
    cut[d + 4 + t.n] = std::min<int64_t>(p.after, 0);
  }
  if (cut != Ints(cut.size(), 0)) x = n.op("pad", {x, n.ints(cut)});
  t.strides = t.dilations = Ints(t.n, 1);
  return summed_phases(n, x, phase_weights(n, w, t), {{"group", t.group}, {"pads", pads}});
}

// A convolution for each combination of phases; their results are interleaved.
ValueId separately(NodeImport& n, ValueId x, ValueId w, const Transposed& t, const Phases& phases) {
  w = dilated(n, w, t);
  std::vector<std::vector<Phase>> combinations(1);
  for (const std::vector<Phase>& of_dimension : phases) {
    std::vector<std::vector<Phase>> longer;
    for (const std::vector<Phase>& c : combinations)
      for (const Phase& p : of_dimension) {
        longer.push_back(c);
        longer.back().push_back(p);
      }
    combinations = std::move(longer);
  }
  std::vector<ValueId> parts;
  for (const std::vector<Phase>& c : combinations) parts.push_back(phase_conv(n, x, w, t, c));
  for (size_t d = t.n; d-- > 0;) {
    const auto each = static_cast<size_t>(t.strides[d]);
    std::vector<ValueId> joined;
    for (size_t k = 0; each > 1 && k < parts.size(); k += each)
      joined.push_back(
          n.op("concat",
               {parts.begin() + static_cast<long>(k), parts.begin() + static_cast<long>(k + each)},
               {{"axis", static_cast<int64_t>(d) + 2}, {"interleave", int64_t{1}}}));
    if (each > 1) parts = std::move(joined);
  }
  return parts[0];
}

// Both ways give the same sums; they differ in what is computed for nothing.
void conv_transpose(NodeImport& n) {
  ValueId x = n.required_stored(0), w = shaped_kernel(n, n.required_stored(1));
  const Transposed t = geometry(n, x, w);
  const Expr channels = simplify(n.dim(w, 1) * Expr(t.group));
  const Phases phases = separate_phases(n, x, t);
  ValueId y =
      pays(n, x, w, t, phases) ? separately(n, x, w, t, phases) : jointly(n, x, w, t, channels);
  if (n.has(2)) {
    std::vector<Expr> per_channel(t.n + 1, Expr(1));
    per_channel[0] = channels;
    y = n.op("add", {y, n.reshape(n.in(2), per_channel)});
  }
  n.out(0, y);
}

constexpr auto kRows =
    std::to_array<OpMapping>({{"", "ConvTranspose", 1, conv_transpose, Form::kFormula}});

}  // namespace

std::span<const OpMapping> conv_transpose_mappings() { return kRows; }

}  // namespace tilewright::onnx
