#!/usr/bin/env python3
"""Writes random small models, each one task or a few for the tuner: NAME.onnx and NAME.inputs.npz for `tune_models.py`.

usage: random_tasks.py OUTDIR [--count 200] [--seed 1]

The families take turns, so that every schedule rule has its share; extents are drawn log-uniformly, every third time a
prime, and often thin. A task reads and writes at least 2e4 elements, and has at most about 1e8 multiply-adds or 4e6
elements, which one core takes 1 us to 5 ms for. The same seed writes the same files. Needs `onnx` and `numpy`.
"""
import argparse
import math
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LEAST_ELEMENTS = 2e4
MOST_WORK = 1e8
MOST_ELEMENTS = 4e6


class Task:
    """One model under construction: inputs are drawn with their shapes, the last value is the output."""

    def __init__(self, rng):
        self.rng = rng
        self.nodes, self.constants, self.inputs = [], [], {}

    def extent(self, low, high):
        value = int(round(math.exp(self.rng.uniform(math.log(low), math.log(high)))))
        while self.rng.random() < 0.3 and value > 3 and any(value % d == 0 for d in range(2, math.isqrt(value) + 1)):
            value -= 1
        return max(value, 1)

    def one_of(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def values(self, shape, dtype=np.float32):
        if dtype == np.float32:
            return self.rng.standard_normal(shape, dtype=np.float32)
        info = np.iinfo(dtype)
        return self.rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)

    def input(self, *shape, dtype=np.float32):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values(shape, dtype)
        return name

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weights(self, *shape, dtype=np.float32):
        return self.constant(self.values(shape, dtype))

    def op(self, kind, *operands, outputs=1, **attributes):
        names = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), names, name=f"{kind}_{len(self.nodes)}", **attributes))
        return names[0]

    def finished(self, value):
        """What often follows in a model: nothing, an activation, or a sum with another value's activation."""
        kind = self.one_of("", "", "Relu", "Sigmoid", "HardSwish")
        return self.op(kind, value) if kind else value

    def model(self, name, output):
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for n, a in self.inputs.items()]
        result = helper.make_empty_tensor_value_info(output)
        graph = helper.make_graph(self.nodes, name, infos, [result], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def convolution(t, rank, depthwise=False, transposed=False):
    kernel = [t.one_of(1, 2, 3, 3, 5, 7) if rank < 3 else t.one_of(1, 3) for _ in range(rank)]
    strides = [t.one_of(1, 1, 2, 3)] * rank
    dilations = [t.one_of(1, 1, 1, 2)] * rank
    spatial = [t.extent(7, {1: 2000, 2: 120, 3: 24}[rank]) + (k - 1) * d for k, d in zip(kernel, dilations)]
    groups = t.one_of(1, 1, 2, 4)
    channels, results = groups * t.extent(2, 128), groups * t.extent(2, 128)
    if depthwise:
        groups = channels
        results = channels * t.one_of(1, 1, 1, 2)
    work = math.prod(spatial) * math.prod(kernel) * channels * results / groups
    work /= 1 if transposed else math.prod(strides)
    while work > MOST_WORK and spatial[0] > 2 * kernel[0] * dilations[0]:
        spatial[0] = spatial[0] // 2 + 1
        work /= 2
    pads = [t.one_of(0, (k - 1) * d // 2) for k, d in zip(kernel, dilations)] * 2
    shape = [results, channels // groups] if not transposed else [channels, results // groups]
    return t.finished(t.op("ConvTranspose" if transposed else "Conv", t.input(1, channels, *spatial),
                           t.weights(*shape, *kernel), t.weights(results), group=groups, strides=strides,
                           dilations=dilations, pads=pads, kernel_shape=kernel))


def matrix_product(t, batched):
    m, k, n = (t.extent(1, 700) for _ in range(3))
    batch = [t.extent(2, 24)] if batched else []
    while m * k * n * math.prod(batch) > MOST_WORK:
        m, k, n = (m + 1) // 2, (k + 1) // 2, n
    left = t.input(*batch, m, k)
    if not batched:
        return t.finished(t.op("Add", t.op("MatMul", left, t.weights(k, n)), t.weights(n)))
    if t.one_of(True, False):
        return t.op("MatMul", left, t.op("Transpose", t.input(*batch, n, k), perm=[0, 2, 1]))
    return t.op("MatMul", left, t.input(*batch, k, n))


def shape_of(t, low_rank=2, high_rank=4):
    rank = int(t.rng.integers(low_rank, high_rank + 1))
    shape = [t.extent(1, 300) for _ in range(rank)]
    while math.prod(shape) > MOST_ELEMENTS:
        shape[int(np.argmax(shape))] //= 2
    return shape


def reduction(t):
    shape = shape_of(t)
    axes = [int(a) for a in t.rng.choice(len(shape), size=int(t.rng.integers(1, len(shape))), replace=False)]
    kind = t.one_of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp")
    return t.op(kind, t.input(*shape), t.constant(np.array(axes, np.int64)), keepdims=1)


def normalized(t):
    kind = t.one_of("Softmax", "LayerNormalization", "InstanceNormalization", "LogSoftmax")
    shape = shape_of(t, 3 if kind == "InstanceNormalization" else 2)
    x = t.input(*shape)
    if kind == "LayerNormalization":
        return t.op(kind, x, t.weights(shape[-1]), t.weights(shape[-1]), axis=-1)
    if kind == "InstanceNormalization":
        return t.op(kind, x, t.weights(shape[1]), t.weights(shape[1]))
    return t.op(kind, x, axis=int(t.rng.integers(len(shape))))


def pooling(t):
    rank = t.one_of(1, 2, 2, 3)
    kernel = [t.one_of(2, 3, 5)] * rank
    spatial = [t.extent(8, {1: 4000, 2: 150, 3: 30}[rank]) for _ in range(rank)]
    channels = min(t.extent(2, 256), int(MOST_ELEMENTS / math.prod(spatial)) or 1)
    kind = t.one_of("MaxPool", "AveragePool", "LpPool")
    extra = {"count_include_pad": t.one_of(0, 1)} if kind == "AveragePool" else {}
    return t.op(kind, t.input(1, channels, *spatial), kernel_shape=kernel, strides=[t.one_of(1, 2)] * rank,
                pads=[t.one_of(0, k // 2) for k in kernel] * 2, **extra)


def pointwise(t):
    shape = shape_of(t)
    value = t.input(*shape)
    for _ in range(t.one_of(1, 2, 4)):
        kind = t.one_of("Erf", "Tanh", "Exp", "Sqrt", "Add", "Mul", "Sub", "Max", "Where")
        if kind in ("Erf", "Tanh", "Exp"):
            value = t.op(kind, value)
        elif kind == "Sqrt":
            value = t.op(kind, t.op("Abs", value))
        else:
            other = t.input(*(d if t.rng.random() < 0.6 else 1 for d in shape))
            value = (t.op("Where", t.op("Greater", value, other), value, other) if kind == "Where" else
                     t.op(kind, value, other))
    return value


def movement(t):
    shape = shape_of(t, 2, 4)
    x, kind = t.input(*shape), t.one_of("Transpose", "Transpose", "Concat", "Pad", "Slice", "Gather", "Tile")
    axis = int(t.rng.integers(len(shape)))
    if kind == "Transpose":
        return t.op(kind, x, perm=[int(p) for p in t.rng.permutation(len(shape))])
    if kind == "Concat":
        other = list(shape)
        other[axis] = t.extent(1, 100)
        return t.op(kind, x, t.input(*other), axis=axis)
    if kind == "Pad":
        pads = np.array([t.one_of(0, 1, 2) for _ in range(2 * len(shape))], np.int64)
        return t.op(kind, x, t.constant(pads), mode=t.one_of("constant", "edge"))
    if kind == "Slice":
        bounds = (np.array([v], np.int64) for v in (0, max(shape[axis] - 1, 1), axis, t.one_of(1, 2)))
        return t.op(kind, x, *map(t.constant, bounds))
    if kind == "Gather":
        return t.op(kind, x, t.constant(t.rng.integers(0, shape[axis], t.extent(2, 200))), axis=axis)
    return t.op(kind, t.op("Neg", x), t.constant(np.array([t.one_of(1, 2) for _ in shape], np.int64)))


def resize(t):
    channels, height, width = t.extent(1, 64), t.extent(5, 60), t.extent(5, 60)
    scales = np.array([1, 1, *(t.one_of(0.5, 1.5, 2, 3) for _ in range(2))], np.float32)
    return t.op("Resize", t.input(1, channels, height, width), "", t.constant(scales),
                mode=t.one_of("nearest", "linear", "cubic"))


def attention(t):
    heads, rows, keys, size = t.extent(1, 12), t.extent(1, 200), t.extent(8, 300), t.one_of(16, 32, 37, 64)
    q, k, v = t.input(1, heads, rows, size), t.input(1, heads, keys, size), t.input(1, heads, keys, size)
    scores = t.op("MatMul", q, t.op("Transpose", k, perm=[0, 1, 3, 2]))
    scaled = t.op("Mul", scores, t.constant(np.float32(size ** -0.5)))
    return t.op("MatMul", t.op("Softmax", scaled, axis=-1), v)


def eight_bits(t):
    if t.one_of(True, False):
        m, k, n = (t.extent(1, 500) for _ in range(3))
        product = t.op("MatMulInteger", t.input(m, k, dtype=np.uint8), t.weights(k, n, dtype=np.int8))
    else:
        channels, results, kernel = t.extent(2, 128), t.extent(2, 128), t.one_of(1, 3)
        product = t.op("ConvInteger", t.input(1, channels, t.extent(7, 40), t.extent(7, 40), dtype=np.uint8),
                       t.weights(results, channels, kernel, kernel, dtype=np.int8), kernel_shape=[kernel, kernel],
                       strides=[t.one_of(1, 2)] * 2)
    return t.op("Mul", t.op("Cast", product, to=TensorProto.FLOAT), t.constant(np.float32(0.01)))


def recurrent(t):
    steps, batch, size, hidden = t.extent(2, 40), t.one_of(1, 1, 3, 8), t.extent(4, 128), t.extent(4, 128)
    kind, gates = t.one_of(("LSTM", 4), ("GRU", 3))
    return t.op(kind, t.input(steps, batch, size), t.weights(1, gates * hidden, size),
                t.weights(1, gates * hidden, hidden), t.weights(1, 2 * gates * hidden), hidden_size=hidden)


FAMILIES = {
    "conv1d": lambda t: convolution(t, 1), "conv2d": lambda t: convolution(t, 2),
    "conv3d": lambda t: convolution(t, 3), "depthwise": lambda t: convolution(t, t.one_of(1, 2, 2), depthwise=True),
    "conv_transpose": lambda t: convolution(t, 2, transposed=True), "gemm": lambda t: matrix_product(t, False),
    "batched": lambda t: matrix_product(t, True), "reduction": reduction, "normalized": normalized,
    "pooling": pooling, "pointwise": pointwise, "movement": movement, "resize": resize, "attention": attention,
    "eight_bits": eight_bits, "recurrent": recurrent,
}


def elements(model):
    """Of inputs, constants and the output."""
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*model.graph.input, *model.graph.output]]
    return sum(map(math.prod, shapes + [list(c.dims) for c in model.graph.initializer]))


def draw(seed, index, family, name):
    for attempt in range(1000):
        task = Task(np.random.default_rng([seed, index, attempt]))
        model = task.model(name, FAMILIES[family](task))
        if elements(model) >= LEAST_ELEMENTS:
            return task, model
    raise RuntimeError(f"{name}: no task is large enough")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("outdir")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()
    os.makedirs(options.outdir, exist_ok=True)
    for index in range(options.count):
        family = list(FAMILIES)[index % len(FAMILIES)]
        name = f"{index:03d}-{family}"
        task, model = draw(options.seed, index, family, name)
        onnx.save(model, os.path.join(options.outdir, name + ".onnx"))
        np.savez(os.path.join(options.outdir, name + ".inputs.npz"), **task.inputs)
    print(f"{options.count} models of {len(FAMILIES)} families in {options.outdir}")


if __name__ == "__main__":
    main()
