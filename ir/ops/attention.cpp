// Scaled dot-product attention, a block of rows at a time: what belongs to the rows stays in cache,
// and the scores are never in memory as a whole.
//
// Where not all keys are taken at once, the softmax is an online one (Milakov and Gimelshein, 2018,
// arXiv:1805.02867): with each block of keys the sums so far are scaled to the new largest score.
//
// That is the tiling of FlashAttention (Dao et al., 2022, arXiv:2205.14135): per block of rows,
// scores, weights, sums and totals are of the block's size, whatever the number of keys.
//
//    m' = max(m, rowmax(S))          S = scale Q_i K_j + bias, a block of rows by a block of keys
//    l' = l e^(m - m') + rowsum(P)   P = e^(S - m')
//    O' = O e^(m - m') + P V_j       at the end y = O / l
//
// Not here: causal masks that skip whole blocks of keys (a mask is read like any other), and
// gradients.
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
  for (int i : {kQuery, kKey, kValue})
    if (c.type(i).dtype != DType::kFloat32) return c.unsupported("operand " + to_string(c.type(i)));
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
    if (c.type(i).dtype != (i == kBias ? DType::kFloat32 : DType::kBool))
      return c.error("operand " + to_string(c.type(i)) + ", expected " +
                     (i == kBias ? "f32" : "bool"));
    auto dims = c.broadcast(scores, c.type(i).dims);
    if (!dims.ok() || dims->size() != rank)
      return c.error(to_string(c.type(i)) + " does not fit scores of " +
                     to_string(TensorType{DType::kFloat32, scores}));
  }
  if (is_zero(k.dims[rank - 1])) return c.error("no keys: " + to_string(k));
  for (const char* name : {"row_block", "key_block"})
    if (c.attr_int(name, 1) < 1)
      return c.error(std::string(name) + " is " + std::to_string(c.attr_int(name)));
  c.set_output(0, DType::kFloat32, std::move(y));
  return {};
}

class Attention {
 public:
  explicit Attention(ComputeContext& context)
      : c_(context),
        b_(context.b),
        lead_(c_.rank(kQuery) - 2),
        rows_(c_.dim(kQuery, lead_)),
        keys_(c_.dim(kKey, lead_ + 1)),
        row_block_(fitting("row_block", rows_)),
        key_block_(fitting("key_block", keys_)),
        scores_(temp("scores", {row_block_, key_block_})),
        weights_(temp("weights", {row_block_, key_block_})),
        largest_(temp("largest", {row_block_})),
        total_(temp("total", {row_block_})) {}

  void run() {
    std::vector<Expr> tasks(c_.in(kQuery)->shape.begin(), c_.in(kQuery)->shape.begin() + lead_);
    tasks.push_back(simplify(ceildiv(rows_, Expr(row_block_))));
    b_.each(
        tasks,
        [&](const Axes& at) {
          batch_.assign(at.begin(), at.end() - 1);
          first_row_ = at.back() * Expr(row_block_);
          all_keys_at_once() ? at_once() : block_by_block();
        },
        "rows");
  }

 private:
  static constexpr int64_t kDefaultBlock = 16;

  // The attribute, or less when there is not as much.
  int64_t fitting(const char* attribute, const Expr& extent) const {
    return std::max<int64_t>(
        std::min(c_.attr_int(attribute, kDefaultBlock), as_int(extent).value_or(INT64_MAX)), 1);
  }
  Buffer temp(const char* name, std::vector<Expr> shape) {
    return b_.temp(name, DType::kFloat32, std::move(shape));
  }
  bool all_keys_at_once() const { return as_int(keys_) && *as_int(keys_) <= key_block_; }

  // One block holds all keys: a plain softmax in three passes over the row, without rescaling.
  void at_once() {
    score(0);
    b_.reduce(largest_, {Expr(key_block_)}, Combiner::kMaxNumber, row_of(scores_), "largest");
    weigh(largest_);
    b_.reduce(total_, {Expr(key_block_)}, Combiner::kSum, row_of(weights_), "total");
    const Buffer sums = temp("sums", {row_block_, values()}), factor = factor_of_rows();
    add_values(sums, 0);
    finish(sums, factor);
  }
  // The recurrence above, in order over blocks of keys.
  void block_by_block() {
    const Buffer sums = temp("sums", {row_block_, values()}),
                 more = temp("more", {row_block_, values()}), scale = temp("scale", {row_block_}),
                 block_largest = temp("block_largest", {row_block_}),
                 block_total = temp("block_total", {row_block_});
    auto start = [&](const Buffer& b, const Expr& value) {
      b_.compute(b, [&](const Axes&) { return value; }, "start");
    };
    start(largest_, lowest(DType::kFloat32));
    start(total_, constant(0, DType::kFloat32));
    start(sums, constant(0, DType::kFloat32));
    b_.ordered(simplify(ceildiv(keys_, Expr(key_block_))), [&](const Expr& block) {
      const Expr first = block * Expr(key_block_);
      score(first);
      b_.reduce(block_largest, {Expr(key_block_)}, Combiner::kMaxNumber, row_of(scores_),
                "largest");
      b_.compute(
          scale,
          [&](const Axes& i) {
            return unary(UnaryOp::kExp,
                         load(largest_, i) - shift(max(load(largest_, i), load(block_largest, i))));
          },
          "scale");
      b_.compute(
          largest_, [&](const Axes& i) { return max(load(largest_, i), load(block_largest, i)); },
          "larger");
      weigh(largest_);
      b_.reduce(block_total, {Expr(key_block_)}, Combiner::kSum, row_of(weights_), "total");
      b_.compute(
          total_,
          [&](const Axes& i) { return load(total_, i) * load(scale, i) + load(block_total, i); },
          "totals");
      add_values(more, first);
      b_.compute(
          sums, [&](const Axes& i) { return load(sums, i) * load(scale, {i[0]}) + load(more, i); },
          "sums");
    });
    finish(sums, factor_of_rows());
  }

  // Rows beyond the last count as the last one, and are not stored; keys beyond it weigh nothing.
  Expr row(const Expr& i) const {
    const Expr at = first_row_ + i;
    return as_int(rows_) && *as_int(rows_) % row_block_ == 0 ? at : min(at, rows_ - 1);
  }
  bool whole_blocks() const { return as_int(keys_) && *as_int(keys_) % key_block_ == 0; }
  Expr where_key(const Expr& key, const Expr& value, const Expr& otherwise) const {
    return whole_blocks() ? value : select(key < keys_, value, otherwise);
  }
  Axes at(const Expr& i, const Expr& j) const {
    Axes all = batch_;
    all.push_back(i);
    all.push_back(j);
    return all;
  }
  Expr values() const { return c_.dim(kValue, lead_ + 1); }

  void score(const Expr& first) {
    const Buffer products = temp("products", {row_block_, key_block_});
    b_.reduce(
        products, {c_.dim(kQuery, lead_ + 1)}, Combiner::kSum,
        [&](const Axes& i, const Axes& d) {
          const Expr key = first + i[1];
          return load(c_.in(kQuery), at(row(i[0]), d[0])) *
                 where_key(key, load(c_.in(kKey), at(d[0], key)), none_);
        },
        "products");
    b_.compute(
        scores_,
        [&](const Axes& i) {
          const Expr key = first + i[1];
          const Axes where = at(row(i[0]), key);
          Expr s = load(products, i) * constant(c_.attr_float("scale", 1), DType::kFloat32);
          if (c_.has(kCondition))
            s = select(where_key(key, c_.read(kCondition, where), bool_imm(false)), s,
                       constant(c_.attr_float("fill"), DType::kFloat32));
          if (c_.has(kBias)) s = s + where_key(key, c_.read(kBias, where), none_);
          return where_key(key, s, lowest(DType::kFloat32));
        },
        "scores");
  }
  static std::function<Expr(const Axes&, const Axes&)> row_of(const Buffer& b) {
    return [b](const Axes& i, const Axes& j) { return load(b, {i[0], j[0]}); };
  }
  // A row of nothing but -inf has weights of 0 as long as not all keys are seen.
  static Expr shift(const Expr& most) {
    return select(eq(most, lowest(DType::kFloat32)), constant(0, DType::kFloat32), most);
  }
  void weigh(const Buffer& most) {
    b_.compute(
        weights_,
        [&](const Axes& i) {
          return unary(UnaryOp::kExp, load(scores_, i) - shift(load(most, {i[0]})));
        },
        "weights");
  }
  void add_values(const Buffer& sums, const Expr& first) {
    b_.reduce(
        sums, {Expr(key_block_)}, Combiner::kSum,
        [&](const Axes& i, const Axes& j) {
          const Expr key = first + j[0];
          return load(weights_, {i[0], j[0]}) *
                 where_key(key, load(c_.in(kValue), at(key, i[1])), none_);
        },
        "values");
  }
  Buffer factor_of_rows() {
    const Buffer factor = temp("factor", {row_block_});
    b_.compute(
        factor,
        [&](const Axes& i) {
          const Expr total = load(total_, i), by = constant(1, DType::kFloat32) / total;
          return c_.attr_int("zero_masked") ? select(total > none_, by, none_) : by;
        },
        "factor");
    return factor;
  }
  void finish(const Buffer& sums, const Buffer& factor) {
    b_.compute_where(
        c_.out(), {row_block_, values()},
        [&](const Axes& i) {
          Expr y = load(sums, i) * load(factor, {i[0]});
          if (c_.attr_int("zero_masked")) y = select(load(total_, {i[0]}) > none_, y, none_);
          if (!as_int(keys_)) y = select(keys_ > Expr(0), y, none_);
          return LoopsBuilder::Write{at(first_row_ + i[0], i[1]), y};
        },
        [&](const Axes& i) { return first_row_ + i[0] < rows_; }, "attention");
  }

  ComputeContext& c_;
  LoopsBuilder& b_;
  int lead_;
  Expr rows_, keys_;
  int64_t row_block_, key_block_;
  Buffer scores_, weights_, largest_, total_;
  const Expr none_ = constant(0, DType::kFloat32);
  Axes batch_;
  Expr first_row_;
};

void compute_attention(ComputeContext& c) { Attention(c).run(); }

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
                       "rows without any weight give 0, not NaN"},
                      {"row_block", AttributeKind::kInt, "rows of query at a time, default 16"},
                      {"key_block", AttributeKind::kInt, "keys at a time, default 16"}},
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_attention,
       .compute = compute_attention,
       .example = {.inputs = {q, k, v, condition, bias},
                   .attributes = {{"scale", 0.5},
                                  {"fill", -1e30},
                                  {"row_block", int64_t{3}},
                                  {"key_block", int64_t{4}}}},
       .source = "https://arxiv.org/abs/2205.14135 (the order of computation), "
                 "https://onnx.ai/onnx/operators/onnx__Attention.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
