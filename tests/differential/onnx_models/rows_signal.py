"""Windows and Fourier transforms."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import EPS, peak


def window_slack(node, operands, results):
    """Sums of cosines times constants, of magnitude 1, which cancel at the ends."""
    return [8 * EPS[results[0].dtype]]


@row("HannWindow HammingWindow BlackmanWindow", window_slack, first=17)
def window(s, op):
    size = s.constant(numpy.array(s.int(2, 33)), s.pick([et.I64, et.I32]))
    to = s.maybe(0.4, s.pick([et.F32, et.F64]))
    s.emit(op, [size], periodic=s.maybe(0.5, s.int(0, 1)), output_datatype=et.code(to) if to else None)


@row("MelWeightMatrix", peak(8), first=17)
def mel_weights(s, op):
    numbers = [s.int(2, 12), s.pick([16, 32, 64]), 8000]
    operands = [s.constant(numpy.array(v), et.I64) for v in numbers]
    operands += [s.constant(numpy.array(v), et.F32) for v in (s.pick([0.0, 125.0]), s.pick([3000.0, 4000.0]))]
    s.emit(op, operands)


@row("DFT", peak(16), first=17)
def dft(s, op):
    parts = s.pick([1, 1, 2])
    shape = tuple(s.shape(1, 2, most=8)) + (s.pick([1, 2, 4, 5, 8, 9, 16, 17]),) + ((s.int(1, 3),) if s.chance(0.3) else ())
    x = s.leaf(s.dtype([et.F32, et.F64]), shape + (parts,))
    axis = s.int(1, x.rank - 2)
    length = s.maybe(0.3, s.constant(numpy.array(s.pick([3, 8, 10])), et.I64))
    inverse = s.maybe(0.4, s.int(0, 1))
    onesided = s.maybe(0.5, s.int(0, 1)) if not inverse and parts == 1 else None
    if s.opset >= 20:
        s.emit(op, [x, length, s.constant(numpy.array(axis - x.rank if s.chance(0.3) else axis), et.I64)], inverse=inverse, onesided=onesided)
    else:
        s.emit(op, [x, length], axis=axis, inverse=inverse, onesided=onesided)


@row("STFT", peak(16), first=17)
def stft(s, op):
    length, step = s.pick([4, 8, 9, 16]), s.int(1, 6)
    x = s.leaf(s.dtype([et.F32, et.F64]), (s.int(1, 2), s.int(length, 40), 1))
    window_ = s.leaf(x.dtype, (length,), "unit") if s.chance(0.7) else None
    frame = s.constant(numpy.array(length), et.I64) if window_ is None or s.chance(0.4) else None
    s.emit(op, [x, s.constant(numpy.array(step), et.I64), window_, frame], onesided=s.maybe(0.5, s.int(0, 1)))
