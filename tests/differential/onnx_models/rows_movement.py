"""Padding, tiling, gathering and scattering by tensors of indices."""
import numpy

import element_types as et
from operator_rows import row
from reference import Refused
from tolerance import sums


@row("Pad")
def pad(s, op):
    mode = s.pick(["constant", "constant", "edge", "reflect"] + (["wrap"] if s.opset >= 19 else []))
    types = [t for t in s.types(op) if t in et.ALL]
    x = s.operand(types, rank=(1, 5), where=lambda a: mode == "constant" or a.size > 0, most=1000)
    axes = s.rng.sample(range(x.rank), s.int(1, x.rank)) if s.opset >= 18 and s.chance(0.4) else list(range(x.rank))
    most = [x.shape[a] - 1 if mode == "reflect" else x.shape[a] if mode == "wrap" else 3 for a in axes]
    low = [min(m, s.pick([0, 0, 1, 2, 3])) for m in most]
    high = [min(m, s.pick([0, 0, 1, 2, 3])) for m in most]
    if mode == "constant" and s.chance(0.15):  # a negative pad crops
        low = [-1 if x.shape[a] > 4 and s.chance(0.5) else v for a, v in zip(axes, low)]
    value = None
    if mode == "constant" and s.chance(0.6):
        value = s.constant(numpy.array(s.int(0, 3)), x.dtype)
    given = s.ints([a - x.rank if s.chance(0.3) else a for a in axes], s.pick([et.I64, et.I32])) if len(axes) < x.rank or (s.opset >= 18 and s.chance(0.2)) else None
    if given is not None and len(axes) == x.rank and axes != list(range(x.rank)):
        given = s.ints(axes)
    s.emit(op, [x, s.ints(low + high), value, given], mode=mode if mode != "constant" else s.maybe(0.3, mode))


@row("CenterCropPad", first=18)
def center_crop_pad(s, op):
    x = s.operand(et.ALL, rank=(1, 5), where=None)
    axes = s.rng.sample(range(x.rank), s.int(1, x.rank)) if s.chance(0.5) else None
    count = len(axes) if axes else x.rank
    s.emit(op, [x, s.ints([s.int(1, 6) for _ in range(count)], s.pick([et.I64, et.I32]))], axes=axes)


@row("Tile")
def tile(s, op):
    x = s.operand(et.ALL, rank=(1, 5), where=None, most=400)
    s.emit(op, [x, s.ints([s.pick([1, 1, 2, 3]) if x.array.size < 1000 else 1 for _ in range(x.rank)])])


def blocks(s, op, depth):
    block = s.int(1, 3)
    shape = [s.int(1, 2), s.int(1, 3), s.int(1, 5), s.int(1, 5)]
    if depth:
        shape[1] *= block * block
    else:
        shape[2:] = [d * block for d in shape[2:]]
    types = s.types(op)
    found = [v for v in s.values if v.rank == 4 and v.dtype in types and
             (v.shape[1] % (block * block) == 0 if depth else v.shape[2] % block == v.shape[3] % block == 0)]
    return (s.pick(found) if found and s.chance(0.7) else s.leaf(s.dtype(types), shape)), block


@row("DepthToSpace")
def depth_to_space(s, op):
    x, block = blocks(s, op, True)
    s.emit(op, [x], blocksize=block, mode=s.pick([None, "DCR", "CRD"]))


@row("SpaceToDepth")
def space_to_depth(s, op):
    x, block = blocks(s, op, False)
    s.emit(op, [x], blocksize=block)


@row("ReverseSequence")
def reverse_sequence(s, op):
    x = s.operand(s.types(op), rank=(2, 4), where=lambda a: a.size > 0)
    time = s.int(0, 1)
    lengths = s.leaf(et.I64, (x.shape[1 - time],), (1, x.shape[time] + 1))
    s.emit(op, [x, lengths], time_axis=time, batch_axis=1 - time)


def along(s, x, axis, most_factor=1.5):
    """Shape of indices for the elements of x along an axis: no larger than x elsewhere."""
    return [s.int(1, max(1, int(d * most_factor))) if i == axis % x.rank else s.pick([d, s.int(1, d)]) for i, d in enumerate(x.shape)]


@row("GatherElements")
def gather_elements(s, op):
    x = s.operand(s.types(op), rank=(1, 4), where=lambda a: a.size > 0)
    axis = s.axis(x.rank)
    extent = x.shape[axis]
    indices = s.leaf(s.pick([et.I64, et.I32]), along(s, x, axis), (-extent if s.chance(0.3) else 0, extent))
    s.emit(op, [x, indices], axis=s.maybe(0.9, axis) if axis == 0 else axis)


@row("GatherND")
def gather_nd(s, op):
    x = s.operand(s.types(op), rank=(1, 5), where=lambda a: a.size > 0)
    batch = s.int(0, x.rank - 1) if s.chance(0.4) else 0
    if set(x.shape[:batch]) & set(s.symbols):
        batch = 0  # a batch that differs from that of the indices is invalid, which ONNX Runtime does not see
    depth = s.int(1, x.rank - batch)
    lead = list(x.shape[:batch]) + list(s.shape(0 if batch else 1, 2, most=30))
    shape = lead + [depth]
    spread = [s.generator.integers(-x.shape[batch + k] if s.chance(0.3) else 0, x.shape[batch + k], lead) for k in range(depth)]
    array = numpy.stack([numpy.asarray(a) for a in spread], -1).astype(et.I64).reshape(shape)
    s.emit(op, [x, s.constant(array)], batch_dims=batch or None)


def distinct(s, shape, axis, extent):
    """Indices of which no two along the axis meet: their order must not matter."""
    order = numpy.argsort(s.generator.random([extent if i == axis else d for i, d in enumerate(shape)]), axis)
    array = numpy.take(order, range(shape[axis]), axis)
    return numpy.where(s.generator.random(array.shape) < 0.2, array - extent, array) if s.chance(0.3) else array


def reduction_of(s, x, first):
    options = ["none"] * 2 + (["add", "mul"] if s.opset >= first else []) + (["max", "min"] if s.opset >= 18 else [])
    if x.dtype not in (et.F32, et.F64, et.I32, et.I64):
        options = ["none"]
    return s.pick(options)


@row("ScatterElements", sums(4))
def scatter_elements(s, op):
    x = s.operand(s.types(op), rank=(1, 4), where=lambda a: a.size > 0 and et.tame(a))
    axis = s.axis(x.rank)
    reduction = reduction_of(s, x, 16)
    at, extent = axis % x.rank, x.shape[axis]
    if reduction == "none":
        indices = s.constant(distinct(s, [s.int(1, d) if i == at else s.pick([d, s.int(1, d)]) for i, d in enumerate(x.shape)], at, extent), et.I64)
    else:
        indices = s.leaf(et.I64, along(s, x, axis), (0, extent))
    s.emit(op, [x, indices, s.like(x, indices.shape)], axis=axis, reduction=s.maybe(0.5, reduction) if reduction == "none" else reduction)


@row("ScatterND", sums(4))
def scatter_nd(s, op):
    x = s.operand(s.types(op), rank=(1, 4), where=lambda a: a.size > 0 and et.tame(a))
    reduction = reduction_of(s, x, 16)
    depth = s.int(1, x.rank)
    cells = int(numpy.prod(x.shape[:depth]))
    count = s.int(1, min(cells, 12))
    flat = s.generator.permutation(cells)[:count] if reduction == "none" else s.generator.integers(0, cells, count)
    indices = s.constant(numpy.stack(numpy.unravel_index(flat, x.shape[:depth]), -1), et.I64)
    updates = s.like(x, [count] + list(x.shape[depth:]))
    s.emit(op, [x, indices, updates], reduction=reduction if reduction != "none" else None)


@row("TensorScatter", first=24)
def tensor_scatter(s, op):
    x = s.operand([t for t in s.types(op) if t in et.ALL], rank=(3, 4), where=lambda a: a.size > 0)
    axis = s.pick([None, -2, 1])
    at = (-2 if axis is None else axis) % x.rank
    length = s.int(1, x.shape[at])
    circular = s.chance(0.3)
    starts = s.leaf(et.I64, (x.shape[0],), (0, x.shape[at] if circular else x.shape[at] - length + 1))
    s.emit(op, [x, s.like(x, [length if i == at else d for i, d in enumerate(x.shape)]), starts if circular or s.chance(0.8) else None],
           axis=axis, mode="circular" if circular else None)


@row("Scatter", alone=10)
def scatter(s, op):
    x = s.leaf(s.dtype([et.F32, et.I32, et.I64]), s.shape(1, 3))
    axis = s.int(0, x.rank - 1)
    if x.array.size == 0:
        raise Refused("empty")
    shape = [s.int(1, d) for d in x.shape]
    s.emit(op, [x, s.constant(distinct(s, shape, axis, x.shape[axis]) % x.shape[axis], et.I64), s.like(x, shape)], axis=axis)
