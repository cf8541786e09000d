"""Tensors made from few numbers."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import peak, sums


@row("Range", sums(4))
def range_(s, op):
    t = s.dtype(s.types(op))
    start, count, step = s.int(-5, 5), s.pick([0, 1, 7, 9, 33, 40]), s.pick([1, 1, 2, -1, -3])
    if t in et.FLOATS:
        step = s.pick([0.5, 0.25, 1.5, -2.0])
    s.emit(op, [s.constant(numpy.array(v), t) for v in (start, start + step * count, step)])


@row("EyeLike")
def eye_like(s, op):
    x = s.operand([t for t in s.types(op, "T1") if t in et.ALL], rank=(2, 2), where=None)
    made = [et.F32, et.F64, et.I32, et.I64, et.U64]
    to = s.maybe(0.5, s.dtype(made)) if x.dtype in made else s.dtype(made)
    s.emit(op, [x], dtype=et.code(to) if to else None, k=s.maybe(0.5, s.int(-3, 3)))


@row("Trilu", first=14)
def trilu(s, op):
    x = s.operand(s.types(op), rank=(2, 5), where=None)
    k = s.maybe(0.6, s.constant(numpy.array(s.int(-4, 4)), et.I64))
    s.emit(op, [x, k], upper=s.maybe(0.6, s.int(0, 1)))


@row("OneHot")
def one_hot(s, op):
    depth = s.int(1, 9)
    indices = s.leaf(s.pick([et.I64, et.I32, et.F32, et.U8]), s.shape(0, 3, most=200), (0, depth))
    if indices.dtype in et.FLOATS:
        indices = s.emit("Floor", [indices])[0]
    values = s.leaf(s.dtype([et.F32, et.I32, et.I64, et.F64, et.BOOL, et.I8, et.F16]), (2,))
    count = s.constant(numpy.array(depth) if s.chance(0.7) else numpy.array([depth]), s.pick([et.I64, et.I32, et.F32]))
    s.emit(op, [indices, count, values], axis=s.maybe(0.6, s.int(-indices.rank - 1, indices.rank)))


@row("AffineGrid", peak(8), first=20)
def affine_grid(s, op):
    n, dims = s.int(1, 2), s.int(2, 3)
    theta = s.leaf(s.dtype([t for t in s.types(op, "T1")]), (n, dims, dims + 1))
    size = s.ints([n, s.int(1, 3)] + [s.int(1, 5) for _ in range(dims)])
    s.emit(op, [theta, size], align_corners=s.maybe(0.5, s.int(0, 1)))


@row("Hardmax")
def hardmax(s, op):
    x = s.operand(s.types(op), rank=(1, 4), fill=s.pick(["normal", "halves"]))
    s.emit(op, [x], axis=s.maybe(0.6, s.axis(x.rank)))
