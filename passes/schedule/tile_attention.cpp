// Attention a block of rows at a time: what belongs to the rows stays in cache, and the scores are
// never in memory as a whole.
//
// Where not all keys are taken at once, the softmax is an online one (Milakov and Gimelshein, 2018,
// arXiv:1805.02867): with each block of keys the sums so far are scaled to the new largest score.
//
// That is the tiling of FlashAttention (Dao et al., 2022, arXiv:2205.14135): per block of rows,
// scores, weights, sums and totals are of the block's size, whatever the number of keys.
//
//    m' = max(m, rowmax(S))          S = f(Q_i K_j), a block of rows by a block of keys
//    l' = l e^(m - m') + rowsum(P)   P = e^(S - m')
//    O' = O e^(m - m') + P V_j       at the end y = h(O, l)
//
// The expressions f and h are those of the kernel, moved to the block's rows and keys; what stands
// behind the last row or key is computed, and neither stored nor of any weight.
#include <algorithm>

#include "ir/graph/compute.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/schedule/attention_chain.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Where an expression of the whole tensors stands within a block of rows and keys.
struct At {
  Axes rows;       // of the whole tensors
  Expr row, key;   // within the block
  Expr whole_key;  // of the whole tensors; null: the expression does without keys
};

// P with other expressions for S and m, the only temporaries that it reads.
class WeightOf : public Rewriter {
 public:
  WeightOf(const Buffer& scores, const Expr& score, const Expr& most)
      : scores_(scores), score_(score), most_(most) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l) return Rewriter::rewrite(e);
    return l->buffer == scores_ ? score_ : most_;
  }

 private:
  const Buffer scores_;
  const Expr score_, most_;
};

class TileAttention {
 public:
  TileAttention(AttentionChain chain, int64_t row_block, int64_t key_block)
      : c_(std::move(chain)),
        type_(c_.scores.result->dtype),
        all_rows_(c_.rows.back()),
        row_block_(fitting(row_block, all_rows_)),
        key_block_(fitting(key_block, c_.keys)),
        scores_(temp("s", {row_block_, key_block_})),
        weights_(temp("p", {row_block_, key_block_})),
        largest_(temp("m", {row_block_})),
        total_(temp("l", {row_block_})) {}

  Stmt run() {
    std::vector<Expr> tasks(c_.rows.begin(), c_.rows.end() - 1);
    tasks.push_back(simplify(ceildiv(all_rows_, Expr(row_block_))));
    b_.each(
        tasks,
        [&](const Axes& at) {
          batch_.assign(at.begin(), at.end() - 1);
          first_row_ = at.back() * Expr(row_block_);
          all_keys_at_once() ? at_once() : block_by_block();
        },
        "rows");
    return b_.finish();
  }

 private:
  // As many as wanted, or less where there are not as many.
  static int64_t fitting(int64_t wanted, const Expr& extent) {
    return std::min(wanted, as_int(extent).value_or(INT64_MAX));
  }
  Buffer temp(const char* name, std::vector<Expr> shape) {
    return b_.temp(name, type_, std::move(shape));
  }
  bool all_keys_at_once() const { return as_int(c_.keys) && *as_int(c_.keys) <= key_block_; }

  // One block holds all keys: a plain softmax in three passes over the row, without rescaling.
  void at_once() {
    score(0);
    b_.reduce(largest_, {Expr(key_block_)}, Combiner::kMaxNumber, row_of(scores_), "largest");
    weigh(largest_);
    b_.reduce(total_, {Expr(key_block_)}, Combiner::kSum, row_of(weights_), "total");
    const Buffer sums = temp("pv", {row_block_, c_.width});
    finish_rows();
    add_values(sums, 0);
    make_results(sums);
  }
  // The recurrence above, in order over blocks of keys.
  void block_by_block() {
    const Buffer sums = temp("pv", {row_block_, c_.width}),
                 more = temp("more", {row_block_, c_.width}), scale = temp("shrink", {row_block_}),
                 block_largest = temp("block_m", {row_block_}),
                 block_total = temp("block_l", {row_block_});
    const auto start = [&](const Buffer& b, const Expr& value) {
      b_.compute(b, [&](const Axes&) { return value; }, "start");
    };
    start(largest_, lowest(type_));
    start(total_, none_);
    start(sums, none_);
    b_.ordered(simplify(ceildiv(c_.keys, Expr(key_block_))), [&](const Expr& block) {
      const Expr first = block * Expr(key_block_);
      score(first);
      b_.reduce(block_largest, {Expr(key_block_)}, Combiner::kMaxNumber, row_of(scores_),
                "largest");
      const auto both = [&](const Axes& i) {
        return max(load(largest_, i), load(block_largest, i));
      };
      // e^(m - m') as a weight of the score m.
      b_.compute(scale, [&](const Axes& i) { return weight(load(largest_, i), both(i)); }, "scale");
      b_.compute(largest_, both, "larger");
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
    finish_rows();
    make_results(sums);
  }

  // Rows beyond the last count as the last one, and are not stored; keys beyond it weigh nothing.
  Axes rows_at(const Expr& i) const {
    Axes rows = batch_;
    const Expr at = first_row_ + i;
    const bool whole = as_int(all_rows_) && *as_int(all_rows_) % row_block_ == 0;
    rows.push_back(whole ? at : min(at, all_rows_ - 1));
    return rows;
  }
  Expr where_key(const Expr& key, const Expr& value, const Expr& otherwise) const {
    const bool whole = as_int(c_.keys) && *as_int(c_.keys) % key_block_ == 0;
    return whole ? value : select(key < c_.keys, value, otherwise);
  }

  // An expression of `from` moved to a block: axes are those of `at` and, where they are neither
  // rows nor keys, `others`; temporaries those of the block.
  class Move : public Rewriter {
   public:
    Move(const TileAttention& t, const AttentionBlock& from, const At& at, const Axes& others)
        : t_(t), at_(at), others_(others) {
      size_t row = 0, other = 0;
      for (size_t i = 0; i < from.of.size(); ++i) {
        const Var& axis = from.block.axes[i].var;
        if (from.of[i] == AttentionAxis::kRow) values_[axis.get()] = at.rows[row++];
        if (from.of[i] == AttentionAxis::kOther) values_[axis.get()] = others[other++];
        if (from.of[i] == AttentionAxis::kKey) values_[(key_ = axis).get()] = at.whole_key;
      }
    }
    using Rewriter::rewrite;
    Expr rewrite(const Expr& e) override {
      if (const auto it = values_.find(e.get()); it != values_.end()) return it->second;
      const auto* l = e.as<Load>();
      if (!l) return Rewriter::rewrite(e);
      if (const auto it = t_.local_.find(l->buffer.get()); it != t_.local_.end())
        return load(it->second, indices_in_block(l->buffer));
      const Expr moved = Rewriter::rewrite(e);
      const bool by_key = key_ && uses_var(e, Var(key_));
      return by_key ? t_.where_key(at_.whole_key, moved, constant(0, e.dtype())) : moved;
    }

   private:
    Axes indices_in_block(const Buffer& whole) const {
      Axes at{at_.row};
      const auto is = [&](const AttentionBlock& b) { return whole == b.result; };
      if (is(t_.c_.products) || is(t_.c_.scores) || is(t_.c_.weights)) at.push_back(at_.key);
      if (is(t_.c_.values)) at.push_back(others_.back());
      return at;
    }
    const TileAttention& t_;
    const At at_;
    const Axes others_;
    VarMap values_;
    Expr key_;
  };
  Expr moved(const AttentionBlock& from, const At& at, const Axes& others = {}) const {
    return Move(*this, from, at, others).rewrite(from.value);
  }

  void score(const Expr& first) {
    const Buffer products = temp("qk", {row_block_, key_block_});
    b_.reduce(
        products, {c_.depth}, Combiner::kSum,
        [&](const Axes& i, const Axes& d) {
          return moved(c_.products, {rows_at(i[0]), i[0], i[1], first + i[1]}, d);
        },
        "products");
    local_[c_.products.result.get()] = products;
    b_.compute(
        scores_,
        [&](const Axes& i) {
          const Expr key = first + i[1];
          const Expr s = moved(c_.scores, {rows_at(i[0]), i[0], i[1], key});
          return where_key(key, s, lowest(type_));
        },
        "scores");
    local_[c_.scores.result.get()] = scores_;
  }
  static std::function<Expr(const Axes&, const Axes&)> row_of(const Buffer& b) {
    return [b](const Axes& i, const Axes& j) { return load(b, {i[0], j[0]}); };
  }
  // The weight of a score where `most` is the largest one.
  Expr weight(const Expr& score, const Expr& most) const {
    return WeightOf(c_.scores.result, score, most).rewrite(c_.weights.value);
  }
  void weigh(const Buffer& most) {
    b_.compute(
        weights_, [&](const Axes& i) { return weight(load(scores_, i), load(most, {i[0]})); },
        "weights");
    local_[c_.weights.result.get()] = weights_;
  }
  void add_values(const Buffer& sums, const Expr& first) {
    b_.reduce(
        sums, {Expr(key_block_)}, Combiner::kSum,
        [&](const Axes& i, const Axes& j) {
          return moved(c_.values, {rows_at(i[0]), i[0], j[0], first + j[0]}, {i[1]});
        },
        "values");
  }
  // What belongs to rows alone and follows from their totals.
  void finish_rows() {
    local_[c_.total.result.get()] = total_;
    for (const AttentionBlock& b : c_.finish) {
      if (b.result->scope == Scope::kParam) continue;
      const Buffer result = temp(b.result->name.c_str(), {row_block_});
      b_.compute(
          result, [&](const Axes& i) { return moved(b, {rows_at(i[0]), i[0]}); }, b.block.name);
      local_[b.result.get()] = result;
    }
  }
  void make_results(const Buffer& sums) {
    local_[c_.values.result.get()] = sums;
    const AttentionBlock& y = c_.finish.back();
    b_.compute_where(
        y.result, {row_block_, c_.width},
        [&](const Axes& i) {
          At at{batch_, i[0]};  // rows beyond the last have places of their own, and no results
          at.rows.push_back(first_row_ + i[0]);
          Move move(*this, y, at, {i[1]});
          Axes indices;
          for (const Expr& e : y.block.body.as<Store>()->indices)
            indices.push_back(move.rewrite(e));
          return LoopsBuilder::Write{indices, move.rewrite(y.value)};
        },
        [&](const Axes& i) { return first_row_ + i[0] < all_rows_; }, y.block.name);
  }

  const AttentionChain c_;
  const DType type_;  // of all temporaries
  LoopsBuilder b_;
  const Expr all_rows_;
  const int64_t row_block_, key_block_;
  const Buffer scores_, weights_, largest_, total_;
  const Expr none_ = constant(0, type_);
  std::unordered_map<const BufferNode*, Buffer> local_;  // of the block, by that of whole tensors
  Axes batch_;
  Expr first_row_;
};

}  // namespace

Result<Kernel> tile_attention(const Kernel& k, const Step& step) {
  TW_ASSIGN(AttentionChain chain, find_attention(k, step.names[0]));
  for (const Expr& e : {chain.rows.back(), chain.keys})
    if (is_zero(e)) return invalid("there are no rows or no keys");
  for (const int64_t n : step.numbers)
    if (n < 1) return invalid("a block of " + std::to_string(n));
  return with_body(k, TileAttention(std::move(chain), step.numbers[0], step.numbers[1]).run());
}

}  // namespace tilewright::passes
