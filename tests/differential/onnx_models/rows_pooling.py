"""Pooling over windows and whole images."""
import element_types as et
from operator_rows import row
from rows_nn import image, window
from tolerance import sums


def kernel_of(s, x):
    return [s.int(1, min(3, d)) for d in x.shape[2:]]


@row("MaxPool")
def max_pool(s, op):
    x = image(s, s.types(op))
    kernel = kernel_of(s, x)
    indices = s.chance(0.3)
    a = window(s, x.shape[2:], kernel)
    s.emit(op, [x], [True, indices], kernel_shape=kernel, ceil_mode=s.maybe(0.3, s.int(0, 1)),
           storage_order=s.maybe(0.2, s.int(0, 1)) if indices else None, **a)


@row("AveragePool", sums(4))
def average_pool(s, op):
    x = image(s, s.types(op))
    kernel = kernel_of(s, x)
    a = window(s, x.shape[2:], kernel, dilatable=s.opset >= 19)
    s.emit(op, [x], kernel_shape=kernel, ceil_mode=s.maybe(0.3, s.int(0, 1)), count_include_pad=s.maybe(0.5, s.int(0, 1)), **a)


@row("LpPool", sums(8))
def lp_pool(s, op):
    x = image(s, s.types(op))
    kernel = kernel_of(s, x)
    a = window(s, x.shape[2:], kernel, dilatable=s.opset >= 18)
    if a.get("auto_pad") == "VALID":
        a.pop("dilations", None)  # which ONNX's reference leaves out of the extents
    s.emit(op, [x], kernel_shape=kernel, p=s.maybe(0.6, s.int(1, 3)), ceil_mode=s.maybe(0.2, s.int(0, 1)) if s.opset >= 18 else None, **a)


@row("GlobalAveragePool GlobalMaxPool", sums(4))
def global_pool(s, op):
    s.emit(op, [image(s, [et.F32, et.F32, et.F16, et.BF16])])


@row("GlobalLpPool", sums(8))
def global_lp_pool(s, op):
    s.emit(op, [image(s, [et.F32, et.F32, et.F16, et.BF16])], p=s.maybe(0.6, s.int(1, 3)))


@row("MaxUnpool")
def max_unpool(s, op):
    x = image(s, [et.F32], dims=2, most=1000)
    if min(x.shape[2:]) < 2:
        x = s.leaf(et.F32, x.shape[:2] + (5, 4))
    pooled, indices = s.emit("MaxPool", [x], [True, True], kernel_shape=[2, 2], strides=[2, 2], domain="")
    # With other extents than those inferred, ONNX Runtime reads indices in them; the standard in the inferred ones.
    shape = s.ints(pooled.shape[:2] + tuple(2 * d for d in pooled.shape[2:])) if s.chance(0.4) else None
    s.emit(op, [pooled, indices, shape], kernel_shape=[2, 2], strides=[2, 2])
