"""Element types as NumPy has them (bfloat16 by ml_dtypes), and random tensors of them."""
import math

import ml_dtypes
import numpy
from onnx import helper

BF16 = numpy.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = (numpy.dtype(t) for t in ("float16", "float32", "float64"))
I8, I16, I32, I64 = (numpy.dtype(t) for t in ("int8", "int16", "int32", "int64"))
U8, U16, U32, U64 = (numpy.dtype(t) for t in ("uint8", "uint16", "uint32", "uint64"))
BOOL = numpy.dtype(bool)
FLOATS = [F32, F64, F16, BF16]
SIGNED = [I8, I16, I32, I64]
UNSIGNED = [U8, U16, U32, U64]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + [BOOL]
HALVES = [F16, BF16]
# How often each is drawn among those that an operator allows.
WEIGHTS = {F32: 10, F64: 2, F16: 2, BF16: 2, I32: 3, I64: 4, BOOL: 2}


def is_float(dtype):
    return dtype in FLOATS


def code(dtype):
    return helper.np_dtype_to_tensor_dtype(dtype)


def from_code(onnx_code):
    return numpy.dtype(helper.tensor_dtype_to_np_dtype(onnx_code))


def from_schema(text):
    """'tensor(int8)' as a NumPy type; None for strings, sequences and what the compiler has no tensors of."""
    names = {"tensor(float)": F32, "tensor(double)": F64, "tensor(bfloat16)": BF16}
    if text in names:
        return names[text]
    return next((t for t in ALL if text == f"tensor({t.name})"), None)


def limits(dtype):
    return numpy.iinfo(dtype) if dtype in INTEGERS else ml_dtypes.finfo(dtype)


def finite(array):
    return array.dtype not in FLOATS or bool(numpy.isfinite(array.astype(F64)).all())


def tame(array):
    """Finite, and so small that squares and sums over a tensor stay finite in every type."""
    most = 1e6 if array.dtype in (F32, F64, BF16) else 30 if array.dtype == F16 else math.inf
    return finite(array) and (array.size == 0 or array.dtype == BOOL or float(numpy.abs(array.astype(F64)).max()) <= most)


def special_floats(generator, dtype, values):
    """Some elements become NaN, infinities, zeros of both signs, denormals and the extremes."""
    info = limits(dtype)
    pool = [math.nan, math.inf, -math.inf, 0.0, -0.0, float(info.max), float(info.min), float(info.smallest_subnormal), float(info.tiny),
            -float(info.smallest_subnormal), 1.0, -1.0, 0.5, -2.5]
    chosen = generator.random(values.shape) < generator.choice([0.1, 0.6])
    return numpy.where(chosen, generator.choice(pool, values.shape), values)


def floats(generator, dtype, shape, fill):
    values = generator.standard_normal(shape) * generator.choice([0.3, 1.0, 3.0])
    if fill == "positive":
        values = numpy.abs(values) + 0.1
    elif fill == "unit":
        values = generator.uniform(-0.99, 0.99, shape)
    elif fill == "wide":
        values = values * 10.0 ** generator.integers(-3, 4, shape)
    elif fill == "halves":  # ties of every rounding
        values = generator.integers(-9, 10, shape) / 2
    elif fill == "special":
        values = special_floats(generator, dtype, values)
    elif isinstance(fill, tuple):
        values = generator.uniform(fill[0], fill[1], shape)
    with numpy.errstate(over="ignore"):
        return values.astype(dtype)


def integers(generator, dtype, shape, fill):
    info = limits(dtype)
    low, high = (0 if dtype in UNSIGNED else -9), 10
    if fill in ("wide", "special"):
        low, high = int(info.min), int(info.max) + 1
    elif fill == "positive":
        low = 1
    elif fill == "unit":
        low, high = 0, 2
    elif isinstance(fill, tuple):
        low, high = max(int(fill[0]), int(info.min)), min(int(fill[1]), int(info.max) + 1)
    values = generator.integers(low, high, shape, dtype=dtype)
    if fill == "special":
        extreme = generator.random(shape) < 0.4
        values = numpy.where(extreme, generator.choice(numpy.array([info.min, info.max, 0, 1], dtype), shape), values)
    return values.astype(dtype)


def tensor(generator, dtype, shape, fill):
    """fill: 'normal', 'positive', 'unit', 'wide', 'halves', 'special', or a pair of bounds [low, high)."""
    if dtype == BOOL:
        return numpy.asarray(generator.random(shape) < 0.5)
    make = floats if dtype in FLOATS else integers
    return numpy.asarray(make(generator, dtype, tuple(shape), fill), dtype).reshape(shape)
