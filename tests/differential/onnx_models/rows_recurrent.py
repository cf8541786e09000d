"""Recurrent layers."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import peak

NAMES = ["Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Affine", "ScaledTanh", "Elu", "ThresholdedRelu", "Softplus"]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def attributes(s, op, directions, hidden):
    a = {"hidden_size": hidden, "direction": {1: s.pick([None, "forward", "reverse"]), 2: "bidirectional"}[directions]}
    if s.chance(0.25):
        a["activations"] = [s.pick(NAMES[:5]) for _ in DEFAULTS[op] * directions]
    a["clip"] = s.maybe(0.15, 0.7)
    if op == "GRU":
        a["linear_before_reset"] = s.maybe(0.5, s.int(0, 1))
    if op == "LSTM":
        a["input_forget"] = s.maybe(0.15, 1)
    return a


@row("RNN GRU LSTM", peak(64))
def recurrent(s, op):
    found = [v for v in s.values if v.rank == 3 and v.dtype == et.F32 and et.tame(v.array) and v.array.size and v.shape[0] < 20]
    x = s.pick(found) if found and s.chance(0.6) else s.leaf(s.dtype([et.F32] * 3 + [et.F16]), (s.pick([1, 2, 5, 9]), s.int(1, 4), s.pick([1, 3, 8, 9])))
    steps, batch, size = x.shape
    directions, hidden, gates = s.pick([1, 1, 2]), s.pick([1, 2, 5, 8, 9, 16, 17]), GATES[op]
    weights = lambda *shape: s.leaf(x.dtype, shape, "unit", constant=s.pick([True, True, None]))
    operands = [x, weights(directions, gates * hidden, size), weights(directions, gates * hidden, hidden)]
    operands.append(weights(directions, 2 * gates * hidden) if s.chance(0.7) else None)
    operands.append(s.leaf(et.I32, (batch,), (1, steps + 1)) if s.chance(0.25) else None)
    operands.append(weights(directions, batch, hidden) if s.chance(0.5) else None)
    if op == "LSTM":
        operands.append(weights(directions, batch, hidden) if s.chance(0.5) else None)
        operands.append(weights(directions, 3 * hidden) if s.chance(0.25) else None)
    wanted = [s.chance(0.8) for _ in range(3 if op == "LSTM" else 2)]
    wanted[s.int(0, len(wanted) - 1)] = True
    s.emit(op, operands, wanted, **attributes(s, op, directions, hidden))


def dynamic_lstm_slack(node, operands, results):
    """The input is quantised to a byte on the way, and one step of it may fall the other way."""
    return [numpy.full(r.shape, 0.02 * max(1.0, float(numpy.abs(r).max(initial=0)))) for r in results]


@row("DynamicQuantizeLSTM", dynamic_lstm_slack, domain="com.microsoft")
def dynamic_lstm(s, op):
    steps, batch, size, hidden, directions = s.pick([1, 2, 5]), s.int(1, 3), s.pick([2, 8, 9]), s.pick([2, 8, 9]), s.pick([1, 2])
    x = s.leaf(et.F32, (steps, batch, size))
    bytes_ = s.pick([et.I8, et.U8])
    weight = lambda rows: s.leaf(bytes_, (directions, rows, 4 * hidden), (-100, 100) if bytes_ == et.I8 else (20, 220), constant=True)
    scale = lambda: s.leaf(et.F32, (directions,), (0.002, 0.01), constant=True)
    zero = lambda: s.leaf(bytes_, (directions,), (0, 1) if bytes_ == et.I8 else (120, 136), constant=True)
    bias = s.leaf(et.F32, (directions, 8 * hidden), "unit", constant=True) if s.chance(0.6) else None
    start = [s.leaf(et.F32, (directions, batch, hidden), "unit") if s.chance(0.4) else None for _ in range(2)]
    s.emit(op, [x, weight(size), weight(hidden), bias, None] + start + [None, scale(), zero(), scale(), zero()], [True, True, True],
           hidden_size=hidden, direction="bidirectional" if directions == 2 else None)
