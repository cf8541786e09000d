"""Quantisation: to bytes and back, and products of bytes."""
import numpy

import element_types as et
from operator_rows import row
from rows_nn import EDGES, image, window
from tolerance import ulps

BYTES = [et.U8, et.I8]


def near_tie(quotient, operands_dtype):
    """Where the number to be rounded lies so near a tie that its own rounding decides."""
    q = quotient.astype(et.F64)
    eps = 2.0 ** -22 if operands_dtype not in et.HALVES else 2.0 ** -9
    away = numpy.abs(numpy.abs(q - numpy.floor(q)) - 0.5)
    return away <= eps * (1 + numpy.abs(q))


def along_axis(array, x, axis, block=0):
    array = array.astype(et.F64)
    if block:
        return numpy.repeat(array, block, axis)[tuple(slice(0, d) for d in x.shape)]
    if array.ndim == 1 and array.size > 1 or array.ndim == 1 and x.ndim > 1:
        return array.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if array.size > 1 else array
    return array


def quantize_slack(node, operands, results):
    """Equal, but for one step where x / scale lies on a tie up to rounding."""
    attributes = {a.name: a.i for a in node.attribute}
    x, scale = operands[0], operands[1]
    q = x.astype(et.F64) / along_axis(scale, x, attributes.get("axis", 1), attributes.get("block_size", 0))
    return [near_tie(numpy.broadcast_to(q, x.shape), x.dtype).astype(float)]


def scale_of(s, x, axis, block):
    if block:
        shape = [-(-d // block) if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    else:
        shape = [x.shape[axis]] if axis is not None else []
    return s.leaf(et.F32, shape, (0.01, 0.3), constant=s.pick([True, None]))


def zero_point(s, scale, dtype):
    return s.leaf(dtype, scale.shape, "normal", constant=s.pick([True, None]))


def axes_of(s, x):
    axis = s.axis(x.rank) if x.rank and s.chance(0.4) else None
    block = s.pick([2, 3, 4]) if axis is not None and s.opset >= 21 and s.chance(0.3) and x.shape[axis] > 1 else 0
    return axis, block


@row("QuantizeLinear", quantize_slack)
def quantize(s, op):
    x = s.operand([et.F32], rank=(0, 4), where=lambda a: a.size > 0 and et.tame(a))
    axis, block = axes_of(s, x)
    scale = scale_of(s, x, axis, block)
    to = s.pick(BYTES + ([et.U16, et.I16] if s.opset >= 21 else []))
    zero = zero_point(s, scale, to) if s.chance(0.8) or to != et.U8 else None
    s.emit(op, [x, scale, zero], axis=axis, block_size=block or None)


@row("DequantizeLinear", ulps(1))
def dequantize(s, op):
    types = BYTES + ([et.U16, et.I16] if s.opset >= 21 else []) + [et.I32]
    x = s.operand(types, rank=(0, 4), where=lambda a: a.size > 0, fill="wide")
    if x.dtype == et.I32 and numpy.abs(x.array).max(initial=0) > 2 ** 24:
        x = s.leaf(et.I32, x.shape, (-1000, 1000))
    axis, block = axes_of(s, x)
    scale = scale_of(s, x, axis, block)
    zero = zero_point(s, scale, x.dtype) if s.chance(0.7) and x.dtype != et.I32 else None
    s.emit(op, [x, scale, zero], axis=axis, block_size=block or None)


def dynamic_slack(node, operands, results):
    x = operands[0].astype(et.F64)
    y, scale, zero = (r.astype(et.F64) for r in results)
    low, high = min(x.min(), 0), max(x.max(), 0)
    step = (high - low) / 255 or 1
    doubt = near_tie(numpy.array(-low / step), et.F32)
    return [numpy.where(doubt, 1.0, near_tie(x / step, et.F32).astype(float)), 2.0 ** -22 * abs(step), float(doubt)]


@row("DynamicQuantizeLinear", dynamic_slack)
def dynamic_quantize(s, op):
    s.emit(op, [s.operand([et.F32], rank=(0, 4), where=lambda a: a.size > 0 and et.tame(a) and numpy.abs(a).max() > 0.01)], 3)


def bytes_like(s, shape, dtype=None, constant=None):
    return s.leaf(dtype or s.pick(BYTES), shape, "wide", constant)


@row("MatMulInteger")
def matmul_integer(s, op):
    a = s.operand(BYTES, rank=(2, 3), fill="wide")
    n = s.pick(EDGES)
    b = bytes_like(s, (a.shape[-1], n), constant=s.pick([True, None]))
    za = s.maybe(0.6, s.leaf(a.dtype, (), "wide"))
    zb = s.maybe(0.5, s.leaf(b.dtype, s.pick([(), (n,)]), "wide"))
    s.emit(op, [a, b, za, zb])


def byte_window(s, x):
    c = x.shape[1]
    group = s.pick([g for g in range(1, c + 1) if c % g == 0]) if s.chance(0.3) else 1
    m = group * s.pick([1, 2, 3, 8])
    kernel = [s.int(1, min(3, d)) for d in x.shape[2:]]
    return group, m, [m, c // group] + kernel, window(s, x.shape[2:], kernel)


@row("ConvInteger")
def conv_integer(s, op):
    x = image(s, [et.U8], dims=s.pick([1, 2, 2]))
    group, m, shape, a = byte_window(s, x)
    w = bytes_like(s, shape, et.U8, constant=s.pick([True, None]))
    zx = s.maybe(0.6, s.leaf(x.dtype, (), "wide"))
    zw = s.maybe(0.4, s.leaf(w.dtype, (), "wide"))
    s.emit(op, [x, w, zx, zw], group=group if group > 1 else None, **a)


def product_slack(scales, exact):
    """One step where the sum times the scales lies on a tie up to rounding; `exact` gives the integer sums."""
    def slack(node, operands, results):
        q = exact(node, operands).astype(et.F64) * scales(operands)
        return [near_tie(q, et.F32).astype(float)]
    return slack


def qlinear_matmul_sum(node, o):
    a, b = o[0].astype(et.I64) - o[2].astype(et.I64), o[3].astype(et.I64) - o[5].astype(et.I64)
    return a @ b


def scale(s, low=0.01, high=0.1, shape=()):
    return s.leaf(et.F32, shape, (low, high), constant=s.pick([True, True, None]))


@row("QLinearMatMul", product_slack(lambda o: o[1].astype(et.F64) * o[4].astype(et.F64) / o[6].astype(et.F64), qlinear_matmul_sum))
def qlinear_matmul(s, op):
    a = s.operand(BYTES, rank=(2, 3), fill="wide")
    n = s.pick(EDGES + [81])
    b = bytes_like(s, (a.shape[-1], n), None if a.dtype == et.U8 else et.I8, constant=s.pick([True, None]))
    columns = s.pick([(), (n,)])
    s.emit(op, [a, scale(s), s.leaf(a.dtype, (), "wide"), b, scale(s, shape=columns), s.leaf(b.dtype, columns, "wide"),
                scale(s, 0.2, 2.0), s.leaf(a.dtype, (), "wide")])


def qlinear_conv_slack(node, operands, results):
    return [1.0]


@row("QLinearConv", qlinear_conv_slack)
def qlinear_conv(s, op):
    x = image(s, BYTES, dims=s.pick([1, 2, 2]))
    group, m, shape, a = byte_window(s, x)
    w = bytes_like(s, shape, s.pick([et.I8, x.dtype]), constant=True)
    channels = s.pick([(), (m,)])
    bias = s.leaf(et.I32, (m,), (-300, 300), constant=True) if s.chance(0.5) else None
    s.emit(op, [x, scale(s), s.leaf(x.dtype, (), "wide"), w, scale(s, shape=channels), s.leaf(w.dtype, channels, (0, 1), constant=True),
                scale(s, 0.1, 1.0), s.leaf(x.dtype, (), "wide"), bias], group=group if group > 1 else None, **a)


@row("QuantizeLinear", quantize_slack, domain="com.microsoft")
def microsoft_quantize(s, op):
    x = s.operand([et.F32], rank=(1, 4), where=lambda a: a.size > 0 and et.tame(a))
    axis = s.axis(x.rank) if s.chance(0.4) else None
    scale_ = scale_of(s, x, axis, 0)
    s.emit(op, [x, scale_, zero_point(s, scale_, s.pick(BYTES + [et.U16, et.I16]))], axis=axis)


@row("DequantizeLinear", ulps(1), domain="com.microsoft")
def microsoft_dequantize(s, op):
    x = s.operand(BYTES + [et.U16, et.I16], rank=(1, 4), where=lambda a: a.size > 0, fill="wide")
    axis = s.axis(x.rank) if s.chance(0.4) else None
    scale_ = scale_of(s, x, axis, 0)
    s.emit(op, [x, scale_, zero_point(s, scale_, x.dtype) if s.chance(0.7) else None], axis=axis)
