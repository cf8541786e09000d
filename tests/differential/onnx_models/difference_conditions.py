"""Conditions of known_differences.py. Each sees the node, its operands by name, our results, the reference's, and
the index of the output that differs."""

import functools

import numpy

import element_types as et


def near(ours, expected, index, most):
    """Whether an output lies within `most` times the largest magnitude of the reference's."""
    a, b = ours[index].astype(et.F64), expected[index].astype(et.F64)
    return a.shape == b.shape and bool((numpy.abs(a - b) <= most * max(1.0, numpy.abs(b).max(initial=0))).all())


def in_f32(node, operands, ours, expected, index):
    return ours[index].dtype == et.F64 and near(ours, expected, index, 2.0 ** -20)


def positions_in_f32(node, operands, ours, expected, index):
    """Each position is off by what f32 rounds of the extent, the value between elements by some times as much."""
    return ours[index].dtype == et.F64 and near(ours, expected, index, 2.0 ** -21 * max(operands[node.input[0]].shape + ours[index].shape))


def empty(node, operands, ours, expected, index):
    given = operands[node.input[0]]
    return given.size == 0 and expected[index].shape == given.shape and ours[index].dtype == expected[index].dtype


def attribute(node, name, default=None):
    return next((list(a.ints) or a.i for a in node.attribute if a.name == name), default)


def mean_of_none(node, operands, ours, expected, index):
    return operands[node.input[0]].size == 0 and bool(numpy.isnan(ours[index]).all()) and not expected[index].any()


def no_terms(node, operands, ours, expected, index):
    """A product over no terms."""
    return any(a.size == 0 for a in operands.values()) and ours[index].size > 0 and not ours[index].any()


def no_batches(node, operands, ours, expected, index):
    """A product over no terms of batches that are broadcast to none."""
    a, b = (operands[n] for n in node.input[:2])
    return ours[index].shape == numpy.matmul(a, b).shape and ours[index].size == 0 and a.shape[-1] == 0


def no_quantised_terms(node, operands, ours, expected, index):
    """A quantised product over no terms: its zero point."""
    zero = operands[node.input[7]]
    return any(a.size == 0 for a in operands.values()) and ours[index].size > 0 and bool((ours[index] == zero.ravel()[0]).all())


def no_gemm_terms(node, operands, ours, expected, index):
    """A Gemm of floats over no terms: beta times C; the reference's is C itself."""
    if len(node.input) < 3 or all(a.size > 0 for a in operands.values()):
        return False
    addend = operands[node.input[2]]
    beta = next((a.f for a in node.attribute if a.name == "beta"), 1.0)
    scaled = numpy.broadcast_to(addend, ours[index].shape).astype(et.F64) * beta
    return addend.dtype in et.FLOATS and near([scaled], ours, index, 4 * max(float(et.limits(addend.dtype).eps), 2.0 ** -24))


def rounded_to_f64(node, operands, ours, expected, index):
    """Integers beyond 2^53 that the reference had as f64."""
    return ours[index].dtype.kind in "iu" and ours[index].dtype.itemsize == 8 and near(ours, expected, index, 2.0 ** -52)


def rounded_to_f32(node, operands, ours, expected, index):
    """Integers beyond 2^24 that the reference had as f32."""
    return ours[index].dtype.kind in "iu" and near(ours, expected, index, 2.0 ** -23)


def nan_in_operand(node, operands, ours, expected, index):
    """Results that are NaN where the reference's are not, of an operand that has NaN."""
    a, b = ours[index].astype(et.F64), expected[index].astype(et.F64)
    return bool(numpy.isnan(a[(a != b) & ~numpy.isnan(b)]).all()) and bool(numpy.isnan(operands[node.input[0]].astype(et.F64)).any())


def partial_windows(node, operands, ours, expected, index):
    """Results that differ only where ceil_mode gives a window that ends behind the image."""
    differs = numpy.abs(ours[index] - expected[index]) > 1e-12 * numpy.abs(expected[index]).max(initial=0)
    inner = differs[(slice(None), slice(None)) + (slice(0, -1),) * (differs.ndim - 2)]
    return attribute(node, "ceil_mode", 0) == 1 and not inner.any()


def no_iteration(node, operands, ours, expected, index):
    """Rows of no iteration: their extents are what the body would have given, which nothing says."""
    return ours[index].ndim == expected[index].ndim and ours[index].shape[:1] == expected[index].shape[:1] == (0,)


def wide_window(node, operands, ours, expected, index):
    """A window larger than the padded image."""
    return ours[index].size == 0 and expected[index].size > 0


def one_rounding(node, operands, ours, expected, index):
    """Of floats: each result is one of the two values, and differs by rounding alone."""
    values = operands[node.input[2]]
    return values.dtype in et.FLOATS and bool(numpy.isin(ours[index], values).all()) and near(ours, expected, index, 2.0 ** -50)


def wide_stride(node, operands, ours, expected, index):
    """auto_pad SAME with strides beyond the window, for which pads come out negative."""
    same = any(a.name == "auto_pad" and a.s.startswith(b"SAME") for a in node.attribute)
    strides, kernel = attribute(node, "strides", []), attribute(node, "kernel_shape", [])
    return same and any(s > k for s, k in zip(strides, kernel))


def exact_remainder(node, operands, ours, expected, index):
    """fmod of integers of 64 bits, of which ours is exact."""
    x, y = (operands[name] for name in node.input)
    return attribute(node, "fmod", 0) == 1 and x.dtype.itemsize == 8 and bool((ours[index] == numpy.fmod(x, y)).all())


def no_deviation(node, operands, ours, expected, index):
    """Elements that are all alike: 0 here, 0 / 0 there."""
    a, b = ours[index].astype(et.F64), expected[index].astype(et.F64)
    return bool((a[numpy.isnan(b)] == 0).all()) and near([numpy.where(numpy.isnan(b), 0, a)], [numpy.nan_to_num(b)], 0, 2.0 ** -6)


def bias_of_first_group(node, operands, ours, expected, index):
    """Results that differ by what their group's bias differs from the first one's."""
    groups = attribute(node, "group", 1)
    if groups < 2 or len(node.input) < 3 or ours[index].dtype != et.F64:
        return False
    bias = operands[node.input[2]]
    change = numpy.tile(bias[: bias.size // groups], groups) - bias
    return near([ours[index] + change.reshape([-1] + [1] * (ours[index].ndim - 2))], expected, 0, 2.0 ** -40)


def beyond_integers(node, operands, ours, expected, index):
    """Floats that the type of the result cannot hold, or NaN."""
    x = operands[node.input[0]]
    if x.dtype not in et.FLOATS or ours[index].dtype not in et.INTEGERS:
        return False
    limits = numpy.iinfo(ours[index].dtype)
    wide = x.astype(et.F64)
    inside = (wide > float(limits.min) - 1) & (wide < float(limits.max) + 1)
    return bool((ours[index][inside] == expected[index][inside]).all())


def unordered(node, operands, ours, expected, index):
    """Elements with NaN among them, which ONNX Runtime's order does not place."""
    x = operands[node.input[0]]
    return x.dtype in et.FLOATS and bool(numpy.isnan(x.astype(et.F64)).any())


def of_nan(node, operands, ours, expected, index):
    """Results that differ alone where there is NaN along the axis."""
    axis = attribute(node, "axis", 0)
    beside_nan = numpy.isnan(operands[node.input[0]].astype(et.F64)).any(axis=axis, keepdims=attribute(node, "keepdims", 1) == 1)
    return bool((ours[index] == expected[index])[~beside_nan].all())


def states_overflow(node, operands, ours, expected, index):
    """States of unbounded activations that grow beyond all numbers."""
    largest = float(et.limits(expected[index].dtype).max)
    return any(bool((numpy.abs(e.astype(et.F64)) >= largest).any()) for e in expected)


def exact_extreme(node, operands, ours, expected, index):
    """The largest or smallest of integers of 64 bits, as NumPy has it."""
    arrays = [operands[name] for name in node.input]
    choose = numpy.maximum if node.op_type == "Max" else numpy.minimum
    return arrays[0].dtype.kind in "iu" and arrays[0].dtype.itemsize == 8 and bool((functools.reduce(choose, arrays) == ours[index]).all())


def exact_reduced(node, operands, ours, expected, index):
    """The largest or smallest of unsigned integers along axes, as NumPy has it."""
    x = operands[node.input[0]]
    axes = operands.get(node.input[1]) if len(node.input) > 1 else attribute(node, "axes", None)
    axes = tuple(int(a) for a in axes) if axes is not None and len(axes) else tuple(range(x.ndim))
    choose = numpy.max if node.op_type == "ReduceMax" else numpy.min
    return x.dtype.kind == "u" and x.size > 0 and bool((choose(x, axes).ravel() == ours[index].ravel()).all())


def quantised_nan(node, operands, ours, expected, index):
    """Whether results differ where the operand is NaN alone."""
    numbers = ~numpy.isnan(operands[node.input[0]].astype(et.F64))
    return not numbers.all() and bool((ours[index][numbers] == expected[index][numbers]).all())


def window_of_padding(node, operands, ours, expected, index):
    """Whether the results that differ are the largest of no elements."""
    a, b = ours[index], expected[index]
    differ = a != b
    return a.dtype in et.FLOATS and bool(differ.any() and numpy.isneginf(a[differ].astype(et.F64)).all() and (b[differ] == et.limits(b.dtype).min).all())


def one_position(node, operands, ours, expected, index):
    return attribute(node, "align_corners", 0) == 1 and (operands[node.input[1]][2:] == 1).any()


@functools.cache
def has_dot_products():
    """Whether the CPU has instructions for sums of products of bytes (VNNI)."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return "avx512_vnni" in flags or "avx_vnni" in flags


def saturated_pairs(node, operands, ours, expected, index):
    """Products of u8 and i8 of which two may be more than 16 bits hold; ours are held against exact sums where these are given."""
    weights = [a for a in operands.values() if a.dtype == numpy.int8 and a.size > 1]
    if has_dot_products() or not any(2 * 255 * numpy.abs(w.astype(int)).max() > 2 ** 15 - 1 for w in weights):
        return False
    if node.op_type != "MatMulInteger":
        return True
    a, b = (operands[name].astype(int) for name in node.input[:2])
    zeros = [operands[name].astype(int) if name else numpy.array(0) for name in [*node.input[2:], "", ""][:2]]
    rows = zeros[0][..., None] if zeros[0].ndim else zeros[0]
    return bool((ours[index] == (a - rows) @ (b - zeros[1])).all())
