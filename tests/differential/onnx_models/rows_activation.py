"""Activations: the standard's, and those of com.microsoft."""
import numpy

import element_types as et
from operator_rows import row
from tolerance import peak, ulps


@row("Relu")
def relu(s, op):
    s.emit(op, [s.operand(s.types(op), where=None)])


# Relative to each result, also at small arguments.
@row("Sigmoid Softsign Elu Selu Celu LeakyRelu ThresholdedRelu", ulps(8))
def activation(s, op):
    activate(s, op)


# alpha * x + beta cancels.
@row("HardSigmoid", peak(4))
def hard_sigmoid(s, op):
    activate(s, op)


def activate(s, op):
    x = s.operand(s.types(op) if op != "Celu" else [et.F32])
    alpha = s.maybe(0.5, s.rng.uniform(0.1, 2)) if op not in ("Sigmoid", "Softsign") else None
    more = {}
    if op == "HardSigmoid":
        more["beta"] = s.maybe(0.5, s.rng.uniform(-0.5, 1))
    if op == "Selu":
        more["gamma"] = s.maybe(0.5, s.rng.uniform(1, 2))
    s.emit(op, [x], alpha=alpha, **more)


@row("HardSwish", peak(4), first=14)  # x / 6 + 1 / 2 cancels
def hard_swish(s, op):
    s.emit(op, [s.operand(s.types(op))])


@row("Softplus", ulps(8))
def softplus(s, op):
    s.emit(op, [s.operand(s.types(op))])


@row("Mish", ulps(16), first=18)
def mish(s, op):
    s.emit(op, [s.operand(s.types(op))])


# sigmoid(alpha x): the product is rounded, which counts |alpha x| times where x is below 0.
@row("Swish", ulps(96), first=24)
def swish(s, op):
    s.emit(op, [s.operand(s.types(op))], alpha=s.maybe(0.5, s.rng.uniform(0.1, 2)))


# x * (1 + erf(x / sqrt 2)): the sum cancels for negative x.
@row("Gelu", peak(4), first=20)
def gelu(s, op):
    s.emit(op, [s.operand(s.types(op))], approximate=s.pick([None, "none", "tanh"]))


@row("PRelu", ulps(1), first=16)
def prelu(s, op):
    x = s.operand([t for t in s.types(op) if t in et.FLOATS], rank=(1, 5))
    kept = x.shape[s.int(0, x.rank - 1):]
    s.emit(op, [x, s.like(x, [1 if s.chance(0.4) else d for d in kept])])


@row("Shrink", ulps(2))
def shrink(s, op):
    # ONNX Runtime computes integers in f32.
    x = s.operand(s.types(op), fill="halves", where=lambda a: et.tame(a) and numpy.abs(a.astype(et.F64)).max(initial=0) < 1e6)
    whole = x.dtype in et.INTEGERS
    s.emit(op, [x], bias=s.maybe(0.5, float(s.int(0, 2)) if whole else s.rng.uniform(-1, 1)), lambd=s.maybe(0.5, float(s.int(0, 2)) if whole else 0.75))


@row("Gelu", peak(4), domain="com.microsoft")
def microsoft_gelu(s, op):
    s.emit(op, [s.operand([et.F32])])


@row("QuickGelu", ulps(96), domain="com.microsoft")
def quick_gelu(s, op):
    s.emit(op, [s.operand([et.F32])], alpha=s.maybe(0.6, s.rng.uniform(0.5, 2)))


@row("FastGelu BiasGelu", peak(4), domain="com.microsoft")
def biased(s, op):
    x = s.operand([et.F32], rank=(1, 4))
    bias = s.like(x, x.shape[-1:]) if op == "BiasGelu" or s.chance(0.5) else None
    s.emit(op, [x, bias])
