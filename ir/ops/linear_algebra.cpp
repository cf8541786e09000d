// Operators on matrices that are no products, and recurrences over matrix states.
//
// The determinant is Gaussian elimination with partial pivoting, n^3 / 3 operations, serial within
// a matrix and parallel over the batch. Linear attention is the delta rule family: a d_k x d_v
// state per head that each token decays, corrects and reads, O(t) instead of softmax attention's
// O(t^2).
#include <cmath>

#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

// x: [..., n, n]
Status infer_determinant(InferContext& c) {
  const auto& x = c.type(0);
  if (x.rank() < 2 || !is_float(x.dtype))
    return c.error("x is " + to_string(x) + ", expected floats [..., n, n]");
  if (!c.agree(c.dim(0, x.rank() - 2), c.dim(0, x.rank() - 1)))
    return c.error("x is " + to_string(x) + ", expected square matrices");
  c.set_output(0, x.dtype, {x.dims.begin(), x.dims.end() - 2});
  return {};
}
// Elimination with row exchange (largest pivot of the column), each matrix in a copy of its own.
class Elimination {
 public:
  Elimination(Buffer work, Buffer scratch, Axes batch, Expr n)
      : work_(std::move(work)),
        scratch_(std::move(scratch)),
        batch_(std::move(batch)),
        n_(std::move(n)) {}

  // Leaves the determinant in scratch[batch, 0]; scratch[batch, 1] is the row of the pivot, as a
  // float of the type.
  Stmt run() const {
    Var k("k");
    return seq({store(scratch_, slot(0), constant(1, type())),
                for_loop(k, n_, seq({find_pivot(k), take_pivot(k), eliminate(k)}))});
  }

 private:
  DType type() const { return work_->dtype; }
  Axes slot(int i) const {
    Axes at = batch_;
    at.push_back(i);
    return at;
  }
  Axes cell(Expr row, Expr column) const {
    Axes at = batch_;
    at.push_back(std::move(row));
    at.push_back(std::move(column));
    return at;
  }
  Expr at(Expr row, Expr column) const {
    return load(work_, cell(std::move(row), std::move(column)));
  }
  Expr pivot_row() const { return clamp(cast(DType::kInt64, load(scratch_, slot(1))), 0, n_ - 1); }

  Stmt find_pivot(const Var& k) const {
    Var i("i");
    Expr row = k + 1 + i;
    Expr better = unary(UnaryOp::kAbs, at(row, k)) > unary(UnaryOp::kAbs, at(pivot_row(), k));
    return seq(
        {store(scratch_, slot(1), cast(type(), k)),
         for_loop(i, n_ - 1 - k, if_then(better, store(scratch_, slot(1), cast(type(), row))))});
  }
  Stmt take_pivot(const Var& k) const {
    Var j("j"), saved("saved", ScalarType{type()}), row("row");
    Stmt exchange = for_loop(
        j, n_,
        let(saved, at(k, j),
            seq({store(work_, cell(k, j), at(row, j)), store(work_, cell(row, j), saved)})));
    Stmt turn = seq({exchange, store(scratch_, slot(0), -load(scratch_, slot(0)))});
    return seq({let(row, pivot_row(), if_then(ne(row, k), turn)),
                store(scratch_, slot(0), load(scratch_, slot(0)) * at(k, k))});
  }
  Stmt eliminate(const Var& k) const {
    Var i("i"), j("j"), factor("factor", ScalarType{type()});
    Expr row = k + 1 + i, column = k + 1 + j;
    Stmt update = for_loop(
        j, n_ - 1 - k, store(work_, cell(row, column), at(row, column) - factor * at(k, column)));
    Stmt rows = for_loop(i, n_ - 1 - k, let(factor, at(row, k) / at(k, k), update));
    return if_then(ne(at(k, k), constant(0, type())), rows);
  }

  Buffer work_, scratch_;
  Axes batch_;
  Expr n_;
};
void compute_determinant(ComputeContext& c) {
  const Buffer& x = c.in(0);
  const DType acc = accumulator(x->dtype);
  const std::vector<Expr> batch(x->shape.begin(), x->shape.end() - 2);
  std::vector<Expr> slots = batch;
  slots.push_back(2);
  Buffer work = c.b.temp("work", acc, x->shape), scratch = c.b.temp("scratch", acc, slots);
  c.b.compute(work, [&](const Axes& i) { return cast(acc, load(x, i)); }, "copy");
  c.b.opaque_over(
      batch, [&](const Axes& b) { return Elimination(work, scratch, b, x->shape.back()).run(); },
      "eliminate");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at = i;
        at.push_back(0);
        return cast(x->dtype, load(scratch, at));
      },
      "determinant");
}

// Jacobi's formula: by each element its cofactor, which is there for singular matrices, too.
void gradient_of_determinant(GradientContext& c) {
  const V x = c.in(0);
  std::vector<Expr> dims = c.type(c.dy().id).dims;
  dims.insert(dims.end(), 2, Expr(1));
  c.add(0, V{c, c.reshape(c.dy().id, dims)} * apply("cofactors", x));
}

// q: [b, t, hq * dk], k: [b, t, h * dk], v: [b, t, h * dv], state: [b, h, dk, dv], decay: [b, t, h]
// or [b, t, h * dk], beta: [b, t, h] or [b, t, 1]. outputs: [b, t, hq * dv] and the last state.
struct LinearAttentionShape {
  Expr b, t, hq, h, dk, dv;
};
LinearAttentionShape linear_attention_shape(const NodeView& c) {
  const Expr hq = c.attr_int("q_heads"), h = c.attr_int("kv_heads");
  return {c.dim(0, 0),
          c.dim(0, 1),
          hq,
          h,
          simplify(floordiv(c.dim(0, 2), hq)),
          simplify(floordiv(c.dim(2, 2), h))};
}
Status infer_linear_attention(InferContext& c) {
  const int64_t hq = c.attr_int("q_heads"), h = c.attr_int("kv_heads");
  if (hq < 1 || h < 1 || hq % h)
    return c.error(std::to_string(hq) + " heads of q, " + std::to_string(h) + " of k and v");
  for (int i : {0, 1, 2, 4, 5})
    if (c.has(i) && c.rank(i) != 3)
      return c.error("operand " + std::to_string(i) + " is " + to_string(c.type(i)) +
                     ", expected 3 dimensions");
  const LinearAttentionShape s = linear_attention_shape(c);
  if (c.has(3) && c.rank(3) != 4)
    return c.error("state is " + to_string(c.type(3)) + ", expected [b, h, dk, dv]");
  const auto fits = [&](int operand, const std::vector<Expr>& dims) {
    bool all = true;
    for (size_t d = 0; c.has(operand) && d < dims.size(); ++d)
      all &= c.agree(c.dim(operand, static_cast<int>(d)), simplify(dims[d]));
    return all;
  };
  // Factors of a head or of each of its keys; corrections of a head or of all.
  const auto width = [&](int operand, const Expr& one, const Expr& other) {
    if (!c.has(operand)) return one;
    return select(eq(c.dim(operand, 2), simplify(other)), other, one);
  };
  if (!fits(0, {s.b, s.t, s.hq * s.dk}) || !fits(1, {s.b, s.t, s.h * s.dk}) ||
      !fits(2, {s.b, s.t, s.h * s.dv}) || !fits(3, {s.b, s.h, s.dk, s.dv}) ||
      !fits(4, {s.b, s.t, width(4, s.h, s.h * s.dk)}) || !fits(5, {s.b, s.t, width(5, s.h, 1)})) {
    std::string found;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.has(i)) found += (found.empty() ? "" : ", ") + to_string(c.type(i));
    return c.error("operands do not fit " + std::to_string(hq) + " heads of q and " +
                   std::to_string(h) + " of k and v: " + found);
  }
  c.set_output(0, c.type(0).dtype, {s.b, s.t, simplify(s.hq * s.dv)});
  c.set_output(1, c.has(3) ? c.type(3).dtype : c.type(0).dtype, {s.b, s.h, s.dk, s.dv});
  return {};
}
// One step: S = exp(decay) S; u = v, or beta (v - S^T k); S = S + k u^T; y = scale S^T q.
void compute_linear_attention(ComputeContext& c) {
  const LinearAttentionShape s = linear_attention_shape(c);
  const DType acc = c.in(0)->dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Buffer state = c.b.temp("state", acc, {s.b, s.h, s.dk, s.dv}),
         update = c.b.temp("update", acc, {s.b, s.h, s.dv});
  Buffer read = c.b.temp("read", acc, {s.b, s.hq, s.dv});
  auto in = [&](int i, Expr b, Expr t, Expr column) {
    return cast(acc, load(c.in(i), {std::move(b), std::move(t), std::move(column)}));
  };
  c.b.compute(
      state,
      [&](const Axes& i) { return c.has(3) ? cast(acc, load(c.in(3), i)) : constant(0, acc); },
      "first_state");
  // The decay has one factor per head or per key, and beta one per head or one in all. Which case
  // applies may be known only at run time.
  const auto column_of_decay = [&](const Axes& i) {
    return simplify(select(eq(c.dim(4, 2), s.h), i[1], i[1] * s.dk + i[2]));
  };
  const auto column_of_beta = [&](const Axes& i) {
    return simplify(select(eq(c.dim(5, 2), Expr(1)), Expr(0), i[1]));
  };
  const Expr group = simplify(floordiv(s.hq, s.h)), scale = constant(c.attr_float("scale", 1), acc);
  c.b.ordered(s.t, [&](Expr t) {
    if (c.has(4))
      c.b.compute(
          state,
          [&](const Axes& i) {
            return load(state, i) * unary(UnaryOp::kExp, in(4, i[0], t, column_of_decay(i)));
          },
          "decay");
    if (c.has(5)) {
      c.b.reduce(
          update, {s.dk}, Combiner::kSum,
          [&](const Axes& i, const Axes& r) {
            return load(state, {i[0], i[1], r[0], i[2]}) * in(1, i[0], t, i[1] * s.dk + r[0]);
          },
          "retrieve");
    }
    c.b.compute(
        update,
        [&](const Axes& i) {
          Expr v = in(2, i[0], t, i[1] * s.dv + i[2]);
          return c.has(5) ? in(5, i[0], t, column_of_beta(i)) * (v - load(update, i)) : v;
        },
        "correct");
    c.b.compute(
        state,
        [&](const Axes& i) {
          return load(state, i) +
                 in(1, i[0], t, i[1] * s.dk + i[2]) * load(update, {i[0], i[1], i[3]});
        },
        "write");
    c.b.reduce(
        read, {s.dk}, Combiner::kSum,
        [&](const Axes& i, const Axes& r) {
          return in(0, i[0], t, i[1] * s.dk + r[0]) *
                 load(state, {i[0], floordiv(i[1], group), r[0], i[2]});
        },
        "read");
    c.b.compute_at(
        c.out(0), {s.b, s.hq, s.dv},
        [&](const Axes& i) {
          return LoopsBuilder::Write{{i[0], t, i[1] * s.dv + i[2]},
                                     cast(c.out(0)->dtype, load(read, i) * scale)};
        },
        "scale");
  });
  c.b.compute(
      c.out(1), [&](const Axes& i) { return cast(c.out(1)->dtype, load(state, i)); }, "last_state");
}

}  // namespace

const std::vector<OpDef>& linear_algebra_ops() {
  static const TensorType tokens{DType::kFloat32, {2, 3, 8}}, heads{DType::kFloat32, {2, 3, 2}};
  static const std::vector<OpDef> ops{
      {.name = "determinant",
       .summary = "determinants of the matrices in the last two dimensions",
       .operands = {{"x"}},
       .infer_type = infer_determinant,
       .compute = compute_determinant,
       .gradient = gradient_of_determinant,
       .example = {.inputs = {{DType::kFloat32, {3, 5, 5}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Det.html"},
      {.name = "linear_attention",
       .summary = "attention by a state of key-value products that is carried from token to token",
       .operands = {{"q"},
                    {"k"},
                    {"v"},
                    {"state", OperandDef::kOptional},
                    {"decay", OperandDef::kOptional},
                    {"beta", OperandDef::kOptional}},
       .attributes = {{"q_heads", AttributeKind::kInt, "heads of q, a multiple of kv_heads"},
                      {"kv_heads", AttributeKind::kInt, "heads of k and v"},
                      {"scale", AttributeKind::kFloat, "of the result; default 1"}},
       .outputs = "y, last_state",
       .infer_type = infer_linear_attention,
       .compute = compute_linear_attention,
       .example =
           {.inputs = {tokens, tokens, tokens, {DType::kFloat32, {2, 2, 4, 4}}, heads, heads},
            .attributes = {{"q_heads", int64_t{2}}, {"kv_heads", int64_t{2}}, {"scale", 0.5}},
            .outputs = 2},
       .source = "https://onnx.ai/onnx/operators/onnx__LinearAttention.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
