"""If, Loop and Scan with small bodies that also take values from outside."""
import numpy
from onnx import helper

import element_types as et
from operator_rows import row
from reference import Refused
from tolerance import peak

STEPS = ["Add", "Sub", "Mul", "Max", "Min"]


def info(name, dtype, shape=None):
    return helper.make_tensor_value_info(name, et.code(dtype), shape)


def dims(s, shape):
    """The extents that a body states: those that are not a symbol's."""
    return [None if d in s.symbols else d for d in shape]


class Body:
    """A sub-graph in the making; its names do not meet those outside."""

    def __init__(self, s, prefix):
        self.s, self.prefix, self.nodes, self.captured = s, prefix, [], []

    def node(self, op, inputs, **attributes):
        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def outside(self, value):
        if value not in self.captured:
            self.captured.append(value)
        return value.name

    def arithmetic(self, name, like, shape=None):
        """One to three steps on a value of this name, with values from outside of its type."""
        s = self.s
        shape = like.shape if shape is None else shape
        for _ in range(s.int(1, 3)):
            if s.chance(0.3) and like.dtype not in et.UNSIGNED:
                name = self.node("Neg", [name])
            elif s.chance(0.5):
                name = self.node(s.pick(STEPS), [name, self.outside(s.like(like, (), fill="unit"))])
            else:
                name = self.node(s.pick(STEPS), [name, self.outside(s.like(like, [d if s.chance(0.7) else 1 for d in shape], fill="unit"))])
        return name

    def graph(self, inputs, outputs):
        return helper.make_graph(self.nodes, self.prefix, inputs, outputs)


def changing(s, body, x, states):
    """More carried values, whose shape the first iteration changes: placeholders, and a scalar that becomes a vector."""
    more = []
    for kind in s.pick([["placeholder"], ["vector"], ["placeholder", "vector"], ["chain"]]):
        name = f"{kind}{body.prefix}"
        start = s.constant(numpy.array(2), x.dtype)
        if kind == "placeholder":      # overwritten without being read
            after = body.node("Identity", [states[0]])
        elif kind == "vector":
            after = body.node("Add", [name, body.outside(s.constant(numpy.array([1]), x.dtype))])
        else:                          # a shape that takes two iterations to stay
            after = body.node("Identity", [more[-1][0] if more else states[0]])
        more.append((name, start, after))
        if kind == "chain":
            more.append((name + "_behind", s.constant(numpy.array(3), x.dtype), body.node("Identity", [name])))
    return more


TYPES = [et.F32, et.F32, et.F64, et.I32, et.I64]


@row("If", peak(64))
def if_(s, op):
    x = s.operand(TYPES, rank=(0, 3), most=300)
    condition = s.operand([et.BOOL], rank=(0, 0)) if s.chance(0.5) else s.leaf(et.BOOL, (), constant=False)
    branches, captured = [], []
    for prefix in ("then", "else"):
        body = Body(s, f"{prefix}{len(s.values)}_")
        result = body.arithmetic(body.node("Identity", [body.outside(x)]), x)
        if prefix == "else" and x.rank and s.chance(0.3):  # of another shape
            result = body.node("Concat", [result, result], axis=0)
        branches.append(body.graph([], [info(result, x.dtype)]))
        captured += [v for v in body.captured if v not in captured]
    s.emit(op, [condition], captured=captured, then_branch=branches[0], else_branch=branches[1])


@row("Loop", peak(256))
def loop(s, op):
    x = s.operand(TYPES, rank=(0, 3), where=lambda a: et.tame(a) and numpy.abs(a.astype(et.F64)).max(initial=0) < 20, most=200)
    body = Body(s, f"loop{len(s.values)}_")
    state, scanned = body.arithmetic("state" + body.prefix, x), None
    going = body.node("Identity", ["going" + body.prefix])
    more = changing(s, body, x, [state]) if s.chance(0.3) else []
    outputs = [info(going, et.BOOL), info(state, x.dtype, dims(s, x.shape)), *[info(after, x.dtype) for _, _, after in more]]
    if s.chance(0.5):
        scanned = body.node("Neg" if x.dtype not in et.UNSIGNED else "Identity", ["state" + body.prefix])
        outputs.append(info(scanned, x.dtype, dims(s, x.shape)))
    one = [[], [], [1]]  # numbers of iterations and conditions are also declared as vectors
    inputs = [info("count" + body.prefix, et.I64, s.pick(one)), info("going" + body.prefix, et.BOOL, s.pick(one)),
              info("state" + body.prefix, x.dtype, dims(s, x.shape)), *[info(name, x.dtype) for name, _, _ in more]]
    # What changes its shape has no one type after no iteration.
    least = 1 if more else 0
    trips = s.constant(numpy.array(s.pick([t for t in (0, 1, 2, 3, 5) if t >= least])), et.I64) if s.chance(0.5) else s.leaf(et.I64, (), (least, 5), constant=False)
    condition = s.maybe(0.3, s.constant(numpy.array(True)))
    results = s.emit(op, [trips, condition, x, *[start for _, start, _ in more]], len(outputs) - 1, captured=body.captured, body=body.graph(inputs, outputs))
    if scanned and results[-1].shape[1:] != x.shape:
        raise Refused("rows of no iteration, whose extents ONNX Runtime has as 0: later nodes would rely on that")


@row("Scan", peak(256))
def scan(s, op):
    x = s.operand(TYPES, rank=(1, 3), where=lambda a: a.size > 0 and a.shape[0] < 20 and et.tame(a) and numpy.abs(a.astype(et.F64)).max(initial=0) < 20, most=300)
    inner = x.shape[1:]
    state = s.like(x, inner)
    body = Body(s, f"scan{len(s.values)}_")
    sum_ = body.node(s.pick(["Add", "Sub", "Max"]), ["state" + body.prefix, "item" + body.prefix])
    result = body.arithmetic(sum_, x, inner)
    outputs = [info(sum_, x.dtype, dims(s, inner)), info(result, x.dtype, dims(s, inner))]
    inputs = [info("state" + body.prefix, x.dtype, dims(s, inner)), info("item" + body.prefix, x.dtype, dims(s, inner))]
    s.emit(op, [state, x], 2, captured=body.captured, body=body.graph(inputs, outputs), num_scan_inputs=1,
           scan_input_directions=s.maybe(0.3, [1]), scan_output_directions=s.maybe(0.3, [1]))
