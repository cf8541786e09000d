// Transposed convolutions as ordinary ones. Their phases (conv_transpose_phases.h) are output channels
// of one convolution with stride 1 (its kernel runs backwards), whose result is interleaved as by
// depth-to-space and then cropped; or, where they differ in what they read, convolutions of their
// own.
//
// Both ways give the same sums; they differ in what is computed for nothing. Kernels of unequal phases, and those that
// are dilated and take strides, are filled up with zeros, and zeros stand around x: those of an infinite element are
// NaN, where the operator's own loops skip the product.
#include <algorithm>

#include "ir/loops/simplify.h"
#include "passes/graph/conv_transpose_phases.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

using Ints = std::vector<int64_t>;

class OpenConvTranspose : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (!rewrite(n)) push(std::move(n));
    }
    return std::move(graph_);
  }

 private:
  bool rewrite(const Node& n) {
    if (n.op != ops::conv_transpose()) return false;
    const auto t = transposed_conv(NodeView(graph_, n));
    if (!t) return false;
    out_dtype_ = n.attributes.count("out_dtype") ? std::optional(n.attributes.at("out_dtype"))
                                                 : std::nullopt;
    const ValueId x = n.inputs[0], w = n.inputs[1], y = n.outputs[0];
    result_ = type(y).dtype;
    const Phases phases = separate_phases(*t);
    const bool apart =
        !phases.empty() && decisions().decide_whether(decision_name(graph_, n, "separate_phases"),
                                                      separation_pays(*t, phases), Bits::kChanged);
    replace(y, apart ? separately(x, w, *t, phases) : jointly(x, w, *t));
    return true;
  }

  Expr dim(ValueId v, size_t d) const { return type(v).dims[d]; }
  ValueId transpose(ValueId v, const Ints& perm) {
    return op(ops::transpose(), {v}, {{"perm", perm}});
  }
  ValueId slice(ValueId v, size_t axis, int64_t start, int64_t end, int64_t step) {
    const ValueId from = integers(Ints{start}), to = integers(Ints{end}),
                  along = integers(Ints{static_cast<int64_t>(axis)});
    return op(ops::slice(), {v, from, to, along, integers(Ints{step})});
  }
  // A convolution with stride 1, in the types of the node.
  ValueId conv(ValueId x, ValueId w, const TransposedConv& t, Ints pads) {
    Attributes attributes{{"group", t.group}, {"pads", std::move(pads)}};
    if (t.apart != Ints(t.spatial(), 1)) attributes["dilations"] = t.apart;
    if (out_dtype_) attributes["out_dtype"] = *out_dtype_;
    return op(ops::conv(), {x, w}, std::move(attributes));
  }

  // `more[d]` zeros after dimension d + 2 of v.
  ValueId extended(ValueId v, const Ints& more) {
    const auto rank = static_cast<size_t>(type(v).rank());
    Ints pads(2 * rank, 0);
    for (size_t d = 0; d < more.size(); ++d) pads[rank + 2 + d] = more[d];
    return pads == Ints(2 * rank, 0) ? v : op(ops::pad(), {v, integers(pads)});
  }

  // w: [c, m, k...] with zeros between the elements of the kernel where dilations are written out.
  ValueId dilated(ValueId w, const TransposedConv& t) {
    if (t.reach == t.kernel) return w;
    Ints apart{t.c, t.m}, joined = apart, between(2 * t.spatial(), 0), after(t.spatial());
    for (size_t d = 0; d < t.spatial(); ++d) {
      const int64_t zeros = t.dilations[d] / t.apart[d] - 1;
      apart.insert(apart.end(), {t.kernel[d], 1});
      joined.push_back(t.kernel[d] * (zeros + 1));
      between[2 * d + 1] = zeros;
      after[d] = t.reach[d] - joined.back();
    }
    return extended(reshape(extended(reshape(w, apart), between), joined), after);
  }

  // [c, m, reach...] to [m * phases, c / group, steps...], backwards along steps.
  ValueId phase_weights(ValueId w, const TransposedConv& t) {
    const size_t n = t.spatial();
    Ints more(n), split{t.group, t.c / t.group, t.m}, order{0, 2},
        result{t.group * t.m, t.c / t.group};
    for (size_t d = 0; d < n; ++d) {
      more[d] = t.steps[d] * t.strides[d] - t.reach[d];
      split.insert(split.end(), {t.steps[d], t.strides[d]});
      order.push_back(static_cast<int64_t>(2 * d + 4));
      result[0] *= t.strides[d];
      result.push_back(t.steps[d]);
    }
    order.push_back(1);
    for (size_t d = 0; d < n; ++d) order.push_back(static_cast<int64_t>(2 * d + 3));
    w = reshape(transpose(reshape(extended(w, more), split), order), result);
    for (size_t d = 0; d < n; ++d)
      if (t.steps[d] > 1) w = slice(w, d + 2, -1, INT64_MIN, -1);
    return w;
  }

  // Weights, and whether they lie [k..., c, m] instead of [c, m, k...].
  struct Weights {
    ValueId values = kNone;
    bool windows_first = false;
  };
  // Several phases take matrices [c, m] of their own, instead of elements that are a window apart.
  Weights by_positions(ValueId w, const TransposedConv& t) {
    if (t.group != 1 || t.strides == Ints(t.spatial(), 1) || t.reach == Ints(t.spatial(), 1))
      return {w};
    constexpr int64_t kMostPositions = 16;  // that one pass over the weights parts in registers
    int64_t positions = 1;
    for (int64_t r : t.reach) positions *= r;
    if (positions > kMostPositions) return {w};
    const Ints order{2, 0, 1};
    if (t.spatial() == 1) return {transpose(w, order), true};
    Ints result = t.reach;
    result.insert(result.end(), {t.c, t.m});
    return {reshape(transpose(reshape(w, Ints{t.c, t.m, positions}), order), result), true};
  }
  // [c, m, k...] to [m, c / group, k...].
  ValueId of_outputs(const Weights& w, const TransposedConv& t) {
    const auto n = static_cast<int64_t>(t.spatial());
    Ints perm{1, 0}, split{t.group, t.c / t.group, t.m}, order{0, 2, 1},
        result{t.group * t.m, t.c / t.group};
    if (w.windows_first) perm = {n + 1, n};
    for (int64_t d = 0; d < n; ++d) {
      perm.push_back(w.windows_first ? d : d + 2);
      if (t.group == 1) continue;
      order.push_back(d + 3);
      split.push_back(*as_int(dim(w.values, static_cast<size_t>(d + 2))));
      result.push_back(split.back());
    }
    return t.group == 1 ? transpose(w.values, perm)
                        : reshape(transpose(reshape(w.values, split), order), result);
  }
  // So many steps along a dimension of the window, from the last one to `first`.
  Weights backwards(const Weights& w, size_t d, int64_t first, int64_t steps, int64_t stride) {
    const size_t at = w.windows_first ? d : d + 2;
    if (is_one(dim(w.values, at))) return w;
    const int64_t last = first + (steps - 1) * stride;
    return {steps == 1 ? slice(w.values, at, first, first + 1, 1)
                       : slice(w.values, at, last, first ? first - 1 : INT64_MIN, -stride),
            w.windows_first};
  }
  ValueId channel_weights(ValueId w, const TransposedConv& t) {
    if (t.strides != Ints(t.spatial(), 1)) return phase_weights(w, t);
    Weights all{w};
    for (size_t d = 0; d < t.spatial(); ++d) all = backwards(all, d, 0, t.steps[d], 1);
    return of_outputs(all, t);
  }

  // [b, m * phases, q...] to [b, m, q * stride...].
  ValueId interleaved(ValueId y, const TransposedConv& t) {
    const size_t n = t.spatial();
    if (t.strides == Ints(n, 1)) return y;
    std::vector<Expr> split{dim(y, 0), Expr(t.m * t.group)}, joined = split;
    for (int64_t s : t.strides) split.push_back(s);
    Ints order{0, 1};
    for (size_t d = 0; d < n; ++d) {
      const Expr q = dim(y, d + 2);
      split.push_back(q);
      joined.push_back(simplify(q * Expr(t.strides[d])));
      order.insert(order.end(), {static_cast<int64_t>(2 + n + d), static_cast<int64_t>(2 + d)});
    }
    return reshape(transpose(reshape(y, split), order), joined);
  }

  // All phases as the channels of one convolution, interleaved and cropped.
  ValueId jointly(ValueId x, ValueId w, const TransposedConv& t) {
    const size_t n = t.spatial();
    Ints pads;
    for (size_t d = 0; d < 2 * n; ++d) pads.push_back(t.span(d % n, t.steps[d % n]));
    const ValueId y = interleaved(conv(x, channel_weights(dilated(w, t), t), t, pads), t);
    std::vector<Expr> cut(2 * (n + 2), Expr(0));
    bool any = false;
    for (size_t d = 0; d < n; ++d) {
      cut[d + 2] = simplify(Expr(0) - t.begin[d]);
      cut[d + 4 + n] = simplify(t.begin[d] + t.out[d] - dim(y, d + 2));
      any |= !is_zero(cut[d + 2]) || !is_zero(cut[d + 4 + n]);
    }
    return any ? op(ops::pad(), {y, integers(cut)}) : y;
  }

  // The convolution of one phase in each dimension.
  ValueId phase_conv(ValueId x, Weights w, const TransposedConv& t,
                     const std::vector<Phase>& phase) {
    const size_t n = t.spatial();
    Ints pads(2 * n), cut(2 * (n + 2), 0);
    for (size_t d = 0; d < n; ++d) {
      const Phase& p = phase[d];
      w = backwards(w, d, p.first, p.steps, t.strides[d]);
      pads[d] = std::max<int64_t>(p.before, 0);
      pads[d + n] = std::max<int64_t>(p.after, 0);
      cut[d + 2] = std::min<int64_t>(p.before, 0);
      cut[d + 4 + n] = std::min<int64_t>(p.after, 0);
    }
    if (cut != Ints(cut.size(), 0)) x = op(ops::pad(), {x, integers(cut)});
    return conv(x, of_outputs(w, t), t, pads);
  }

  ValueId zeros_like(ValueId v) {
    return op(ops::expand(), {cast(number(0, DType::kInt32), result_), integers(type(v).dims)});
  }
  // kNone: zeros.
  ValueId interleaved_along(size_t axis, std::vector<ValueId> parts) {
    const auto some =
        std::find_if(parts.begin(), parts.end(), [](ValueId v) { return v != kNone; });
    if (some == parts.end()) return kNone;
    if (std::count(parts.begin(), parts.end(), kNone) > 0)
      std::replace(parts.begin(), parts.end(), kNone, zeros_like(*some));
    return op(ops::concat(), std::move(parts),
              {{"axis", static_cast<int64_t>(axis)}, {"interleave", int64_t{1}}});
  }

  // A convolution for each combination of phases; their results are interleaved.
  ValueId separately(ValueId x, ValueId w, const TransposedConv& t, const Phases& phases) {
    const Weights weights = by_positions(dilated(w, t), t);
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
    for (const std::vector<Phase>& c : combinations) {
      const bool none =
          std::any_of(c.begin(), c.end(), [](const Phase& p) { return p.steps == 0; });
      parts.push_back(none ? kNone : phase_conv(x, weights, t, c));
    }
    for (size_t d = t.spatial(); d-- > 0;) {
      const auto each = static_cast<size_t>(t.strides[d]);
      std::vector<ValueId> joined;
      for (size_t k = 0; each > 1 && k < parts.size(); k += each)
        joined.push_back(interleaved_along(d + 2, {parts.begin() + static_cast<long>(k),
                                                   parts.begin() + static_cast<long>(k + each)}));
      if (each > 1) parts = std::move(joined);
    }
    return parts[0];
  }

  std::optional<Attribute> out_dtype_;  // of the node that is rewritten
  DType result_ = DType::kFloat32;      // its result's
};

}  // namespace

Graph open_conv_transpose(Graph graph, Decisions* decisions) {
  return OpenConvTranspose(std::move(graph), decisions).run();
}

}  // namespace tilewright::passes
