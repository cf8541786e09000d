"""Normalisations and losses."""
import numpy

import element_types as et
from operator_rows import row
from rows_nn import image
from tolerance import EPS, magnitude, peak, ulps


def normalised_slack(slices, default_epsilon=1e-5):
    """(x - mean) / deviation * scale + bias: the rounding of the mean counts as many times as x exceeds the deviation.
    slices: of x by node, an array whose last axis is normalised together."""
    def slack(node, operands, results):
        given = next((a.f for a in node.attribute if a.name == "epsilon"), default_epsilon)
        x = slices(node, *operands).astype(et.F64)
        eps = EPS[et.F64 if operands[0].dtype == et.F64 else et.F32]
        spread = numpy.abs(x).max(-1) / numpy.sqrt(x.var(-1) + given) + 1
        factors = 1 + sum(magnitude(a) for a in operands[1:3])
        least = (8 + 2 * numpy.sqrt(x.shape[-1])) * eps * factors * spread.max(initial=1)
        # Mean and 1 / deviation, where they are asked for, are of other magnitudes.
        return [least * max(1, magnitude(r) if i else 1) + EPS.get(r.dtype, 0) * numpy.abs(r.astype(et.F64)) * (r.dtype in et.HALVES)
                for i, r in enumerate(results)]
    return slack


def from_axis(node, x, *others):
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1) % x.ndim
    return x.reshape(int(numpy.prod(x.shape[:axis])), -1)


def by_channel(node, x, *others):
    return x.reshape(x.shape[0] * x.shape[1], -1)


def by_group(node, x, *others):
    groups = next(a.i for a in node.attribute if a.name == "num_groups")
    return x.reshape(x.shape[0] * groups, -1)


def over_axes(node, x, *others):
    axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), [0, 2, 3])
    kept = [d for d in range(x.ndim) if d not in axes]
    return x.transpose(kept + axes).reshape(int(numpy.prod([x.shape[d] for d in kept])), -1)


def epsilon(s):
    return s.maybe(0.4, s.pick([1e-5, 1e-3, 0.1]))


@row("LayerNormalization", normalised_slack(from_axis))
def layer_norm(s, op):
    """Before opset 17, too: ONNX Runtime has it for f32 and f64 there."""
    x = s.operand(s.types(op) if s.opset >= 17 else [et.F32, et.F64], rank=(1, 4), where=lambda a: a.size > 0 and et.tame(a))
    axis = s.axis(x.rank)
    shape = x.shape[axis % x.rank:]
    stash = s.chance(0.3) and x.dtype != et.F64
    s.emit(op, [x, s.like(x, shape), s.like(x, shape) if s.chance(0.6) else None], [True, stash, stash],
           axis=s.maybe(0.9, axis) if axis == -1 else axis, epsilon=epsilon(s))


@row("RMSNormalization", peak(8), first=23)
def rms_norm(s, op):
    x = s.operand([t for t in s.types(op)], rank=(1, 4), where=lambda a: a.size > 0 and et.tame(a))
    axis = s.axis(x.rank)
    s.emit(op, [x, s.like(x, x.shape[axis % x.rank:])], axis=s.maybe(0.9, axis) if axis == -1 else axis, epsilon=epsilon(s))


@row("InstanceNormalization", normalised_slack(by_channel))
def instance_norm(s, op):
    x = image(s, s.types(op))
    s.emit(op, [x, s.like(x, x.shape[1:2]), s.like(x, x.shape[1:2])], epsilon=epsilon(s))


@row("GroupNormalization", normalised_slack(by_group), first=21)
def group_norm(s, op):
    x = image(s, s.types(op))
    c = x.shape[1]
    s.emit(op, [x, s.like(x, (c,)), s.like(x, (c,))], num_groups=s.pick([g for g in range(1, c + 1) if c % g == 0]), epsilon=epsilon(s))


@row("LRN", ulps(16))
def lrn(s, op):
    x = image(s, [et.F32, et.F32, et.F16, et.BF16], dims=2)
    s.emit(op, [x], size=s.pick([1, 3, 5]), alpha=s.maybe(0.5, s.rng.uniform(1e-4, 0.5)), beta=s.maybe(0.5, 0.5), bias=s.maybe(0.5, 2.0))


@row("LpNormalization", peak(4))
def lp_norm(s, op):
    x = s.operand(s.types(op), rank=(1, 4), where=lambda a: a.size > 0 and et.tame(a) and bool((a != 0).all()))
    s.emit(op, [x], axis=s.maybe(0.7, s.axis(x.rank)), p=s.maybe(0.6, s.int(1, 2)))


@row("MeanVarianceNormalization", normalised_slack(over_axes, 1e-9))
def mean_variance_norm(s, op):
    x = image(s, s.types(op), dims=2)
    s.emit(op, [x], axes=s.maybe(0.4, s.pick([[0, 2, 3], [2, 3], [1, 2, 3]])))


@row("BatchNormalization", peak(8))
def batch_norm(s, op):
    x = image(s, [t for t in s.types(op)]) if s.chance(0.7) else s.operand(s.types(op), rank=(1, 2))
    c = (x.shape[1] if x.rank > 1 else 1,)
    variance = s.leaf(x.dtype, c, "positive")
    s.emit(op, [x, s.like(x, c), s.like(x, c), s.like(x, c), variance], epsilon=epsilon(s), momentum=s.maybe(0.2, 0.8))


def labels(s, x, ignored):
    shape = (x.shape[0],) + x.shape[2:]
    target = s.leaf(s.pick([et.I64, et.I32]), shape, (0, x.shape[1]))
    return target


def scores(s, op):
    shape = (s.int(1, 5), s.pick([1, 2, 3, 5, 9])) + s.pick([(), (), (3,), (2, 4)])
    found = [v for v in s.values if v.rank >= 2 and v.dtype in s.types(op) and v.array.size and et.tame(v.array) and v.shape[1] < 40]
    return s.pick(found) if found and s.chance(0.6) else s.leaf(s.dtype(s.types(op)), shape)


@row("NegativeLogLikelihoodLoss", peak(8))
def nll_loss(s, op):
    x = scores(s, op)
    weight = s.like(x, x.shape[1:2], fill="positive", where=lambda a: bool((a > 0).all())) if s.chance(0.5) else None
    s.emit(op, [x, labels(s, x, None), weight], reduction=s.pick([None, "none", "sum", "mean"]))


@row("SoftmaxCrossEntropyLoss", peak(8))
def softmax_loss(s, op):
    x = scores(s, op)
    weight = s.like(x, x.shape[1:2], fill="positive", where=lambda a: bool((a > 0).all())) if s.chance(0.5) else None
    s.emit(op, [x, labels(s, x, None), weight], [True, s.chance(0.4)], reduction=s.pick([None, "none", "sum", "mean"]),
           ignore_index=s.maybe(0.3, 0) if x.shape[1] > 2 and x.array.size > 30 else None)
