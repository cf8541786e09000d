// Attention and what goes with it in transformers, by smaller operators.
#include <array>
#include <cmath>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

V reshaped(V v, const std::vector<Expr>& dims) { return {v.n, v.n.reshape(v.id, dims)}; }
V transposed(V v, const std::vector<int64_t>& perm) { return {v.n, v.n.transpose(v.id, perm)}; }
V joined(V a, V b, int64_t axis) { return a.make("concat", {a.id, b.id}, {{"axis", axis}}); }
Expr dim(V v, int d) { return v.n.dim(v.id, d); }

// [b, s, heads * d] as [b, heads, s, d]; four dimensions stay.
V split_heads(NodeImport& n, V v, int64_t heads) {
  if (v.rank() == 4) return v;
  if (v.rank() != 3)
    v.n.fail("operand is " + to_string(v.n.type(v.id)) + ", expected 3 or 4 dimensions");
  if (heads < 1 || ir::as_int(dim(v, 2)).value_or(heads) % heads)
    v.n.fail(std::to_string(heads) + " heads for " + to_string(v.n.type(v.id)));
  n.require_multiple(dim(v, 2), heads, std::to_string(heads) + " heads must be of one size");
  return transposed(
      reshaped(v, {dim(v, 0), dim(v, 1), Expr(heads), simplify(floordiv(dim(v, 2), Expr(heads)))}),
      {0, 2, 1, 3});
}
V merge_heads(V v) {
  V t = transposed(v, {0, 2, 1, 3});
  return reshaped(t, {dim(t, 0), dim(t, 1), simplify(dim(t, 2) * dim(t, 3))});
}

struct Cached {
  V present;
  ValueId past_length;
};  // past_length: i64[1], or none
// The KV cache: keys and values of earlier steps in front of the new ones, along the sequence.
Cached with_past(V v, ValueId past) {
  if (past == kNone) return {v, kNone};
  return {joined(V{v.n, past}, v, 2), v.n.slice(v.n.op("shape", {past}), 0, 2, 3)};
}

// The attention mask over the scores, of bools or of their type, padded with "masked" to all keys.
V padded_mask(NodeImport& n, V mask, const Expr& keys) {
  auto have = ir::as_int(dim(mask, mask.rank() - 1)), want = ir::as_int(keys);
  if (!have || !want || *have >= *want || *have == 1) return mask;
  const bool boolean = mask.dtype() == DType::kBool;
  V fill =
      boolean ? V{n, n.constant(ir::make_constant(DType::kBool, {}, {0}))} : mask.number(-INFINITY);
  std::vector<Expr> dims = n.type(mask.id).dims;
  dims.back() = Expr(*want - *have);
  return joined(mask, fill.make("expand", {fill.id, n.dims(dims)}), mask.rank() - 1);
}
// The mask operand, then the window of positions that a query may see (causal, sliding), and
// lengths of padded sequences; these three compare positions and need no tensor of the scores'
// shape.
V masked_scores(NodeImport& n, V scores, ValueId mask_id, const Cached& key) {
  const Expr keys = dim(scores, 3);
  if (mask_id != kNone) {
    V mask{n, mask_id};
    if (mask.dtype() != DType::kBool) mask = mask.to(scores.dtype());
    mask = padded_mask(n, mask, keys);
    // A score that is masked by -inf is -inf, whatever it was.
    V low = scores.number(-INFINITY);
    if (mask.dtype() == DType::kBool) {
      scores = where(mask, scores, low);
    } else {
      scores = where(apply("equal", mask, low), low, scores + mask);
    }
  }
  Attributes window;
  int64_t left = n.int_attr("left_window_size", -1), right = n.int_attr("right_window_size", -1);
  if (left < -1 || right < -1)
    n.fail("window sizes " + std::to_string(left) + " and " + std::to_string(right));
  if (n.int_attr("is_causal", 0)) right = 0;
  if (left >= 0) window["left"] = left;
  if (right >= 0) window["right"] = right;
  ValueId lengths = n.within(n.in(6), keys + 1, "an element of 'nonpad_kv_seqlen'"),
          offset = key.past_length;
  if (lengths != kNone && offset == kNone)
    offset =
        n.op("sub", {n.cast(lengths, DType::kInt64), n.slice(n.op("shape", {scores.id}), 0, 2, 3)});
  if (window.empty() && lengths == kNone) return scores;
  return scores.make("mask_window", {scores.id, offset, lengths}, window);
}

// Scaled dot-product attention (Vaswani et al. 2017), y = softmax(q k^T * scale + mask) v, written
// out as products and a softmax; fuse_attention finds the pattern again. Grouped queries (GQA,
// Ainslie et al. 2023; one head of k and v: MQA) are a batched product whose rows are the queries
// of one group, so that k and v are not repeated in memory.
void attention(NodeImport& n) {
  V q{n, n.required(0)}, k{n, n.required(1)}, v{n, n.required(2)};
  const bool packed = q.rank() == 3;
  q = split_heads(n, q, n.int_attr("q_num_heads", 0));
  k = split_heads(n, k, n.int_attr("kv_num_heads", 0));
  v = split_heads(n, v, n.int_attr("kv_num_heads", 0));
  if (n.has(4) != n.has(5)) n.fail("past_key and past_value must be given together");
  Cached key = with_past(k, n.in(4)), value = with_past(v, n.in(5));
  n.out(1, key.present.id);
  n.out(2, value.present.id);
  const DType t = q.dtype();
  auto size = ir::as_int(dim(q, 3));
  if (!size && !n.has_attr("scale"))
    n.needs_value("the size of a head is not known at compile time");
  const double scale =
      n.has_attr("scale") ? n.float_attr("scale", 1) : 1 / std::sqrt(static_cast<double>(*size));
  // The square root of the scale on either side keeps half precision from overflowing.
  q = q * std::sqrt(scale);
  k = key.present * std::sqrt(scale);
  v = value.present;
  // Grouped queries: heads of q share a head of k and v.
  auto q_heads = ir::as_int(dim(q, 1)), kv_heads = ir::as_int(dim(k, 1));
  if (!q_heads || !kv_heads) n.needs_value("the number of heads is not known at compile time");
  if (*kv_heads < 1 || *q_heads % *kv_heads)
    n.fail(std::to_string(*q_heads) + " heads of q, " + std::to_string(*kv_heads) + " of k and v");
  const bool grouped = *q_heads != *kv_heads;
  auto group = [&](V x, int64_t per) {
    return reshaped(x, {dim(x, 0), Expr(*kv_heads), Expr(per), dim(x, 2), dim(x, 3)});
  };
  auto ungroup = [&](V x) {
    return reshaped(x, {dim(x, 0), Expr(*q_heads), dim(x, 3), dim(x, 4)});
  };
  if (grouped) {
    q = group(q, *q_heads / *kv_heads);
    k = group(k, 1);
    v = group(v, 1);
  }
  V scores = q.make("matmul", {q.id, k.id}, {{"trans_b", int64_t{1}}});
  if (grouped) scores = ungroup(scores);
  const int64_t mode = n.int_attr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) n.fail("qk_matmul_output_mode " + std::to_string(mode));
  if (mode == 0) n.out(3, scores.id);
  if (const double cap = n.float_attr("softcap", 0); cap > 0)
    scores = apply("tanh", scores / cap) * cap;
  if (mode == 1) n.out(3, scores.id);
  scores = masked_scores(n, scores, n.in(3), key);
  if (mode == 2) n.out(3, scores.id);
  if (n.has_attr("softmax_precision")) {
    auto precision = dtype_from_onnx(static_cast<int>(n.int_attr("softmax_precision", 1)));
    if (!precision || !is_float(*precision))
      n.unsupported("softmax_precision " + std::to_string(n.int_attr("softmax_precision", 1)));
    scores = scores.to(*precision);
  }
  V p = scores.make("softmax", {scores.id}, {{"axis", int64_t{3}}, {"zero_masked", int64_t{1}}})
            .to(t);
  if (mode == 3) n.out(3, p.id);
  if (grouped) p = group(p, *q_heads / *kv_heads);
  V y = apply("matmul", p, v);
  if (grouped) y = ungroup(y);
  n.out(0, (packed ? merge_heads(y) : y).id);
}

// Pairs of elements turned by an angle that depends on the position: halves apart, or neighbours
// when interleaved.
void rotary_embedding(NodeImport& n) {
  V x{n, n.required(0)}, cos{n, n.required(1)}, sin{n, n.required(2)};
  const bool packed = x.rank() == 3, interleaved = n.int_attr("interleaved", 0) != 0;
  V y = split_heads(n, x, n.int_attr("num_heads", 0));
  auto size = ir::as_int(dim(y, 3));
  if (!size) n.needs_value("the size of a head is not known at compile time");
  const int64_t given = n.int_attr("rotary_embedding_dim", 0), turned = given ? given : *size;
  if (turned < 2 || turned % 2 || turned > *size)
    n.fail("rotary_embedding_dim " + std::to_string(turned) + " of heads of size " +
           std::to_string(*size));
  // Tables: [b, s, turned / 2], or [positions, turned / 2] to be looked up.
  auto table = [&](V t) {
    if (n.has(3)) t = {n, n.op("gather", {t.id, n.in(3)})};
    if (t.rank() != 3) n.fail("cache is " + to_string(n.type(t.id)) + ", expected 3 dimensions");
    n.require_equal(dim(t, 2), turned / 2,
                    "the last dimension of a cache must be " + std::to_string(turned / 2));
    return reshaped(t, {dim(t, 0), Expr(1), dim(t, 1), dim(t, 2)});
  };
  cos = table(cos);
  sin = table(sin);
  auto part = [&](int64_t start, int64_t end, int64_t step) {
    return V{n, n.slice(y.id, 3, start, end, step)};
  };
  V a = interleaved ? part(0, turned, 2) : part(0, turned / 2, 1),
    b = interleaved ? part(1, turned, 2) : part(turned / 2, turned, 1);
  V real = cos * a - sin * b, imaginary = sin * a + cos * b, z = real;
  if (interleaved) {
    std::vector<Expr> pairs = n.type(real.id).dims, flat = pairs;
    pairs.push_back(Expr(1));
    flat[3] = Expr(turned);
    z = reshaped(joined(reshaped(real, pairs), reshaped(imaginary, pairs), 4), flat);
  } else {
    z = joined(real, imaginary, 3);
  }
  if (turned < *size) z = joined(z, part(turned, *size, 1), 3);
  n.out(0, (packed ? merge_heads(z) : z).id);
}

// Swish(a) * b, the gate of Shazeer 2020 without its products.
void swiglu(NodeImport& n) {
  V a{n, n.required(0)}, b{n, n.required(1)};
  const double alpha = n.float_attr("alpha", 1);
  n.out(0, (a * apply("sigmoid", alpha == 1 ? a : a * alpha) * b).id);
}

// x: [b, c, length], weight: [c, 1, k]; the state is the last k - 1 positions of what came before.
void causal_conv(NodeImport& n) {
  V x{n, n.required(0)}, w{n, n.required(1)};
  if (x.rank() != 3 || w.rank() != 3)
    n.fail("x is " + to_string(n.type(x.id)) + ", weight is " + to_string(n.type(w.id)));
  auto channels = ir::as_int(dim(w, 0)), k = ir::as_int(dim(w, 2));
  if (!channels || !k) n.needs_value("the shape of the weight is not known at compile time");
  V past = x;
  if (n.has(3)) {
    past = {n, n.in(3)};
  } else {
    past = {n,
            n.op("expand", {n.scalar_like(0, x.id), n.dims({dim(x, 0), dim(x, 1), Expr(*k - 1)})})};
  }
  V padded = *k == 1 ? x : joined(past, x, 2);
  V y = padded.make("conv", {padded.id, w.id}, {{"group", *channels}});
  if (n.has(2)) y = y + reshaped({n, n.in(2)}, {Expr(*channels), Expr(1)});
  const std::string activation = n.string_attr("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = y * apply("sigmoid", y);
  else if (activation != "none")
    n.fail("activation '" + activation + "', expected none, silu or swish");
  n.out(0, y.id);
  if (n.wants(1)) n.out(1, *k == 1 ? past.id : n.slice(padded.id, 2, -(*k - 1), INT64_MAX));
}

// Attention without a softmax, as a recurrence over a state of d * d numbers for each head; the
// delta rules correct the state by what it would have answered (Yang et al. 2024). The operator has
// the recurrence, this only checks which operands a rule takes.
void linear_attention(NodeImport& n) {
  const std::string rule = n.string_attr("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    n.fail("update_rule '" + rule + "', expected linear, gated, delta or gated_delta");
  if (n.has(4) != gated || n.has(5) != delta)
    n.fail("update_rule '" + rule + "' does not fit the operands decay and beta");
  const int64_t heads = n.int_attr("q_num_heads", 0), kv_heads = n.int_attr("kv_num_heads", 0);
  double scale = n.float_attr("scale", 0);
  auto hidden = ir::as_int(n.dim(n.required(0), n.rank(n.required(0)) - 1));
  if (scale == 0 && !hidden) n.needs_value("the size of a head is not known at compile time");
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(*hidden) /
                          static_cast<double>(std::max<int64_t>(heads, 1)));
  auto y = n.ops("linear_attention",
                 {n.required(0), n.required(1), n.required(2), n.in(3), n.in(4), n.in(5)},
                 {{"q_heads", heads}, {"kv_heads", kv_heads}, {"scale", scale}}, 2);
  n.out(0, y[0]);
  n.out(1, y[1]);
}

constexpr auto kAttentionRows = std::to_array<OpMapping>({
    {"", "Attention", 23, attention, Form::kFormula},
    {"", "RotaryEmbedding", 23, rotary_embedding, Form::kFormula},
    {"", "SwiGLU", 1, swiglu, Form::kFormula},
    {"", "CausalConvWithState", 1, causal_conv, Form::kFormula},
    {"", "LinearAttention", 1, linear_attention},
});

}  // namespace

std::span<const OpMapping> attention_mappings() { return kAttentionRows; }

}  // namespace tilewright::onnx
