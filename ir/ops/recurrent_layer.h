// One layer of a recurrent network (recurrent.cpp): its operands, its state, and its steps.
#pragma once

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/recurrent_steps.h"

namespace tilewright::ir {

// Operands: projected [s, b, gates * h], recurrent [h, gates * h], then what the cell has of
// initial_h [b, h], initial_c [b, h], sequence_lens [b], recurrent_bias [h], peepholes [3 * h].
// A quantised LSTM has recurrent in 8 bits, with recurrent_scale [] or [gates * h] and the sums of
// its columns, recurrent_sums [gates * h].
inline constexpr int kProjected = 0, kRecurrent = 1, kInitialH = 2, kLens = 3, kInitialC = 4,
                     kPeepholes = 5, kRecurrentBias = 4, kScale = 6, kSums = 7;

// What the three cells share: the state, the order of the steps and the lengths of the sequences.
class Steps {
 public:
  explicit Steps(ComputeContext& context)
      : c(context),
        dtype(c.in(kProjected)->dtype),
        acc(accumulator(dtype)),
        seq(c.dim(kProjected, 0)),
        batch(c.dim(kProjected, 1)),
        hidden(c.dim(kRecurrent, 0)),
        h(c.b.temp("h", acc, {batch, hidden})),
        order_(c, seq, kLens) {
    start(h, kInitialH, "initial_h");
  }
  void start(const Buffer& state, int operand, const char* name) {
    c.b.compute(
        state,
        [&](const Axes& i) {
          return c.has(operand) ? cast(acc, load(c.in(operand), i)) : constant(0, acc);
        },
        name);
  }
  // body(t) for each step, then y at that step.
  void run(const std::function<void(Expr)>& body) {
    c.b.ordered(seq, [&](const Expr& t) {
      body(t);
      if (!c.wants(0)) return;
      c.b.compute_at(
          c.out(0), {batch, hidden},
          [&](const Axes& i) {
            return LoopsBuilder::Write{
                {position(t, i[0]), i[0], i[1]},
                cast(dtype, select(active(t, i[0]), load(h, i), constant(0, acc)))};
          },
          "y");
    });
    finish(1, h, "y_h");
  }
  void finish(int output, const Buffer& state, const char* name) {
    if (c.wants(output))
      c.b.compute(c.out(output), [&](const Axes& i) { return cast(dtype, load(state, i)); }, name);
  }
  // How the state's elements go into 8 bits by their range: scale_ and zero_ of this step.
  void quantize_range() {
    if (!scale_) {
      for (Buffer* b : {&low_, &high_}) *b = c.b.temp("bound", acc, {});
      scale_ = c.b.temp("scale", acc, {});
      zero_ = c.b.temp("zero", acc, {});
    }
    auto value = [&](const Axes&, const Axes& k) { return load(h, k); };
    c.b.reduce(low_, {batch, hidden}, Combiner::kMin, value, "low");
    c.b.reduce(high_, {batch, hidden}, Combiner::kMax, value, "high");
    const Expr zero = constant(0, acc), most = constant(255, acc);
    const Expr low = min(load(low_, {}), zero), range = max(load(high_, {}), zero) - low;
    auto scale = [&](const Axes&) {
      return select(eq(range, zero), constant(1, acc), range) / most;
    };
    c.b.compute(scale_, scale, "scale");
    c.b.compute(
        zero_,
        [&](const Axes&) { return nearest(clamp((zero - low) / load(scale_, {}), zero, most)); },
        "zero");
  }
  static Expr nearest(const Expr& x) { return unary(UnaryOp::kRoundEven, x); }
  Expr quantized(const Axes& i) {
    return clamp(nearest(load(h, i) / load(scale_, {})) + load(zero_, {}), constant(0, acc),
                 constant(255, acc));
  }
  // The state as 8 bits would keep it.
  Buffer rounded_state() {
    if (!c.attr_int("quantize_state")) return h;
    if (!rounded_) rounded_ = c.b.temp("rounded", acc, {batch, hidden});
    quantize_range();
    c.b.compute(
        rounded_,
        [&](const Axes& i) { return (quantized(i) - load(zero_, {})) * load(scale_, {}); },
        "rounded");
    return rounded_;
  }
  // sums as `multiply` gives them for the rounded state, from products of bytes.
  void multiply_bytes(const Buffer& sums, const char* name) {
    if (!bytes_) {
      bytes_ = c.b.temp("bytes", DType::kUInt8, {batch, hidden});
      products_ = c.b.temp("products", DType::kInt32, sums->shape);
    }
    quantize_range();
    c.b.compute(bytes_, [&](const Axes& i) { return cast(DType::kUInt8, quantized(i)); }, "bytes");
    auto wide = [](const Buffer& b, const Axes& i) { return cast(DType::kInt32, load(b, i)); };
    c.b.reduce(
        products_, {hidden}, Combiner::kSum,
        [&](const Axes& i, const Axes& k) {
          return wide(bytes_, {i[0], k[0]}) * wide(c.in(kRecurrent), {k[0], i[1]});
        },
        name);
    c.b.compute(
        sums,
        [&](const Axes& i) {
          const Expr moved = wide(zero_, {}) * load(c.in(kSums), {i[1]});
          return cast(acc, load(products_, i) - moved) *
                 (load(scale_, {}) * broadcast_load(c.in(kScale), {i[1]}));
        },
        "scaled");
  }
  // sums[b, j] = sum over k of state[b, k] * recurrent[k, j + offset]
  void multiply(const Buffer& sums, const Buffer& state, const Expr& offset, const char* name) {
    c.b.reduce(
        sums, {hidden}, Combiner::kSum,
        [&](const Axes& i, const Axes& k) {
          return load(state, {i[0], k[0]}) *
                 cast(acc, load(c.in(kRecurrent), {k[0], i[1] + offset}));
        },
        name);
  }
  // Element j of a gate of the projected input of step t.
  Expr projected(const Expr& t, const Axes& i, int gate) {
    return cast(acc, load(c.in(kProjected), {position(t, i[0]), i[0], i[1] + Expr(gate) * hidden}));
  }
  Expr clipped(const Expr& x) const { return ir::clipped(c, x); }
  // What a gradient asks for, of each step, where it lies: [s, b, width of value].
  void keep(const Expr& t, int output, const Expr& width,
            const std::function<Expr(const Axes&)>& value, const char* name) {
    if (!c.wants(output)) return;
    c.b.compute_at(
        c.out(output), {batch, width},
        [&](const Axes& i) {
          return LoopsBuilder::Write{{position(t, i[0]), i[0], i[1]}, cast(dtype, value(i))};
        },
        name);
  }
  // Gate k of what enters activations.
  void keep_gate(const Expr& t, int output, int k, const std::function<Expr(const Axes&)>& value) {
    if (!c.wants(output)) return;
    c.b.compute_at(
        c.out(output), {batch, hidden},
        [&](const Axes& i) {
          return LoopsBuilder::Write{{position(t, i[0]), i[0], simplify(i[1] + Expr(k) * hidden)},
                                     cast(dtype, value(i))};
        },
        "entering");
  }
  // The state after step t: what ended before keeps its state.
  Expr updated(const Expr& t, const Axes& i, const Buffer& state, const Expr& value) {
    return select(active(t, i[0]), value, load(state, i));
  }

  ComputeContext& c;
  const DType dtype, acc;
  const Expr seq, batch, hidden;
  const Buffer h;

 private:
  Expr active(const Expr& t, const Expr& b) const { return order_.is_active(t, b); }
  Expr position(const Expr& t, const Expr& b) const { return order_.position(t, b); }
  const StepOrder order_;
  Buffer low_, high_, scale_, zero_, rounded_, bytes_, products_;
};

}  // namespace tilewright::ir
