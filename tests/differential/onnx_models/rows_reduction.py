"""Reductions over axes."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import peak, sums


def reduce(s, op, x, axes_operand_from):
    axes = s.rng.sample(range(x.rank), s.int(1, x.rank)) if x.rank and s.chance(0.8) else None
    if axes and s.chance(0.3):
        axes = [a - x.rank for a in axes]
    keep = s.maybe(0.6, s.int(0, 1))
    if s.opset < axes_operand_from:
        return s.emit(op, [x], axes=axes, keepdims=keep)
    none = s.maybe(0.2, s.int(0, 1)) if axes is None else None
    operand = s.ints(axes) if axes else s.maybe(0.3, s.ints([]))
    return s.emit(op, [x, operand], keepdims=keep, noop_with_empty_axes=none)


@row("ReduceSum", sums(4))
def reduce_sum(s, op):
    reduce(s, op, s.operand(s.types(op), where=lambda a: et.tame(a) and small(a)), 13)


@row("ReduceMean ReduceL1 ReduceSumSquare", sums(4))
def reduce_linear(s, op):
    reduce(s, op, s.operand(s.types(op), where=lambda a: a.size > 0 and et.tame(a) and small(a)), 18)


def product(array):
    return float(numpy.prod(numpy.maximum(1, numpy.abs(array.astype(et.F64)))))


def small(array):
    """ONNX Runtime sums integers as floats: what they would overflow is undefined."""
    return array.dtype in et.FLOATS or numpy.abs(array.astype(et.F64)).max(initial=0) < 1000


@row("ReduceL2", sums(4))
def reduce_l2(s, op):
    reduce(s, op, s.operand([t for t in s.types(op) if t in et.FLOATS], where=lambda a: a.size > 0 and et.tame(a)), 18)


@row("ReduceProd", sums(4))
def reduce_prod(s, op):
    reduce(s, op, s.operand(s.types(op), where=lambda a: et.tame(a) and a.size < 30 and product(a) < 2 ** 30, most=24, fill="unit"), 18)


@row("ReduceMax ReduceMin")
def reduce_extreme(s, op):
    reduce(s, op, s.operand([t for t in s.types(op) if t in et.NUMBERS], where=lambda a: a.size > 0 and et.finite(a)), 18)


@row("ReduceLogSum", peak(8))
def reduce_log_sum(s, op):
    x = s.operand([t for t in s.types(op) if t in et.FLOATS], where=lambda a: a.size > 0 and et.tame(a) and bool((a > 0).all()), fill="positive")
    reduce(s, op, x, 18)


@row("ReduceLogSumExp", peak(8))
def reduce_log_sum_exp(s, op):
    x = s.operand([t for t in s.types(op) if t in et.FLOATS], where=lambda a: a.size > 0 and et.tame(a) and numpy.abs(a).max() < 80)
    reduce(s, op, x, 18)


@row("ArgMax ArgMin")
def arg(s, op):
    x = s.operand(s.types(op), rank=(1, 5), where=lambda a: a.size > 0 and et.finite(a), fill=s.pick(["normal", "halves"]))
    axis = s.axis(x.rank)
    s.emit(op, [x], axis=s.maybe(0.9, axis) if axis == 0 else axis, keepdims=s.maybe(0.6, s.int(0, 1)), select_last_index=s.maybe(0.4, s.int(0, 1)))
