"""Running sums, sorting, and results whose extents hang on the values."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import sums


@row("CumSum", sums(4))
def cumulative_sum(s, op):
    x = s.operand(s.types(op), rank=(1, 4))
    axis = s.constant(numpy.array(s.axis(x.rank)), s.pick([et.I64, et.I32]))
    s.emit(op, [x, axis], exclusive=s.maybe(0.4, s.int(0, 1)), reverse=s.maybe(0.4, s.int(0, 1)))


@row("CumProd", sums(4), first=26)
def cumulative_product(s, op):
    x = s.operand(s.types(op), rank=(1, 4), where=lambda a: et.tame(a) and numpy.abs(a.astype(et.F64)).max(initial=0) < 4, fill="unit")
    axis = s.constant(numpy.array(s.axis(x.rank)), s.pick([et.I64, et.I32]))
    s.emit(op, [x, axis], exclusive=s.maybe(0.4, s.int(0, 1)), reverse=s.maybe(0.4, s.int(0, 1)))


def has_ties(array, axis):
    ordered = numpy.sort(array.astype(et.F64), axis)
    return bool((numpy.diff(ordered, axis=axis) == 0).any())


@row("TopK")
def top_k(s, op):
    x = s.operand(s.types(op), rank=(1, 4))
    axis = s.axis(x.rank)
    k = s.constant(numpy.array([s.int(0 if s.empty else min(1, x.shape[axis]), x.shape[axis])]), et.I64)
    is_sorted = s.maybe(0.3, 1)
    s.emit(op, [x, k], [True, True], axis=axis, largest=s.maybe(0.6, s.int(0, 1)), sorted=is_sorted)


@row("Unique")
def unique(s, op):
    types = [t for t in s.types(op) if t not in (et.BOOL, et.U64)]  # for these, ONNX's own reference sorts what it must not
    x = s.operand(types, rank=(1, 3), where=lambda a: a.size > 0 and et.finite(a), fill="halves")
    if x.source == "node" and x.dtype in et.FLOATS:
        x = s.leaf(x.dtype, x.shape, fill="halves")  # how many differ would hang on roundings
    axis = s.maybe(0.5, s.axis(x.rank))
    is_sorted = s.maybe(0.5, s.int(0, 1))
    s.emit(op, [x], [True] + [s.chance(0.5) for _ in range(3)], axis=axis, sorted=is_sorted)


@row("NonZero")
def nonzero(s, op):
    # Of a scalar the standard has [0, n], ONNX Runtime [1, n], and what follows differs too.
    s.emit(op, [s.operand(s.types(op), rank=(1, 5), where=None, fill="unit")])


@row("Compress")
def compress(s, op):
    x = s.operand(s.types(op), rank=(1, 4), where=None)
    axis = s.maybe(0.7, s.axis(x.rank))
    extent = x.array.size if axis is None else x.shape[axis]
    s.emit(op, [x, s.leaf(et.BOOL, (s.pick([extent, s.int(0, extent)]),))], axis=axis)


@row("NonMaxSuppression")
def non_max_suppression(s, op):
    batch, boxes, classes = s.int(1, 2), s.int(1, 9), s.int(1, 3)
    centers = s.maybe(0.5, s.int(0, 1))
    corners = s.generator.uniform(0, 1, (batch, boxes, 4)).astype(et.F32)
    b = s.add(corners, "initializer")
    scores = s.leaf(et.F32, (batch, classes, boxes), (0, 1))
    limits = [s.constant(numpy.array([s.int(1, 4)]), et.I64), s.maybe(0.7, s.constant(numpy.array([0.4]), et.F32)),
              s.maybe(0.5, s.constant(numpy.array([0.3]), et.F32))]
    s.emit(op, [b, scores] + limits, center_point_box=centers)
