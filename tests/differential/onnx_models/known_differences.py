"""Differences from ONNX Runtime that are no fault of ours, each as narrow as it can be said.

A rule is (operator, condition, reason); the condition sees the node, its operands by name, our results, the
reference's, and the index of the output that differs."""

import numpy

import element_types as et


def near(ours, expected, index, most):
    """Whether an output lies within `most` times the largest magnitude of the reference's."""
    a, b = ours[index].astype(et.F64), expected[index].astype(et.F64)
    return a.shape == b.shape and bool((numpy.abs(a - b) <= most * max(1.0, numpy.abs(b).max(initial=0))).all())


def in_f32(node, operands, ours, expected, index):
    return ours[index].dtype == et.F64 and near(ours, expected, index, 2.0 ** -20)


def given_shape(node, operands, ours, expected, index):
    return len(node.input) > 2


def empty(node, operands, ours, expected, index):
    return ours[index].size == 0 and expected[index].size == 0 and ours[index].dtype == expected[index].dtype


FLOAT_CONSTANTS = "ONNX Runtime has the constants of this formula in f32 only, also for f64"
RULES = [
    *[(op, in_f32, FLOAT_CONSTANTS) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")],
    ("MaxUnpool", given_shape, "with output_shape the standard reads indices in the shape inferred from the window; ONNX Runtime in output_shape"),
    *[(op, empty, "ONNX Runtime leaves an extent of 0 at 0 where one over which is reduced becomes 1") for op in ("ArgMax", "ArgMin")],
]


def find(node, operands, ours, expected, index):
    """The reason, or None."""
    for op, condition, reason in RULES:
        if op in (node.proto.op_type, "*") and condition(node.proto, operands, ours, expected, index):
            return reason
    return None
