"""How far two right results may lie apart.

An operator's row says by which of these rules its results are judged; all follow from the element type,
the number of terms n that are summed, and the magnitudes:
- EXACT: equal. Moved, compared, chosen or integer values; one correctly rounded operation.
- ulps(k): k units in the last place of the result: functions evaluated by polynomials or formulas.
- sums(k): (k + 2 sqrt(n)) eps times the same operator on absolute values: two orders of one sum, with
  products rounded or not (errors of n roundings grow as sqrt(n); 2 sqrt(n) leaves room on either side).
- peak(k): (k + 2 sqrt(n)) eps times the largest magnitude of result and operands: normalisations and
  transforms, where every result hangs on all operands and terms cancel.
Halves are computed in f32 and rounded once, which adds one unit in the last place of the half. What lies
within that of the largest finite number may be infinite on one side."""
import dataclasses

import numpy

import element_types as et

EPS = {et.F64: 2.0 ** -52, et.F32: 2.0 ** -23, et.F16: 2.0 ** -10, et.BF16: 2.0 ** -7}
SMALLEST_NORMAL = {et.F64: 2.0 ** -1022, et.F32: 2.0 ** -126, et.F16: 2.0 ** -14, et.BF16: 2.0 ** -126}
SMALLEST = {et.F64: 2.0 ** -1074, et.F32: 2.0 ** -149, et.F16: 2.0 ** -24, et.BF16: 2.0 ** -133}


@dataclasses.dataclass(frozen=True)
class Tolerance:
    rule: str
    k: float = 0


EXACT = Tolerance("exact")


def ulps(k):
    return Tolerance("ulps", k)


def sums(k=4):
    return Tolerance("sums", k)


def peak(k=8):
    return Tolerance("peak", k)


def magnitude(array):
    wide = numpy.abs(array.astype(et.F64))
    return wide[numpy.isfinite(wide)].max(initial=0.0)


def allowed(tolerance, result, operands, absolute):
    """The difference allowed, as an array or number. absolute: the operator's result on absolute values, for sums."""
    dtype = result.dtype
    if tolerance.rule == "exact" or dtype not in et.FLOATS:
        return 0.0
    eps = EPS[et.F64 if dtype == et.F64 else et.F32]
    half = EPS[dtype] if dtype in et.HALVES else 0.0
    wide = numpy.abs(result.astype(et.F64))
    wide = numpy.where(numpy.isfinite(wide), wide, 0.0)
    n = max([a.size for a in operands] + [1])
    spread = tolerance.k + 2 * numpy.sqrt(n)
    if tolerance.rule == "ulps":
        error = tolerance.k * eps * wide
    elif tolerance.rule == "sums":
        scale = numpy.abs(absolute.astype(et.F64)) if absolute is not None else magnitude(result)
        error = spread * eps * numpy.where(numpy.isfinite(scale), scale, 0.0)
    else:
        error = spread * eps * max([magnitude(result)] + [magnitude(a) for a in operands if a.dtype in et.FLOATS])
    # Denormals may be flushed inside a function; a sum of them is exact to their last place, unless it is
    # rounded to bf16: to the instruction for that, denormals are 0.
    least = SMALLEST[dtype] if tolerance.rule == "sums" and dtype != et.BF16 else SMALLEST_NORMAL[et.F64 if dtype == et.F64 else et.F32] + SMALLEST[dtype]
    return error + half * wide + least


def difference(ours, reference, slack):
    """None, or where and how far two arrays differ beyond `slack`."""
    if ours.dtype != reference.dtype:
        return f"type {ours.dtype}, expected {reference.dtype}"
    if ours.shape != reference.shape:
        return f"shape {list(ours.shape)}, expected {list(reference.shape)}"
    if ours.dtype not in et.FLOATS:
        # Rounding to an integer may go either way at a tie: rows say where.
        wrong = (ours != reference) & ~((slack > 0) & (numpy.abs(ours.astype(et.F64) - reference.astype(et.F64)) <= slack))
    else:
        a, b = ours.astype(et.F64), reference.astype(et.F64)
        with numpy.errstate(invalid="ignore"):
            wrong = ~((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (numpy.abs(a - b) <= slack))
        wrong &= ~at_the_limit(a, b, ours.dtype, slack)
    if not wrong.any():
        return None
    at = numpy.unravel_index(int(numpy.argmax(wrong)), wrong.shape) if wrong.ndim else ()
    most = numpy.broadcast_to(slack, wrong.shape)[at] if wrong.ndim else slack
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {[int(i) for i in at]}: {ours[at]!r}, expected {reference[at]!r} (within {float(most):.3g})"


def at_the_limit(a, b, dtype, slack):
    """One side overflowed, the other is the largest number but for the tolerance."""
    largest = float(et.limits(dtype).max)
    nearly = largest * (1 - 2 * EPS[dtype]) - slack
    return (a * numpy.sign(b) >= nearly) & (numpy.abs(b) >= nearly) & (numpy.isinf(a) | numpy.isinf(b)) if numpy.any(slack) else numpy.zeros(a.shape, bool)
