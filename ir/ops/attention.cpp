// Scaled dot-product attention by its definition: softmax(scale Q K + bias) V, one step after the
// other over whole tensors. In which blocks it is computed, a schedule says (tile_attention).
//
//    S = scale Q K + bias      m = rowmax(S)      P = e^(S - m)      l = rowsum(P)      y = P V / l
//
// The derivative of S is P times that of P less the sum of both over the row, which is that of
// y times its own derivative. Not here: causal masks that skip whole blocks of keys (a mask is read
// like any other).
#include <limits>

#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

enum Operand { kQuery, kKey, kValue, kCondition, kBias };

// query: [..., s, d], key: [..., d, t], value: [..., t, v]; condition and bias broadcast to
// [..., s, t]. y: [..., s, v].
Status infer_attention(InferContext& c) {
  const auto &q = c.type(kQuery), &k = c.type(kKey), &v = c.type(kValue);
  const size_t rank = q.dims.size();
  if (rank < 2 || k.dims.size() != rank || v.dims.size() != rank)
    return c.error("expected [..., s, d], [..., d, t] and [..., t, v], found " + to_string(q) +
                   ", " + to_string(k) + ", " + to_string(v));
  const DType t = q.dtype;
  for (int i : {kQuery, kKey, kValue})
    if (c.type(i).dtype != t || (t != DType::kFloat32 && t != DType::kFloat64))
      return c.unsupported("operand " + to_string(c.type(i)));
  for (size_t d = 0; d + 2 < rank; ++d)
    if (!c.agree(q.dims[d], k.dims[d]) || !c.agree(q.dims[d], v.dims[d]))
      return c.error("batch dimensions of " + to_string(q) + ", " + to_string(k) + " and " +
                     to_string(v) + " differ");
  if (!c.agree(q.dims[rank - 1], k.dims[rank - 2]) || !c.agree(k.dims[rank - 1], v.dims[rank - 2]))
    return c.error("inner dimensions of " + to_string(q) + ", " + to_string(k) + " and " +
                   to_string(v) + " differ");
  std::vector<Expr> scores = q.dims, y = q.dims;
  scores.back() = k.dims.back();
  y.back() = v.dims.back();
  for (int i : {kCondition, kBias}) {
    if (!c.has(i)) continue;
    if (c.type(i).dtype != (i == kBias ? t : DType::kBool))
      return c.error("operand " + to_string(c.type(i)) + ", expected " +
                     std::string(i == kBias ? name(t) : "bool"));
    auto dims = c.broadcast(scores, c.type(i).dims);
    if (!dims.ok() || dims->size() != rank)
      return c.error(to_string(c.type(i)) + " does not fit scores of " +
                     to_string(TensorType{t, scores}));
  }
  if (is_zero(k.dims[rank - 1])) return c.error("no keys: " + to_string(k));
  c.set_output(0, t, std::move(y));
  return {};
}

// A row of nothing but -inf has weights of 0, or none: so it does not matter how many of its scores
// have been seen.
Expr shift(const Expr& most) {
  return select(eq(most, lowest(most.dtype())), constant(0, most.dtype()), most);
}

// Buffers have the names of the formula above.
void compute_attention(ComputeContext& c) {
  const DType t = c.in(kQuery)->dtype;
  const Expr none = constant(0, t), keys = c.dim(kKey, c.rank(kKey) - 1);
  const size_t row = c.in(kQuery)->shape.size() - 2;  // dimension, and place among axes
  std::vector<Expr> rows(c.in(kQuery)->shape.begin(), c.in(kQuery)->shape.end() - 1), scores = rows;
  std::vector<Expr> values = rows;  // not the result's extents, which are as long by another name
  scores.push_back(keys);
  values.push_back(c.out()->shape.back());
  const auto along = [row](const Axes& i, const Expr& from, const Expr& to) {
    Axes at(i.begin(), i.begin() + static_cast<long>(row));
    at.push_back(from);
    at.push_back(to);
    return at;
  };
  const auto row_of = [&](const Axes& i) {
    return Axes(i.begin(), i.begin() + static_cast<long>(row) + 1);
  };
  const auto rows_of = [](const Buffer& b) {
    return [b](const Axes& i, const Axes& j) {
      Axes at = i;
      at.push_back(j[0]);
      return load(b, at);
    };
  };
  Buffer products = c.b.temp("qk", t, scores), s = c.b.temp("s", t, scores),
         most = c.b.temp("m", t, rows), weights = c.b.temp("p", t, scores),
         total = c.b.temp("l", t, rows), sums = c.b.temp("pv", t, values),
         factor = c.b.temp("by", t, rows);
  c.b.reduce(
      products, {c.dim(kQuery, static_cast<int>(row) + 1)}, Combiner::kSum,
      [&](const Axes& i, const Axes& d) {
        return load(c.in(kQuery), along(i, i[row], d[0])) *
               load(c.in(kKey), along(i, d[0], i[row + 1]));
      },
      "products");
  c.b.compute(
      s,
      [&](const Axes& i) {
        Expr e = load(products, i) * constant(c.attr_float("scale", 1), t);
        if (c.has(kCondition))
          e = select(c.read(kCondition, i), e, constant(c.attr_float("fill"), t));
        return c.has(kBias) ? e + c.read(kBias, i) : e;
      },
      "scores");
  c.b.reduce(most, {keys}, Combiner::kMaxNumber, rows_of(s), "largest");
  c.b.compute(
      weights,
      [&](const Axes& i) {
        return unary(UnaryOp::kExp, load(s, i) - shift(load(most, row_of(i))));
      },
      "weights");
  c.b.reduce(total, {keys}, Combiner::kSum, rows_of(weights), "total");
  c.b.reduce(
      sums, {keys}, Combiner::kSum,
      [&](const Axes& i, const Axes& j) {
        return load(weights, along(i, i[row], j[0])) *
               load(c.in(kValue), along(i, j[0], i[row + 1]));
      },
      "values");
  const bool zero_masked = c.attr_int("zero_masked") != 0;
  c.b.compute(
      factor,
      [&](const Axes& i) {
        const Expr sum = load(total, i), by = constant(1, t) / sum;
        return zero_masked ? select(sum > none, by, none) : by;
      },
      "factor");
  c.b.compute_at(
      c.out(), values,
      [&](const Axes& i) {
        Expr y = load(sums, i) * load(factor, row_of(i));
        if (zero_masked) y = select(load(total, row_of(i)) > none, y, none);
        return LoopsBuilder::Write{i, as_int(keys) ? y : select(keys > Expr(0), y, none)};
      },
      "attention");
}

// The weights once more, by the operators that attention is made of.
V attention_weights(GradientContext& c) {
  const NodeView node = c.view();
  const V scale = c.in(kQuery).number(node.attr_float("scale", 1));
  V s = apply("matmul", c.in(kQuery), c.in(kKey)) * scale;
  if (c.has(kCondition)) s = where(c.in(kCondition), s, s.number(node.attr_float("fill")));
  if (c.has(kBias)) s = s + c.in(kBias);
  const V weights = s.make("softmax", {s.id}, {{"axis", int64_t{-1}}});
  if (!node.attr_int("zero_masked")) return weights;
  const V most = reduce("reduce_max", s, {s.rank() - 1});
  return where(apply("equal", most, s.number(-std::numeric_limits<double>::infinity())),
               s.number(0), weights);
}
// By whole tensors of scores, as what attention was made of: no block of keys is taken by itself.
void gradient_of_attention(GradientContext& c) {
  const V dy = c.dy(), weights = attention_weights(c);
  const auto product = [](V a, V b, const char* transposed) {
    return a.make("matmul", {a.id, b.id}, {{transposed, int64_t{1}}});
  };
  c.add(kValue, product(weights, dy, "trans_a"));
  const V of_weights = product(dy, c.in(kValue), "trans_b");
  const V all = reduce("reduce_sum", dy * c.out(), {dy.rank() - 1});
  V of_scores = weights * (of_weights - all);
  if (c.has(kBias)) c.add(kBias, of_scores);
  if (c.has(kCondition)) of_scores = where(c.in(kCondition), of_scores, dy.number(0));
  of_scores = of_scores * c.view().attr_float("scale", 1);
  c.add(kQuery, product(of_scores, c.in(kKey), "trans_b"));
  c.add(kKey, product(c.in(kQuery), of_scores, "trans_a"));
}

}  // namespace

const std::vector<OpDef>& attention_ops() {
  static const TensorType q{DType::kFloat32, {2, 3, 7, 4}}, k{DType::kFloat32, {2, 3, 4, 11}},
      v{DType::kFloat32, {2, 3, 11, 5}}, condition{DType::kBool, {1, 1, 7, 11}},
      bias{DType::kFloat32, {2, 1, 1, 11}};
  static const std::vector<OpDef> ops{
      {.name = "attention",
       .summary = "softmax(scores) value along the last axis of scores, where scores = scale query "
                  "key, `fill` where condition is false, plus bias",
       .operands = {{"query"},
                    {"key"},
                    {"value"},
                    {"condition", OperandDef::kOptional},
                    {"bias", OperandDef::kOptional}},
       .attributes = {{"scale", AttributeKind::kFloat, "default 1"},
                      {"fill", AttributeKind::kFloat, "default 0"},
                      {"zero_masked", AttributeKind::kInt,
                       "rows without any weight give 0, not NaN"}},
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_attention,
       .compute = compute_attention,
       .gradient = gradient_of_attention,
       .example = {.inputs = {q, k, v, condition, bias},
                   .attributes = {{"scale", 0.5}, {"fill", -1e30}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Attention.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
