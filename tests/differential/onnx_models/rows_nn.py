"""Matrix products and convolutions."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import peak, sums

EDGES = [1, 2, 3, 5, 7, 8, 9, 16, 17, 32, 33, 65]


@row("MatMul", sums(4))
def matmul(s, op):
    a = s.operand(s.types(op), rank=(1, 4))
    k = a.shape[-1]
    if s.chance(0.2):
        b = s.like(a, [k])
    else:
        batch = s.broadcastable(a.shape[:-2]) if a.rank > 2 and s.chance(0.7) else ()
        b = s.like(a, list(batch) + [k, s.pick(EDGES)])
    s.emit(op, [a, b])


@row("Gemm", sums(4))
def gemm(s, op):
    a = s.operand(s.types(op), rank=(2, 2))
    ta, tb = s.int(0, 1), s.int(0, 1)
    m, k = reversed(a.shape) if ta else a.shape
    n = s.pick(EDGES)
    b = s.like(a, (n, k) if tb else (k, n))
    c = s.like(a, s.pick([(n,), (1, n), (m, 1), (m, n), (1,), ()])) if s.chance(0.7) else None
    whole = a.dtype in et.INTEGERS
    least = 0 if a.dtype in et.UNSIGNED else -2  # -1 times an unsigned number is undefined
    factor = lambda: s.maybe(0.4, float(s.int(least, 3)) if whole else s.rng.uniform(-2, 2))
    s.emit(op, [a, b, c], transA=ta or s.maybe(0.3, 0), transB=tb or None, alpha=factor(), beta=factor())


def equation(s):
    """Terms and the result of a contraction of one to three operands."""
    letters = "abcdij"[: s.int(2, 5)]
    terms = ["".join(s.rng.sample(letters, s.int(1, min(3, len(letters))))) for _ in range(s.pick([1, 2, 2, 2, 3]))]
    used = sorted(set("".join(terms)))
    result = "".join(s.rng.sample(used, s.int(0, min(4, len(used)))))
    return terms, result


@row("Einsum", sums(8))
def einsum(s, op):
    t = s.dtype([et.F32, et.F64, et.I32, et.I64])
    terms, result = equation(s)
    extents = {c: s.pick([1, 2, 3, 5, 8, 9]) for c in "abcdij"}
    lead = s.chance(0.15)
    batch = s.shape(1, 2, most=6) if lead else ()
    operands = [s.leaf(t, tuple(batch) + tuple(extents[c] for c in term)) for term in terms]
    dots = "..." if lead else ""
    text = ",".join(dots + term for term in terms)
    s.emit(op, operands, equation=text + ("->" + dots + result if s.chance(0.85) else ""))


def window(s, spatial, kernel, dilatable=True):
    """Attributes of a window over these extents that leaves at least one position."""
    a = {}
    strides = [s.pick([1, 1, 2, 3]) for _ in kernel]
    dilations = [s.pick([1, 1, 2]) if dilatable and k > 1 and s.chance(0.3) else 1 for k in kernel]
    if s.chance(0.2):
        a["auto_pad"] = s.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    if a.get("auto_pad", "NOTSET") == "NOTSET" and s.chance(0.6):
        a["pads"] = [s.int(0, max(0, min(2, k - 1))) for k in kernel * 2]
    if a.get("auto_pad", "").startswith("SAME"):
        dilations = [1] * len(kernel)
    if any(v != 1 for v in strides):
        a["strides"] = strides
    if any(v != 1 for v in dilations):
        a["dilations"] = dilations
    return a


def image(s, types, dims=None, channels=None, most=2000, where=et.tame):
    """[n, c, spatial...]: an earlier value or a new one."""
    dims = s.pick([1, 2, 2, 2, 3]) if dims is None else dims
    found = [v for v in s.values if v.rank == dims + 2 and v.dtype in types and v.array.size and where(v.array)
             and (channels is None or v.shape[1] == channels)]
    if found and s.chance(0.75):
        return s.pick(found)
    n, c = s.pick([1, 1, 2]), channels or s.pick([1, 2, 3, 4, 8, 9, 16, 17])
    while True:
        shape = (n, c) + tuple(s.pick([3, 4, 5, 7, 8, 9, 13, 17, 33]) for _ in range(dims))
        if numpy.prod(shape) <= most:
            return s.leaf(s.dtype(types), shape)
        most *= 1.2


@row("Conv", sums(8))
def conv(s, op):
    x = image(s, s.types(op))
    c = x.shape[1]
    group = s.pick([g for g in range(1, c + 1) if c % g == 0]) if s.chance(0.4) else 1
    m = group * s.pick([1, 1, 2, 3] if group > 1 else [1, 2, 5, 8, 9, 16, 17])
    kernel = [s.int(1, min(5 if x.rank == 3 else 3, d)) for d in x.shape[2:]]
    w = s.like(x, [m, c // group] + kernel, constant=s.pick([True, True, None]))
    s.emit(op, [x, w, s.like(x, [m]) if s.chance(0.6) else None], group=group if group > 1 else None,
           kernel_shape=s.maybe(0.5, kernel), **window(s, x.shape[2:], kernel))


@row("ConvTranspose", sums(8))
def conv_transpose(s, op):
    x = image(s, s.types(op), most=600)
    c = x.shape[1]
    group = s.pick([g for g in range(1, c + 1) if c % g == 0]) if s.chance(0.3) else 1
    m = s.pick([1, 2, 3, 5])
    kernel = [s.int(1, 4) for _ in x.shape[2:]]
    w = s.like(x, [c, m] + kernel, constant=s.pick([True, True, None]))
    a = window(s, x.shape[2:], kernel)
    if any(v > k for v, k in zip(a.get("strides", []), kernel)) and a.get("auto_pad", "").startswith("SAME"):
        del a["auto_pad"]  # extents are input times stride by the standard; ONNX Runtime gives less
    if "strides" in a and s.chance(0.3) and "auto_pad" not in a:
        a["output_padding"] = [s.int(0, v - 1) for v in a["strides"]]
    s.emit(op, [x, w, s.like(x, [m * group]) if s.chance(0.6) else None], group=group if group > 1 else None, kernel_shape=s.maybe(0.5, kernel), **a)


@row("Softmax LogSoftmax", peak(8))
def softmax(s, op):
    x = s.operand(s.types(op), rank=(1, 5))
    s.emit(op, [x], axis=s.maybe(0.7, s.axis(x.rank)))


@row("Det", peak(16))
def determinant(s, op):
    n = s.int(1, 4)
    found = [v for v in s.values if v.rank >= 2 and v.dtype == et.F32 and v.shape[-1] == v.shape[-2] < 6 and et.tame(v.array)]
    s.emit(op, [s.pick(found) if found else s.leaf(s.dtype(s.types(op)), s.shape(0, 2, most=20) + (n, n))])
