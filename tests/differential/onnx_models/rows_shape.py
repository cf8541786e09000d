"""Shapes: what moves no element relative to its neighbours, or joins and parts tensors."""
import numpy
from onnx import helper, numpy_helper

import element_types as et
from operator_rows import row


def random_factors(s, shape):
    """Another shape of as many elements."""
    size = int(numpy.prod(shape, dtype=int))
    if size == 0:
        return [d for d in shape if d != 1] or [0]
    dims = []
    while size > 1 and len(dims) < 4:
        f = s.pick([d for d in range(1, size + 1) if size % d == 0])
        dims.append(f)
        size //= f
    return dims + ([size] if size > 1 else [])


@row("Reshape")
def reshape(s, op):
    x = s.operand(et.ALL, where=None)
    if x.rank and s.chance(0.4):  # forms that hold for symbolic extents
        target = s.pick([[-1], [0, -1] if x.rank > 1 else [-1, 1], [0] * x.rank, [1] + [0] * 0 + [-1]])
    else:
        target = random_factors(s, x.shape)
        if target and s.chance(0.4) and numpy.prod(target) > 0:
            target[s.int(0, len(target) - 1)] = -1
    zero = s.maybe(0.1, 1) if s.opset >= 14 and -1 not in target else None
    s.emit(op, [x, s.ints(target)], allowzero=zero)


@row("Flatten")
def flatten(s, op):
    x = s.operand(et.ALL, where=None)
    s.emit(op, [x], axis=s.maybe(0.7, s.int(-x.rank, x.rank)))


@row("Squeeze")
def squeeze(s, op):
    shape = list(s.shape(0, 3))
    for _ in range(s.int(1, 2)):
        shape.insert(s.int(0, len(shape)), 1)
    found = [v for v in s.values if 1 in v.shape]
    x = s.pick(found) if found and s.chance(0.7) else s.leaf(s.dtype(et.ALL), shape)
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    axes = [a - x.rank if s.chance(0.3) else a for a in s.rng.sample(ones, s.int(1, len(ones)))]
    s.emit(op, [x, s.maybe(0.8, s.ints(axes))])


@row("Unsqueeze")
def unsqueeze(s, op):
    x = s.operand(et.ALL, rank=(0, 4), where=None)
    count = s.int(1, 2)
    axes = s.rng.sample(range(x.rank + count), count)
    s.emit(op, [x, s.ints([a - x.rank - count if s.chance(0.3) else a for a in axes])])


@row("Transpose")
def transpose(s, op):
    x = s.operand(et.ALL, where=None)
    s.emit(op, [x], perm=s.rng.sample(range(x.rank), x.rank) if x.rank and s.chance(0.85) else None)


@row("Shape")
def shape(s, op):
    x = s.operand(et.ALL, where=None)
    bound = lambda: s.maybe(0.5, s.int(-x.rank - 1, x.rank + 1)) if s.opset >= 15 else None
    s.emit(op, [x], start=bound(), end=bound())


@row("Size")
def size(s, op):
    s.emit(op, [s.operand(et.ALL, where=None)])


@row("Concat")
def concat(s, op):
    x = s.operand(et.ALL, rank=(1, 5), where=None)
    axis = s.axis(x.rank)
    parts = [x]
    for _ in range(s.pick([0, 1, 1, 2, 3])):
        shape = list(x.shape)
        shape[axis] = s.pick([shape[axis], s.extent()])
        parts.insert(s.int(0, len(parts)), s.like(x, shape, where=None))
    s.emit(op, parts, axis=axis)


@row("Split")
def split(s, op):
    x = s.operand(et.ALL, rank=(1, 5), where=None)
    axis = s.axis(x.rank)
    extent, count = x.shape[axis], s.int(1, 3)
    if s.chance(0.5):
        if s.opset < 18:
            count = s.pick([c for c in (1, 2, 3) if extent % c == 0])
        s.emit(op, [x], count, axis=axis, num_outputs=count if s.opset >= 18 else None)
        return
    cuts = sorted(s.int(0, extent) for _ in range(count - 1))
    sizes = [b - a for a, b in zip([0] + cuts, cuts + [extent])]
    s.emit(op, [x, s.ints(sizes)], count, axis=s.maybe(0.9, axis) if axis == 0 else axis)


@row("Slice")
def slice_(s, op):
    x = s.operand(et.ALL, rank=(1, 5), where=None)
    axes = s.rng.sample(range(x.rank), s.int(1, x.rank))
    starts, ends, steps = [], [], []
    for a in axes:
        step = s.pick([1, 1, 1, 2, 3, -1, -2])
        low, high = s.int(-x.shape[a] - 2, x.shape[a] + 1), s.pick([s.int(-x.shape[a] - 2, x.shape[a] + 2), 2 ** 31 - 1, 2 ** 62])
        if step < 0:
            low, high = s.pick([high, -1]), s.pick([low, -2 ** 62])
        starts.append(low)
        ends.append(high)
        steps.append(step)
    t = s.pick([et.I64, et.I64, et.I32])
    if t == et.I32:
        starts, ends = ([max(min(v, 2 ** 31 - 1), -2 ** 31) for v in list_] for list_ in (starts, ends))
    whole = axes == list(range(x.rank)) and s.chance(0.5)
    given = None if whole else s.ints([a - x.rank if s.chance(0.3) else a for a in axes], t)
    stepped = None if all(v == 1 for v in steps) and s.chance(0.7) else s.ints(steps, t)
    s.emit(op, [x, s.ints(starts, t), s.ints(ends, t), given, stepped])


@row("Gather")
def gather(s, op):
    x = s.operand(et.ALL, rank=(1, 4), where=None)
    axis = s.axis(x.rank)
    extent = x.shape[axis]
    if extent == 0:
        indices = s.leaf(et.I64, (0,), (0, 1))
    else:
        indices = s.leaf(s.pick([et.I64, et.I32]), s.shape(0, 2, most=60), (-extent if s.chance(0.3) else 0, extent))
    s.emit(op, [x, indices], axis=s.maybe(0.9, axis) if axis == 0 else axis)


@row("Expand")
def expand(s, op):
    x = s.operand(et.ALL, rank=(0, 4), where=None, most=300)
    target = [d if d != 1 else s.pick([1, s.int(1, 5)]) for d in x.shape]
    target = [1 if s.chance(0.3) else d for d in target]
    for _ in range(s.pick([0, 0, 1])):
        target = [s.int(1, 4)] + target
    s.emit(op, [x, s.ints(target[s.int(0, len(target)):] if s.chance(0.1) else target)])


@row("Dropout")
def dropout(s, op):
    x = s.operand(s.types(op), where=None)
    ratio = s.maybe(0.5, s.constant(numpy.array(0.3), et.F32))
    training = s.constant(numpy.array(False)) if s.chance(0.3) else None
    s.emit(op, [x, ratio, training], [True, s.chance(0.5)])


@row("Constant")
def constant(s, op):
    kind = s.pick(["value", "value", "value_float", "value_floats", "value_int", "value_ints"])
    if kind == "value":
        array = et.tensor(s.generator, s.dtype(et.ALL), s.shape(), "special" if s.special else "normal")
        s.emit(op, [], value=numpy_helper.from_array(array))
    else:
        number = s.rng.uniform(-3, 3) if "float" in kind else s.int(-9, 9)
        s.emit(op, [], **{kind: [number] * s.int(1, 9) if kind.endswith("s") else number})


@row("ConstantOfShape")
def constant_of_shape(s, op):
    value = None
    if s.chance(0.7):
        array = et.tensor(s.generator, s.dtype(et.ALL), (1,), "normal")
        value = helper.make_tensor("value", et.code(array.dtype), [1], array.tobytes(), raw=True)
    shapes = [v for v in s.values if v.dtype == et.I64 and v.rank == 1 and v.array.size < 6 and (v.array >= 0).all() and v.array.prod() < 2000]
    s.emit(op, [s.pick(shapes) if shapes and s.chance(0.6) else s.ints(s.shape(0, 4))], value=value)
