"""Elementwise arithmetic, comparisons, logic and conversions."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import EPS, SMALLEST, sums, ulps


def unary(s, op, where=None, fill="normal"):
    x = s.operand(s.types(op), where=where, fill=fill)
    return s.emit(op, [x])


@row("Abs Neg Not Floor Ceil")
def exact_unary(s, op):
    unary(s, op)


@row("BitwiseNot", first=18)
def bitwise_not(s, op):
    unary(s, op, fill="wide")


@row("Identity")
def identity(s, op):
    s.emit(op, [s.operand(et.ALL, where=None)])


@row("Round Sign")
def rounding(s, op):
    unary(s, op, fill=s.pick(["halves", "normal"]))


@row("Sqrt Reciprocal", ulps(2))
def positive_unary(s, op):
    x = s.operand(s.types(op), where=lambda a: et.tame(a) and (a > 0).all(), fill="positive")
    s.emit(op, [x])


# Vector functions: a few units in the last place.
@row("Exp Atan Sinh Cosh Tanh Asinh Erf", ulps(8))
def function(s, op):
    unary(s, op, where=lambda a: et.tame(a) and (op not in ("Exp", "Sinh", "Cosh") or numpy.abs(a).max(initial=0) < 80))


def periodic_slack(node, operands, results):
    """As if the operand were off in its last place: near their zeros the results hang on all of its bits."""
    y, x = (numpy.abs(a.astype(et.F64)) for a in (results[0], operands[0]))
    eps = EPS[et.F64 if results[0].dtype == et.F64 else et.F32]
    half = EPS[results[0].dtype] if results[0].dtype in et.HALVES else 0
    slope = 1 + y * y if node.op_type == "Tan" else 1.0
    return [4 * eps * (y + slope * x) + half * y + SMALLEST[results[0].dtype]]


@row("Sin Cos Tan", periodic_slack)
def periodic(s, op):
    unary(s, op, where=lambda a: et.tame(a) and numpy.abs(a).max(initial=0) < 1000)


@row("Log", ulps(8))
def log(s, op):
    s.emit(op, [s.operand(s.types(op), where=lambda a: et.tame(a) and (a > 0).all(), fill="positive")])


@row("Asin Acos Atanh", ulps(8))
def bounded(s, op):
    s.emit(op, [s.operand(s.types(op), where=lambda a: et.tame(a) and (numpy.abs(a) < 0.999).all(), fill="unit")])


@row("Acosh", ulps(8))
def acosh(s, op):
    s.emit(op, [s.operand(s.types(op), where=lambda a: et.tame(a) and (a >= 1.01).all(), fill=(1.01, 40))])


@row("IsNaN IsInf")
def is_special(s, op):
    first, second = (None, None) if op == "IsNaN" else (s.maybe(0.3, s.int(0, 1)), s.maybe(0.3, s.int(0, 1)))
    x = s.operand([t for t in s.types(op, "T1") if t in et.FLOATS], where=None)
    s.emit(op, [x], detect_negative=first, detect_positive=second)


def two(s, types, where=et.tame, fill="normal"):
    a = s.operand(types, where=where, fill=fill)
    b = s.broadcast_like(a, where=where, fill=fill)
    return [a, b] if s.chance(0.5) else [b, a]


@row("Add Sub", sums(1))
def add(s, op):
    s.emit(op, two(s, s.types(op), where=None, fill=s.pick(["normal", "wide"])))


@row("Mul", ulps(1))
def mul(s, op):
    s.emit(op, two(s, s.types(op), where=None))


@row("Div", ulps(2))
def div(s, op):
    a = s.operand(s.types(op), where=None if s.special else et.tame)
    ok = (lambda x: bool((x > 0).all())) if a.dtype in et.INTEGERS else (lambda x: et.tame(x) and bool((x > 0.01).all()))
    s.emit(op, [a, s.broadcast_like(a, where=ok, fill="positive")])


@row("And Or Xor Less LessOrEqual Greater GreaterOrEqual Equal")
def compare(s, op):
    s.emit(op, two(s, s.types(op), where=None, fill=s.pick(["normal", "halves", "wide"])))


@row("BitwiseAnd BitwiseOr BitwiseXor", first=18)
def bitwise(s, op):
    s.emit(op, two(s, s.types(op), where=None, fill="wide"))


@row("Max Min")
def extreme(s, op):
    a = s.operand(s.types(op), where=None)
    s.emit(op, [a] + [s.broadcast_like(a, where=None) for _ in range(s.pick([0, 1, 1, 1, 2, 3]))])


@row("Sum Mean", sums(4))
def total(s, op):
    a = s.operand(s.types(op))
    s.emit(op, [a] + [s.broadcast_like(a) for _ in range(s.pick([0, 1, 1, 2, 3]))])


@row("Mod")
def mod(s, op):
    fmod = s.int(0, 1)
    types = s.types(op) if fmod else [t for t in s.types(op) if t in et.INTEGERS]
    a = s.operand(types)
    # A divisor that is a power of two keeps the remainder of floats exact on both sides.
    b = s.broadcast_like(a, where=lambda x: bool((x > 0).all()), fill="positive")
    if s.chance(0.3) and a.dtype not in et.UNSIGNED:
        b = s.emit("Neg", [b])[0]
    s.emit(op, [a, b], fmod=fmod or None)


@row("Pow", ulps(32))
def power(s, op):
    a = s.operand([t for t in s.types(op)], where=lambda x: et.tame(x) and bool((x > 0).all()) and x.max(initial=1) < 50, fill="positive")
    types = [t for t in s.types(op, "T1") if t in (et.F32, et.F64, et.I32, et.I64, et.F16)] if s.opset >= 12 else [a.dtype]
    if s.chance(0.4):
        b = s.constant(numpy.array(s.pick([0, 1, 2, 3])), s.dtype(types))
    elif a.dtype in et.FLOATS:
        b = s.leaf(s.dtype(types), s.broadcastable(a.shape), (0, 4))
    else:
        b = s.leaf(s.dtype([t for t in types if t in et.INTEGERS] or types), s.broadcastable(a.shape), (0, 4))
    s.emit(op, [a, b])


@row("BitShift")
def bit_shift(s, op):
    a = s.operand(s.types(op), where=None, fill="wide")
    b = s.leaf(a.dtype, s.broadcastable(a.shape), (0, 8 * a.dtype.itemsize))
    s.emit(op, [a, b], direction=s.pick(["LEFT", "RIGHT"]))


def castable(s, source):
    """Types that this value converts to with a result that the standard defines."""
    a = source.array
    if source.dtype not in et.FLOATS:
        return et.ALL
    if not et.finite(a):
        return et.FLOATS
    low, high = (float(a.min()), float(a.max())) if a.size else (0, 0)
    whole = [t for t in et.INTEGERS if et.limits(t).min <= low and high <= min(et.limits(t).max, 2 ** 62)]
    return et.FLOATS + [et.BOOL] + whole


@row("Cast")
def cast(s, op):
    x = s.operand(et.ALL, where=None, fill=s.pick(["normal", "wide", "halves"]))
    to = s.dtype(castable(s, x))
    s.emit(op, [x], to=et.code(to), saturate=s.maybe(0.2, 1) if s.opset >= 19 else None)


@row("CastLike", first=15)
def cast_like(s, op):
    x = s.operand(et.ALL, where=None)
    s.emit(op, [x, s.leaf(s.dtype(castable(s, x)), s.shape(0, 2))])


@row("BitCast", first=26)
def bit_cast(s, op):
    x = s.operand(et.INTEGERS + et.FLOATS, where=et.finite)
    s.emit(op, [x], to=et.code(s.pick([t for t in et.INTEGERS + et.FLOATS if t.itemsize == x.dtype.itemsize])))


@row("Clip")
def clip(s, op):
    x = s.operand(s.types(op), where=et.finite if s.chance(0.7) else None)
    low, high = sorted([s.int(0, 4), s.int(0, 9)]) if x.dtype in et.UNSIGNED else sorted([s.int(-5, 3), s.int(-2, 5)])
    which = s.pick([(1, 1), (1, 1), (1, 0), (0, 1)])
    bounds = [s.constant(numpy.array(b), x.dtype) if w else None for b, w in zip((low, high), which)]
    s.emit(op, [x] + bounds)


@row("Where")
def where(s, op):
    x = s.operand(s.types(op), where=None)
    y = s.broadcast_like(x, where=None)
    condition = s.operand([et.BOOL], fresh=1) if s.chance(0.1) else s.leaf(et.BOOL, s.broadcastable(x.shape))
    s.emit(op, [condition, x, y])
