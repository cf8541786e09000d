// Gradients of recurrent layers: backpropagation through time (Werbos, 1990).
//
// A layer keeps what entered its activations, and its states. The steps backwards then need one product
// each, of the derivatives by what entered with the transposed recurrent weights; all that does not
// wait for the step before, the gradient of the recurrent weights above all, is one product over all
// steps behind them.
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/operand_shape.h"
#include "ir/ops/recurrent_activations.h"
#include "ir/ops/recurrent_steps.h"

namespace tilewright::ir {
namespace {

// Operands of the three: what entered [s, b, gates * h], recurrent [h, gates * h], dy [s, b, h], dy_h
// [b, h], sequence_lens [b]; of gru then h before each step and inner [s, b, h]; of lstm cells
// [s, b, h], dy_c and initial_c [b, h], peepholes [3 * h]. Results: the derivatives by what entered and
// by initial_h; of gru by inner; of lstm by initial_c.
constexpr int kEntered = 0, kRecurrent = 1, kDy = 2, kDyH = 3, kLens = 4, kStates = 5, kInner = 6,
              kCells = 5, kDyC = 6, kInitialC = 7, kPeepholes = 8;

Status infer_backwards(InferContext& c, bool gru, bool lstm) {
  const TensorType &x = c.type(kEntered), &r = c.type(kRecurrent);
  if (x.rank() != 3 || r.rank() != 2 || c.rank(kDy) != 3 || !c.agree(x.dims[2], r.dims[1]))
    return c.error("expected [s, b, g * h], [h, g * h] and [s, b, h], found " + to_string(x) +
                   ", " + to_string(r) + " and " + to_string(c.type(kDy)));
  const std::vector<Expr> state{x.dims[1], r.dims[0]}, states{x.dims[0], x.dims[1], r.dims[0]};
  const int64_t gates = lstm ? 4 : gru ? 3 : 1;
  if (!c.agree(r.dims[1], simplify(r.dims[0] * Expr(gates))))
    return c.error("expected " + std::to_string(gates) + " gates: " + to_string(r));
  for (int i : {kDy, kStates})
    if (i == kDy || gru || lstm) TW_RETURN_IF_ERROR(check_shape(c, i, states));
  TW_RETURN_IF_ERROR(check_shape(c, kDyH, state));
  TW_RETURN_IF_ERROR(check_shape(c, kLens, {x.dims[1]}));
  if (gru) TW_RETURN_IF_ERROR(check_shape(c, kInner, states));
  if (lstm) {
    TW_RETURN_IF_ERROR(check_shape(c, kDyC, state));
    TW_RETURN_IF_ERROR(check_shape(c, kInitialC, state));
    TW_RETURN_IF_ERROR(check_shape(c, kPeepholes, {simplify(r.dims[0] * Expr(3))}));
  }
  c.set_output(0, x);
  c.set_output(1, x.dtype, state);
  if (gru) c.set_output(2, x.dtype, {x.dims[0], state[0], state[1]});
  if (lstm) c.set_output(2, x.dtype, state);
  return {};
}

// What the three share: dh, and steps from the last to the first.
class Backwards {
 public:
  explicit Backwards(ComputeContext& context)
      : c(context),
        dtype(c.in(kEntered)->dtype),
        acc(accumulator(dtype)),
        steps(c.dim(kEntered, 0)),
        batch(c.dim(kEntered, 1)),
        hidden(c.dim(kRecurrent, 0)),
        width(c.dim(kRecurrent, 1)),
        order(c, steps, kLens),
        dh(start("dh", kDyH)),
        dz(c.b.temp("dz", acc, {batch, width})),
        gates(c.b.temp("gates", acc, {batch, width})),
        turned_(c.b.temp("turned", acc, {width, hidden})) {
    // Read in each step along its columns: laid out once.
    c.b.compute(
        turned_, [&](const Axes& i) { return cast(acc, load(c.in(kRecurrent), {i[1], i[0]})); },
        "turned");
  }

  Buffer start(const char* name, int operand) {
    const Buffer state = c.b.temp(name, acc, {batch, hidden});
    c.b.compute(
        state,
        [&](const Axes& i) {
          return c.has(operand) ? cast(acc, load(c.in(operand), i)) : constant(0, acc);
        },
        "start");
    return state;
  }
  // body(t) for each step; then derivatives are stored where the step lies.
  void run(const std::function<void(Expr)>& body) {
    c.b.ordered(steps, [&](const Expr& u) {
      const Expr t = simplify(steps - 1 - u);
      c.b.compute(
          dh,
          [&](const Axes& i) {
            const Expr dy = cast(acc, load(c.in(kDy), {order.position(t, i[0]), i[0], i[1]}));
            return load(dh, i) + select(order.is_active(t, i[0]), dy, constant(0, acc));
          },
          "dy");
      body(t);
      store_at(t, 0, width, [&](const Axes& i) { return load(dz, i); });
    });
    finish(1, dh);
  }
  void finish(int output, const Buffer& state) {
    if (c.wants(output))
      c.b.compute(
          c.out(output), [&](const Axes& i) { return cast(dtype, load(state, i)); }, "finish");
  }
  void store_at(const Expr& t, int output, const Expr& extent,
                const std::function<Expr(const Axes&)>& value) {
    if (!c.wants(output)) return;
    c.b.compute_at(
        c.out(output), {batch, extent},
        [&](const Axes& i) {
          const Expr v = select(order.is_active(t, i[0]), value(i), constant(0, acc));
          return LoopsBuilder::Write{{order.position(t, i[0]), i[0], i[1]}, cast(dtype, v)};
        },
        "store");
  }
  // dz of gate k; 0 behind the end of a sequence.
  void set_gate(const Expr& t, int k, const std::function<Expr(const Axes&)>& value) {
    c.b.compute_at(
        dz, {batch, hidden},
        [&](const Axes& i) {
          return LoopsBuilder::Write{{i[0], simplify(i[1] + Expr(k) * hidden)},
                                     select(order.is_active(t, i[0]), value(i), constant(0, acc))};
        },
        "gate");
  }
  // sum over j below `columns` of from[b, j] * recurrent[i, j + offset]. Into a temporary of its own: a product that
  // shares where its sums lie cannot keep them in registers.
  Buffer multiply(const Buffer& from, const Expr& columns, const Expr& offset) {
    const Buffer back = c.b.temp("back", acc, {batch, hidden});
    c.b.reduce(
        back, {columns}, Combiner::kSum,
        [&](const Axes& i, const Axes& k) {
          return load(from, {i[0], k[0]}) * load(turned_, {simplify(k[0] + offset), i[1]});
        },
        "recurrent");
    return back;
  }
  // dh before the step, of layers whose state acts through the product alone.
  void step_back(const Expr& t) {
    const Buffer back = multiply(dz, width, 0);
    c.b.compute(
        dh,
        [&](const Axes& i) { return select(order.is_active(t, i[0]), load(back, i), load(dh, i)); },
        "dh");
  }
  // What enters activations, before attribute clip.
  Expr entered(const Expr& t, const Axes& i, int k) const {
    return cast(acc, load(c.in(kEntered),
                          {order.position(t, i[0]), i[0], simplify(i[1] + Expr(k) * hidden)}));
  }
  // What activation n makes of gate k of the step, once for all that it goes into.
  void activate(int k, int n, const std::function<Expr(const Axes&)>& z) {
    c.b.compute_at(
        gates, {batch, hidden},
        [&](const Axes& i) {
          return LoopsBuilder::Write{{i[0], simplify(i[1] + Expr(k) * hidden)},
                                     activation(c, static_cast<size_t>(n), clipped(c, z(i)))};
        },
        "activated");
  }
  Expr gate(const Axes& i, int k) const {
    return load(gates, {i[0], simplify(i[1] + Expr(k) * hidden)});
  }
  // Of activation n at z, where it is y.
  Expr slope(int n, const Expr& z, const Expr& y) const {
    const Expr s = activation_slope(c, static_cast<size_t>(n), clipped(c, z), y);
    if (!c.has_attribute("clip")) return s;
    const Expr bound = constant(c.attr_float("clip"), acc);
    return select(logical_and(z <= bound, z >= -bound), s, constant(0, acc));
  }
  Expr of_step(int operand, const Expr& t, const Axes& i) const {
    return cast(acc, load(c.in(operand), {order.position(t, i[0]), i[0], i[1]}));
  }

  ComputeContext& c;
  const DType dtype, acc;
  const Expr steps, batch, hidden, width;
  const StepOrder order;
  const Buffer dh, dz, gates;

 private:
  const Buffer turned_;  // the recurrent weights, transposed
};

void compute_rnn_gradient(ComputeContext& c) {
  Backwards s(c);
  s.run([&](const Expr& t) {
    auto entered = [&](const Axes& i) { return s.entered(t, i, 0); };
    s.activate(0, 0, entered);
    s.set_gate(t, 0,
               [&](const Axes& i) { return load(s.dh, i) * s.slope(0, entered(i), s.gate(i, 0)); });
    s.step_back(t);
  });
}

// h' = (1 - z) n + z h, where n = g(x + r (h R)) after the reset, else g(x + (r h) R).
void compute_gru_gradient(ComputeContext& c) {
  Backwards s(c);
  const bool reset_after = c.attr_int("linear_before_reset") != 0;
  const Buffer inner = c.b.temp("d_inner", s.acc, {s.batch, s.hidden});
  const Expr one = constant(1, s.acc);
  s.run([&](const Expr& t) {
    for (int k = 0; k < 3; ++k)
      s.activate(k, k == 2 ? 1 : 0, [&](const Axes& i) { return s.entered(t, i, k); });
    auto z = [&](const Axes& i) { return s.gate(i, 0); };
    auto r = [&](const Axes& i) { return s.gate(i, 1); };
    auto slope = [&](const Axes& i, int k) {
      return s.slope(k == 2 ? 1 : 0, s.entered(t, i, k), s.gate(i, k));
    };
    s.set_gate(t, 0, [&](const Axes& i) {
      return load(s.dh, i) * (s.of_step(kStates, t, i) - s.gate(i, 2)) * slope(i, 0);
    });
    s.set_gate(t, 2, [&](const Axes& i) { return load(s.dh, i) * (one - z(i)) * slope(i, 2); });
    auto dn = [&](const Axes& i) {
      return load(s.dz, {i[0], simplify(i[1] + Expr(2) * s.hidden)});
    };
    if (reset_after) {
      s.set_gate(t, 1,
                 [&](const Axes& i) { return dn(i) * s.of_step(kInner, t, i) * slope(i, 1); });
      c.b.compute(inner, [&](const Axes& i) { return dn(i) * r(i); }, "inner");
    } else {
      c.b.compute(inner, dn, "inner");
    }
    const Buffer of_inner = s.multiply(inner, s.hidden, Expr(2) * s.hidden);
    if (!reset_after)
      s.set_gate(t, 1, [&](const Axes& i) {
        return load(of_inner, i) * s.of_step(kStates, t, i) * slope(i, 1);
      });
    s.store_at(t, 2, s.hidden, [&](const Axes& i) { return load(inner, i); });
    const Buffer back = s.multiply(s.dz, simplify(Expr(2) * s.hidden), 0);
    c.b.compute(
        s.dh,
        [&](const Axes& i) {
          const Expr of_n = reset_after ? load(of_inner, i) : load(of_inner, i) * r(i);
          return select(s.order.is_active(t, i[0]), load(s.dh, i) * z(i) + of_n + load(back, i),
                        load(s.dh, i));
        },
        "dh");
  });
}

// c' = f c + i g, h = o act(c'), gates i, o, f, g.
void compute_lstm_gradient(ComputeContext& c) {
  Backwards s(c);
  const Buffer dc = s.start("dc", kDyC), of_cell = c.b.temp("of_cell", s.acc, {s.batch, s.hidden});
  const bool coupled = c.attr_int("input_forget") != 0, peeps = c.has(kPeepholes);
  const Expr one = constant(1, s.acc);
  auto peephole = [&](const Axes& i, int k) {
    return cast(s.acc, load(c.in(kPeepholes), {simplify(i[1] + Expr(k) * s.hidden)}));
  };
  s.run([&](const Expr& t) {
    auto cell = [&](const Axes& i) { return s.of_step(kCells, t, i); };
    auto before = [&](const Axes& i) {
      const Expr first =
          c.has(kInitialC) ? cast(s.acc, load(c.in(kInitialC), i)) : constant(0, s.acc);
      const Expr at = s.order.position(t - 1, i[0]);
      return select(t > Expr(0), cast(s.acc, load(c.in(kCells), {at, i[0], i[1]})), first);
    };
    auto entered = [&](const Axes& i, int k) {
      const Expr z = s.entered(t, i, k);
      if (!peeps || k == 3) return z;
      return z + peephole(i, k) * (k == 1 ? cell(i) : before(i));
    };
    auto which = [](int k) { return k == 3 ? 1 : 0; };
    for (int k = 0; k < 4; ++k)
      if (k != 2 || !coupled) s.activate(k, which(k), [&](const Axes& i) { return entered(i, k); });
    c.b.compute(of_cell, [&](const Axes& i) { return activation(c, 2, cell(i)); }, "activated");
    auto gate = [&](const Axes& i, int k) { return s.gate(i, k); };
    auto slope = [&](const Axes& i, int k) { return s.slope(which(k), entered(i, k), gate(i, k)); };
    auto forget = [&](const Axes& i) { return coupled ? one - gate(i, 0) : gate(i, 2); };
    auto dgate = [&](const Axes& i, int k) {
      return load(s.dz, {i[0], simplify(i[1] + Expr(k) * s.hidden)});
    };
    s.set_gate(t, 1, [&](const Axes& i) { return load(s.dh, i) * load(of_cell, i) * slope(i, 1); });
    c.b.compute(
        dc,
        [&](const Axes& i) {
          Expr d = load(dc, i) +
                   load(s.dh, i) * gate(i, 1) * activation_slope(c, 2, cell(i), load(of_cell, i));
          if (peeps) d = d + dgate(i, 1) * peephole(i, 1);
          return select(s.order.is_active(t, i[0]), d, load(dc, i));
        },
        "dc");
    s.set_gate(t, 0, [&](const Axes& i) {
      const Expr by = coupled ? gate(i, 3) - before(i) : gate(i, 3);
      return load(dc, i) * by * slope(i, 0);
    });
    s.set_gate(t, 2, [&](const Axes& i) {
      return coupled ? constant(0, s.acc) : load(dc, i) * before(i) * slope(i, 2);
    });
    s.set_gate(t, 3, [&](const Axes& i) { return load(dc, i) * gate(i, 0) * slope(i, 3); });
    c.b.compute(
        dc,
        [&](const Axes& i) {
          Expr d = load(dc, i) * forget(i);
          if (peeps) d = d + dgate(i, 0) * peephole(i, 0) + dgate(i, 2) * peephole(i, 2);
          return select(s.order.is_active(t, i[0]), d, load(dc, i));
        },
        "dc_before");
    s.step_back(t);
  });
  s.finish(2, dc);
}

}  // namespace

const std::vector<OpDef>& recurrent_gradient_ops() {
  using enum AttributeKind;
  using F = std::vector<double>;
  using S = std::vector<std::string>;
  constexpr auto kOptional = OperandDef::kOptional;
  const std::vector<OperandDef> shared{
      {"entered"}, {"recurrent"}, {"dy"}, {"dy_h", kOptional}, {"sequence_lens", kOptional}};
  const std::vector<AttributeDef> attributes{
      {"reverse", kInt, "of the layer: its steps run from the end to the start"},
      {"activations", kStrings, "of the layer"},
      {"alpha", kFloats, "of the layer"},
      {"beta", kFloats, "of the layer"},
      {"clip", kFloat, "of the layer"}};
  auto with = [](auto list, const auto& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  };
  const DType f = DType::kFloat32;
  const auto example = [&](int64_t gates, const S& names, int outputs, int states) {
    OpExample e{.inputs = {{f, {5, 2, gates * 7}},
                           {f, {7, gates * 7}},
                           {f, {5, 2, 7}},
                           {f, {2, 7}},
                           {DType::kInt64, {2}}},
                .attributes = {{"activations", names},
                               {"alpha", F(names.size(), 0)},
                               {"beta", F(names.size(), 0)}},
                .values = {{}, {}, {}, {}, {5, 3}},
                .outputs = outputs};
    for (int k = 0; k < states; ++k) e.inputs.push_back({f, {5, 2, 7}});
    return e;
  };
  static const std::vector<OpDef> ops{
      {.name = "rnn_steps_gradient",
       .summary = "rnn_steps backwards: from dy to the derivatives by what entered activations and "
                  "by initial_h",
       .operands = shared,
       .attributes = attributes,
       .outputs = "d_entered, d_initial_h",
       .fusion = FusionKind::kOpaque,
       .infer_type = [](InferContext& c) { return infer_backwards(c, false, false); },
       .compute = compute_rnn_gradient,
       .example = example(1, {"tanh"}, 2, 0),
       .source = "Werbos, Backpropagation through time, 1990"},
      {.name = "gru_steps_gradient",
       .summary = "gru_steps backwards: from dy to the derivatives by what entered activations, by "
                  "initial_h and by the product that the reset gate weighs",
       .operands = with(shared, std::vector<OperandDef>{{"states_before"}, {"inner"}}),
       .attributes = with(attributes,
                          std::vector<AttributeDef>{{"linear_before_reset", kInt, "of the layer"}}),
       .outputs = "d_entered, d_initial_h, d_inner",
       .fusion = FusionKind::kOpaque,
       .infer_type = [](InferContext& c) { return infer_backwards(c, true, false); },
       .compute = compute_gru_gradient,
       .example = example(3, {"sigmoid", "tanh"}, 3, 2),
       .source = "Werbos, Backpropagation through time, 1990"},
      {.name = "lstm_steps_gradient",
       .summary = "lstm_steps backwards: from dy to the derivatives by what entered activations, "
                  "by initial_h and initial_c",
       .operands = with(
           shared,
           std::vector<OperandDef>{
               {"cells"}, {"dy_c", kOptional}, {"initial_c", kOptional}, {"peepholes", kOptional}}),
       .attributes =
           with(attributes, std::vector<AttributeDef>{{"input_forget", kInt, "of the layer"}}),
       .outputs = "d_entered, d_initial_h, d_initial_c",
       .fusion = FusionKind::kOpaque,
       .infer_type = [](InferContext& c) { return infer_backwards(c, false, true); },
       .compute = compute_lstm_gradient,
       .example = example(4, {"sigmoid", "tanh", "tanh"}, 3, 1),
       .source = "Werbos, Backpropagation through time, 1990"},
  };
  return ops;
}

}  // namespace tilewright::ir
